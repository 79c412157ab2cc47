"""What a run knows about one check, and the evidence that it becomes."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tokenlaw.spec.shown_numbers import rounded_up
from tokenlaw.spec.verdicts import SAMPLED, Check, Evidence, Verdict
from tokenlaw.stats.ledger import Entry, Kind
from tokenlaw.stats.places import Place
from tokenlaw.stats.power import MISS, visible_share
from tokenlaw.stats.promises import NO_FIGURE, ONE_BY_ONE, deviation, promised, promised_one_by_one
from tokenlaw.stats.verifier_checks import CHI_SQUARE

MOST_FINDINGS, MOST_LENGTHS = 3, 6

LARGEST_LOG = 1e6
"""Stands for infinity in reports: JSON has none."""


Shown = Mapping[str, Any] | None
"""A law as data to be drawn (`tokenlaw.stats.shown_laws.ShownLaw`); None where there is none."""


@dataclass(frozen=True)
class Finding:
    """What speaks against a check: how much, in words, where it is seen again, and data to be drawn."""

    weight: float
    text: str
    place: Place
    shown: Shown = None


@dataclass(frozen=True)
class Beside:
    """What other statistics say about a law that was tested by chi-square; they decide nothing.

    Attributes
    ----------
    where : kind of rows and scenario.
    likelihood_ratio, degrees_of_freedom : G over the pooled cells.
    worst_cell : p-value of the cell that deviates most, an exact binomial tail times the number of tails.
    """

    where: str
    likelihood_ratio: float
    degrees_of_freedom: int
    worst_cell: float


@dataclass
class LawOutcome:
    """One check of one run.

    Attributes
    ----------
    log_es : scenario to log e-value.
    p_values : those of all tests of the check.
    findings : what refutes the check, if anything does.
    crashes : tracebacks of the implementation.
    bounds : for each law that was tested, what its total variation is at least and at most, with all of alpha
        together.
    visible : for each law that was tested, the smallest total variation that would have been refuted; from
        1 on nothing would have been, and more of the like is as much too little as the square of it.
    unmeasured : laws that could have been refuted, by tests for whose power there is no figure.
    at_best : whether ``visible`` is that of the law that such a test refutes the soonest.
    takes : what would make evidence of it, in words; found out where the figures above don't tell.
    lengths : laws of accepted drafts, to be drawn, and how much each speaks against the check.
    beside : what other statistics say about each law that was tested.
    """

    check: Check
    log_es: dict[str, float] = field(default_factory=dict)
    p_values: list[float] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    exercised: Counter[str] = field(default_factory=Counter)
    bounds: list[tuple[float, float]] = field(default_factory=list)
    visible: list[float] = field(default_factory=list)
    unmeasured: int = 0
    at_best: bool = False
    takes: str = ""
    lengths: list[tuple[float, Shown]] = field(default_factory=list)
    beside: list[Beside] = field(default_factory=list)
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
            statistics |= self._laws()
            told = [found.text for found in self._worst()] or ["Earlier runs showed enough."]
            verdict, message = Verdict.REFUTED, "\n".join(told)
        elif self.crashes:
            verdict, message = Verdict.UNKNOWN, self.crashes[0]
        elif unexercised:
            never = f"never happened: {', '.join(unexercised)}"
            verdict, message = Verdict.NOT_EXERCISED, "; ".join(filter(None, (never, self.takes)))
        elif self.visible and not self.told() and not self.unmeasured:
            verdict, message = Verdict.NOT_EXERCISED, self._too_few(alpha)
        else:
            told = [self._power(alpha), self._certificate(alpha), self._beside()]
            verdict, message = Verdict.HOLDS, " ".join(filter(None, told))
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

    def _laws(self) -> dict[str, Any]:
        """What can be drawn of the findings."""
        shown = [found.shown for found in self._worst() if found.shown is not None]
        return {"laws_shown": shown} if shown else {}

    def _statistics(self, entry: Entry | None, alpha: float) -> dict[str, Any]:
        found: dict[str, Any] = {"samples": self.samples}
        if entry is not None:
            found["evidence"] = SAMPLED
            observed = None if entry.observed is None else finite(entry.observed)
            found["ledger"] = [
                {"kind": str(entry.kind), "share": entry.share, "alpha": alpha, "observed": observed}
            ]
            if entry.kind is Kind.GATE:
                found["log_e"] = observed
        told = self.told()
        if told:
            found["power"] = {"tv": max(told), "probability": 1 - MISS, "laws": len(told)}
        if self.lengths:
            most_telling = sorted(self.lengths, key=lambda pair: -pair[0])[:MOST_LENGTHS]
            found["lengths"] = [shown for _, shown in most_telling]
        if self.beside:
            found["beside"] = asdict(min(self.beside, key=lambda one: one.worst_cell))
        if self.bounds:
            found["tv_at_least"] = max(least for least, _ in self.bounds)
            found["tv_at_most"] = max(most for _, most in self.bounds)
        return found

    def _power(self, alpha: float) -> str:
        told = self.told()
        if not told:
            return NO_FIGURE if self.unmeasured else ""
        if self.check.id in ONE_BY_ONE:
            return promised_one_by_one(self.check.id, self._looked_at(), told[0])
        return promised(self.check.id, self.samples, self.visible, alpha)

    def _too_few(self, alpha: float) -> str:
        """Why the check is no evidence, and what would be."""
        text = f"{self.samples} samples promise to refute nothing (alpha {alpha:.2g})"
        if self.takes and self.check.id == CHI_SQUARE:
            return f"{text}; {self.takes}."
        factor = min(self.visible) ** 2
        if math.isinf(factor):
            return f"{text}; more would be needed."
        needed, times = math.ceil(self.samples * factor), f"a budget {math.ceil(10 * factor) / 10:g} times"
        if self.at_best:
            return (
                f"{text}; at least about {needed} would be needed to refute any law at all: {times} as large."
            )
        return (
            f"{text}; about {needed} would be needed to refute {deviation(self.check.id, 1.0)} "
            f"with probability >= {1 - MISS}: {times} as large."
        )

    def _certificate(self, alpha: float) -> str:
        """How far any law can be off at most, whatever the test said."""
        most = max((most for _, most in self.bounds), default=1.0)
        if most >= 1:
            return ""
        bound = rounded_up(most)
        return f"All of them are within TV {bound} of the exact ones (confidence 1 - {alpha:.2g})."

    def _beside(self) -> str:
        """What else was looked at, of the law that looks worst."""
        if not self.beside:
            return ""
        worst = min(self.beside, key=lambda one: one.worst_cell)
        return (
            f"Of all cells the worst has p = {worst.worst_cell:.2g} ({worst.where}; G there "
            f"{worst.likelihood_ratio:.1f} with {worst.degrees_of_freedom} degrees of freedom)."
        )

    def told(self) -> list[float]:
        """The total variations below one, which promise something.

        Of a check without chance it is the share of those it looks at that are wrong: so far is what is seen
        of them from what is right.
        """
        one_by_one = [visible_share(self._looked_at())] if self.check.id in ONE_BY_ONE else []
        return [tv for tv in self.visible + one_by_one if tv < 1]

    def _looked_at(self) -> int:
        """How many a check without chance looked at, one by one."""
        return self.exercised[self.check.exercised_by[0]]


def finite(value: float) -> float:
    """The number, with infinities cut."""
    return max(-LARGEST_LOG, min(LARGEST_LOG, value))
