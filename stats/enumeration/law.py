"""The law of a program's outcome, and how far it is from another one."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tokenlaw.stats.enumeration.choices import Node, Weight
from tokenlaw.stats.enumeration.errors import VoidLawError

ROUNDING = 1e-9
"""The total mass of a law may miss one by this much."""

NEGLIGIBLE = 1e-15
"""Probability that doesn't matter beside rounding: loops without end are followed no farther."""


@dataclass(frozen=True)
class Raised:
    """The outcome of a run that raised an exception: an outcome as any other, with its probability."""

    message: str

    def __str__(self) -> str:
        return f"raises {self.message}"


@dataclass(frozen=True)
class Law:
    """Probabilities of a program's outcomes, found by running all its paths, or the most likely ones.

    Attributes
    ----------
    probabilities : of each outcome, as far as it was explored: a lower bound, and the probability itself if
        nothing is unexplored. Fractions if all numbers of the program were.
    unexplored : probability of the paths that were not run; 0 for a complete law.
    paths, seconds : how many paths were run, and how long it took.
    examples : for each outcome the last choice of its shortest path, and what was taken there; None for an
        outcome without any choice.
    neglected : total variation at most between this law and that with the guards that were left out, such as
        the constant of ``log(u + 1e-10)``: what they change, summed over a path, of the worst path.

    Raises
    ------
    VoidLawError
        The probabilities don't sum to one.
    """

    probabilities: Mapping[Hashable, Weight]
    unexplored: Weight = 0
    paths: int = 0
    seconds: float = 0.0
    examples: Mapping[Hashable, tuple[Node, int] | None] = field(default_factory=dict, repr=False)
    neglected: Weight = 0

    def __post_init__(self) -> None:
        total = sum_of([*self.probabilities.values(), self.unexplored])
        rounding = 0 if isinstance(total, Fraction | int) else ROUNDING
        if not abs(float(total - 1)) <= rounding:
            off = f"a difference of {float(total - 1):.3g}"
            raise VoidLawError(
                f"the probabilities of all paths sum to {float(total):.12g} instead of 1, {off}"
            )

    @property
    def complete(self) -> bool:
        """Whether every path was run."""
        return not self.unexplored

    @property
    def endless(self) -> bool:
        """Whether so little was left that it was followed no farther: it may have no end."""
        return 0 < self.unexplored <= NEGLIGIBLE

    def bounds(self, outcome: Hashable) -> tuple[Weight, Weight]:
        """Between which values the probability of an outcome lies."""
        found = self.probabilities.get(outcome, 0)
        return max(found - self.neglected, 0), min(found + self.unexplored + self.neglected, 1)

    def map(self, function: Callable[[Any], Hashable]) -> "Law":
        """The law of a function of the outcome."""
        found: dict[Hashable, list[Weight]] = {}
        examples: dict[Hashable, tuple[Node, int] | None] = {}
        for outcome, weight in self.probabilities.items():
            image = function(outcome)
            found.setdefault(image, []).append(weight)
            if outcome in self.examples:
                examples.setdefault(image, self.examples[outcome])
        masses = {image: sum_of(weights) for image, weights in found.items()}
        return Law(masses, self.unexplored, self.paths, self.seconds, examples, self.neglected)


def total_variation(law: Law, other: Mapping[Hashable, Weight]) -> tuple[Weight, Weight]:
    """Half the sum of absolute differences: between which values it lies, given what isn't known.

    Parameters
    ----------
    law : of the program.
    other : probabilities that it should have; those that are not named are zero.

    Examples
    --------
    >>> total_variation(Law({"heads": 0.625, "tails": 0.25}, unexplored=0.125), {"heads": 0.5, "tails": 0.5})
    (0.125, 0.25)
    """
    excess = sum_of(_above(weight, other.get(outcome, 0)) for outcome, weight in law.probabilities.items())
    return max(excess - law.neglected, 0), min(excess + law.unexplored + law.neglected, 1)


def sum_of(weights: Iterable[Weight]) -> Weight:
    """The sum, without rounding on the way."""
    parts = list(weights)
    return sum(parts) if all(isinstance(part, Fraction | int) for part in parts) else math.fsum(parts)


def _above(weight: Weight, other: Weight) -> Weight:
    return weight - other if weight > other else 0
