"""The laws of a run together: the weighted average of their e-values, as a check of its own.

Many small deviations, each too little for its own check, add up here. It costs no alpha:

- Each gate's e-value is a test martingale in all that was seen so far, so their average with weights fixed
  before the first draw is one too, whatever the dependence between them. By Ville's inequality it ever
  reaches 1 / (alpha s) with probability at most alpha s, where s is the part of alpha of all gates together.
- A gate with the part w of alpha refutes alone when e >= 1 / (alpha w). Its term of the average is e w / s,
  which then is at least 1 / (alpha s): the average refutes as well. So whatever a gate refutes alone lies
  within the one event whose probability was just bounded.

Earlier runs that count along (``--continue``) multiply into each gate's e-value, and the average is taken of
the products: fresh random numbers continue each martingale, and so their average.

Source: Vovk and Wang, Annals of Statistics 49, 2021 (the average is the best way to combine e-values of
unknown dependence).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenlaw.spec.shown_numbers import rounded_up
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.e_values import log10_of
from tokenlaw.stats.law_outcome import finite
from tokenlaw.stats.ledger import Entry, Ledger
from tokenlaw.stats.power import MISS

MOST_GATES = 4
"""Gates that a refutation names."""

LEAST_PART = 0.01
"""Gates that make up less of the average aren't named."""

EVENT = "laws with evidence"


@dataclass(frozen=True)
class Together:
    """The average of a ledger's gates.

    Attributes
    ----------
    ledger : with at least one gate.
    verdicts : check id to the verdict of each gate's own row.
    visible : check id to the smallest total variations that each gate would have refuted alone, below 1.
    """

    ledger: Ledger
    verdicts: Mapping[str, Verdict]
    visible: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def evidential(self) -> int:
        """How many gates had something to say."""
        return sum(verdict is not Verdict.NOT_EXERCISED for verdict in self.verdicts.values())

    @property
    def alone(self) -> list[str]:
        """Gates that refute without the others."""
        return [entry.name for entry in self.ledger.gates() if self.ledger.refutes(entry.name)]

    def verdict(self) -> Verdict:
        """Refuted by the average; otherwise no better than its gates."""
        if self.ledger.gates_refuted:
            return Verdict.REFUTED
        if self._unknown():
            return Verdict.UNKNOWN
        return Verdict.HOLDS if self.evidential else Verdict.NOT_EXERCISED

    def message(self) -> str:
        """The average, and what it is made of, or what it would have seen."""
        if self.verdict() is Verdict.NOT_EXERCISED:
            return f"never happened: {EVENT}"
        head = (
            f"Weighted average of the e-values of {len(self.verdicts)} checks: log10 e = "
            f"{log10_of(self.ledger.gates_log_e)} ({self._needed():.1f} refutes)"
        )
        if self.verdict() is Verdict.REFUTED:
            alone = f"enough alone: {', '.join(self.alone)}" if self.alone else "none is enough alone"
            return "\n".join([f"{head}; {alone}.", *self._terms()])
        if self._unknown():
            return f"{head}, but part of it is unknown: {', '.join(self._unknown())}."
        return f"{head}. {self._power()}"

    def statistics(self) -> dict[str, Any]:
        """Plain JSON data."""
        told = [tv for tvs in self.visible.values() for tv in tvs]
        power = {"power": {"tv": max(told), "probability": 1 - MISS, "laws": len(told)}} if told else {}
        return power | {
            "log_e": finite(self.ledger.gates_log_e),
            "gates": [
                {"check": entry.name, "weight": self._weight(entry), "log_e": finite(entry.observed or 0.0)}
                for entry in self.ledger.gates()
            ],
        }

    def _power(self) -> str:
        """What is promised: nothing beyond what the gates promise one by one."""
        alone = [-math.log10(self.ledger.alpha_of(entry.name)) for entry in self.ledger.gates()]
        told = f"What refutes one of them refutes this too{self._seen()}."
        if len(alone) == 1:
            return told
        least, most = f"{min(alone):.1f}", f"{max(alone):.1f}"
        instead = least if least == most else f"{least} to {most}"
        return (
            f"{told} One that shows alike in all of them is refuted from log10 e = {self._needed():.1f} in "
            f"each on, instead of {instead}."
        )

    def _seen(self) -> str:
        """The deviations that one of the gates would have seen alone, and that nothing else is promised."""
        told = {min(tvs): check for check, tvs in self.visible.items() if tvs}
        if not told:
            return "; no smaller deviation is promised to be seen"
        laws = [tv for tvs in self.visible.values() for tv in tvs]
        return (
            f": any of {len(laws)} laws at TV >= {rounded_up(max(laws))} from the exact one with "
            f"probability >= {1 - MISS}, the best of them ({told[min(told)]}) from {rounded_up(min(told))} "
            "on; no smaller deviation is promised to be seen"
        )

    def _terms(self) -> list[str]:
        """The gates that the average is made of, the largest part first."""
        total = self.ledger.gates_log_e
        lines: list[str] = []
        for entry in sorted(self.ledger.gates(), key=self._log_term, reverse=True)[:MOST_GATES]:
            alone = -math.log10(self.ledger.alpha_of(entry.name))
            text = (
                f"  {entry.name}: log10 e = {log10_of(entry.observed or 0.0)} ({alone:.1f} refutes it alone)"
            )
            part = math.exp(self._log_term(entry) - total) if math.isfinite(total) else 1.0
            if part >= LEAST_PART or not lines:
                lines.append(f"{text}, {part:.0%} of the average" if math.isfinite(total) else text)
        return lines

    def _log_term(self, entry: Entry) -> float:
        return math.log(self._weight(entry)) + (entry.observed or 0.0)

    def _weight(self, entry: Entry) -> float:
        return self.ledger.alpha_of(entry.name) / self.ledger.gates_alpha

    def _needed(self) -> float:
        """Decimal logarithm of the average from which on it refutes."""
        return -math.log10(self.ledger.gates_alpha)

    def _unknown(self) -> list[str]:
        return [check for check, verdict in self.verdicts.items() if verdict is Verdict.UNKNOWN]
