"""The law of a program against that of its spec: how far apart they are, and what that says."""

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.law import Law, sum_of

TOLERANCE = 1e-6
"""Total variation that rounding may cause: programs in float32 reach 1e-7."""


@dataclass(frozen=True)
class Difference:
    """One outcome, with its probability under the program and under the spec."""

    outcome: Hashable
    program: Weight
    spec: Weight

    @property
    def excess(self) -> Weight:
        """How much more often the program has this outcome than it should."""
        return self.program - self.spec


@dataclass(frozen=True)
class Comparison:
    """Two laws of the same outcomes: that of the program, and that of its spec.

    Attributes
    ----------
    program, spec : the laws.
    whole : false if they are those of the beginnings of outcomes: what follows may differ as well.
    """

    program: Law
    spec: Law
    whole: bool = True

    @cached_property
    def rational(self) -> bool:
        """Whether all probabilities are fractions, so that laws can be equal without rounding."""
        laws = (self.program, self.spec)
        weights = [weight for law in laws for weight in _weights(law)]
        return all(isinstance(weight, Fraction | int) for weight in weights)

    @cached_property
    def bounds(self) -> tuple[Weight, Weight]:
        """Between which values the total variation of whole outcomes lies; they differ by what isn't known.

        >>> Comparison(Law({0: 0.5, 1: 0.25}, 0.25), Law({0: 1.0})).bounds
        (0.25, 0.5)
        >>> Comparison(Law({0: 0.5, 1: 0.5}, neglected=0.125), Law({0: 1.0})).bounds
        (0.375, 0.625)
        """
        differences = self.differences
        above = sum_of(max(found.excess, 0) for found in differences)
        below = sum_of(max(-found.excess, 0) for found in differences)
        program, spec = self.program.unexplored, self.spec.unexplored
        neglected = self.program.neglected + self.spec.neglected
        most = max(above + program, below + spec) + neglected if self.whole else 1
        return max(max(above - spec, below - program) - neglected, 0), min(most, 1)

    def allowed(self, tolerance: float | None) -> float:
        """The total variation up to which the laws count as equal.

        Without a ``tolerance`` that is 0 for rational laws, and `TOLERANCE` for others.
        """
        if tolerance is not None:
            return tolerance
        return 0.0 if self.rational else TOLERANCE

    def verdict(self, tolerance: float | None) -> Verdict:
        """Whether they count as equal; ``unknown`` where too much is unexplored to tell."""
        lower, upper = self.bounds
        allowed = self.allowed(tolerance)
        if lower > allowed:
            return Verdict.REFUTED
        return Verdict.HOLDS if upper <= allowed else Verdict.UNKNOWN

    @cached_property
    def differences(self) -> list[Difference]:
        """Every outcome that one of them has, the largest difference first."""
        program, spec = self.program.probabilities, self.spec.probabilities
        outcomes = dict.fromkeys([*program, *spec])
        found = [Difference(outcome, program.get(outcome, 0), spec.get(outcome, 0)) for outcome in outcomes]
        return sorted(found, key=lambda each: abs(float(each.excess)), reverse=True)

    @cached_property
    def impossible(self) -> list[Difference]:
        """Outcomes of the program that the spec never has, the most likely first."""
        if not self.spec.complete:
            return []
        return [each for each in self.differences if each.program > 0 and not each.spec]


def _weights(law: Law) -> list[Weight]:
    return [*law.probabilities.values(), law.unexplored, law.neglected]
