"""What a run knows about one check, and the evidence that it becomes."""

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tokenlaw.spec.verdicts import Check, Evidence, Verdict
from tokenlaw.stats.ledger import Entry, Kind
from tokenlaw.stats.places import Place
from tokenlaw.stats.planner import noncentrality

MISS = 1e-3
"""Reports say which deviation a run would have missed with this probability."""

MOST_FINDINGS = 3

GATE_FACTOR = 1.6
"""Samples that a gate needs over those of the planner's chi-square test, for up to 800 cells. Simulated
on deviations spread over all cells, the worst ones: 1.3 times misses one in a hundred at 600 cells."""

LARGEST_LOG = 1e6
"""Stands for infinity in reports: JSON has none."""


@dataclass(frozen=True)
class Finding:
    """What speaks against a check: how much, in words, and where it can be seen again."""

    weight: float
    text: str
    place: Place


@dataclass
class LawOutcome:
    """One check of one run.

    Attributes
    ----------
    log_es : scenario to log e-value.
    p_values : those of all tests of the check.
    findings : what refutes the check, if anything does.
    crashes : tracebacks of the implementation.
    bounds : for each law that was tested, what its total variation is at most, with all of alpha together.
    visible : for each law that was tested, the smallest total variation that would have been refuted.
    """

    check: Check
    log_es: dict[str, float] = field(default_factory=dict)
    p_values: list[float] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    exercised: Counter[str] = field(default_factory=Counter)
    bounds: list[float] = field(default_factory=list)
    visible: list[float] = field(default_factory=list)
    samples: int = 0
    seconds: float = 0.0

    def evidence(self, entry: Entry | None, refuted: bool, alpha: float) -> Evidence:
        """The row of the report.

        Parameters
        ----------
        entry : the check's place in the ledger; None for one that is decided without chance.
        refuted : whether it is.
        alpha : the check's part.
        """
        unexercised = [event for event in self.check.exercised_by if not self.exercised[event]]
        statistics = self._statistics(entry, alpha)
        if refuted:
            verdict, message = Verdict.REFUTED, "\n".join(found.text for found in self._worst())
        elif self.crashes:
            verdict, message = Verdict.UNKNOWN, self.crashes[0]
        elif unexercised:
            verdict, message = Verdict.NOT_EXERCISED, f"never happened: {', '.join(unexercised)}"
        else:
            verdict, message = Verdict.HOLDS, f"{self._power(alpha)}{self._certificate(alpha)}".strip()
        return Evidence(
            self.check,
            verdict,
            dict(self.exercised),
            self.samples,
            self.seconds,
            message,
            self._worst()[0].place.to_data() if refuted and self.findings else None,
            statistics,
        )

    def _worst(self) -> list[Finding]:
        """The most telling findings."""
        return sorted(self.findings, key=lambda found: -found.weight)[:MOST_FINDINGS]

    def _statistics(self, entry: Entry | None, alpha: float) -> dict[str, Any]:
        found: dict[str, Any] = {"samples": self.samples}
        if entry is not None:
            observed = None if entry.observed is None else finite(entry.observed)
            found["ledger"] = [
                {"kind": str(entry.kind), "share": entry.share, "alpha": alpha, "observed": observed}
            ]
            if entry.kind is Kind.GATE:
                found["log_e"] = observed
        told = self._told()
        if told:
            found["power"] = {"tv": max(told), "probability": 1 - MISS, "laws": len(told)}
        if self.bounds:
            found["tv_at_most"] = max(self.bounds)
        return found

    def _power(self, alpha: float) -> str:
        if not self.visible:
            return ""
        told = self._told()
        if not told:
            return f"{self.samples} samples promise to refute nothing (alpha {alpha:.2g})."
        rest = len(self.visible) - len(told)
        return (
            f"With {self.samples} samples any law at TV >= {_up(max(told))} from the exact one, in any of "
            f"{len(told)} kinds of rows, would have been refuted with probability >= {1 - MISS} "
            f"(alpha {alpha:.2g}); in the best of them from {_up(min(told))} on"
            + (f". Of {rest} more kinds there were too few samples to promise anything." if rest else ".")
        )

    def _certificate(self, alpha: float) -> str:
        """How far any law can be off at most, whatever the test said."""
        if not self.bounds or max(self.bounds) >= 1:
            return ""
        bound = _up(max(self.bounds))
        return f" All of them are within TV {bound} of the exact ones (confidence 1 - {alpha:.2g})."

    def _told(self) -> list[float]:
        """The total variations below one, which promise something."""
        return [tv for tv in self.visible if tv < 1]


def _up(tv: float) -> str:
    """Two significant digits, rounded up.

    >>> _up(0.0412), _up(0.03)
    ('0.042', '0.03')
    """
    unit = 10.0 ** (math.floor(math.log10(tv)) - 1)
    return f"{math.ceil(tv / unit * (1 - 1e-9)) * unit:.2g}"


def finite(value: float) -> float:
    """The number, with infinities cut."""
    return max(-LARGEST_LOG, min(LARGEST_LOG, value))


@lru_cache(maxsize=1024)
def _needed(cells: int, log_alpha: float) -> float:
    return noncentrality(max(cells - 1, 1), math.exp(log_alpha), MISS)


def visible_tv(samples: float, cells: int, alpha: float, *, factor: float = GATE_FACTOR) -> float:
    """Total variation from which on so many samples refute with probability 1 - `MISS`; 1 at most.

    Parameters
    ----------
    samples : of the law, on average.
    cells : of the law.
    alpha : what an e-value or a p-value of this law alone must reach.
    factor : how many times the samples of a chi-square test are needed; that of a gate by default.
    """
    if samples <= 0:
        return 1.0
    # Rounded down so that like laws share one computation.
    log_alpha = math.floor(10 * math.log(min(alpha, 0.5))) / 10
    return min(1.0, math.sqrt(factor * _needed(cells, log_alpha) / (4 * samples)))
