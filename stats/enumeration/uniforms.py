"""A uniform random number of which no more is decided than what the program has asked.

It is an interval, at first [0, 1), that every comparison splits: the side is a random choice with its
exact probability, and the interval is narrowed to it. Two decisions from one uniform are so seen exactly.

Uniforms that were compared with each other are ranked: they lie in the same interval, in a known order,
and are else as independent as before. Split at a threshold, the number of those below it is binomial, and
they are the first of the order; so ranked uniforms stay ranked uniforms, whatever they are compared with.

A uniform is a real number here. That generators give multiples of 2^-53 (or 2^-24), and so for instance
zero with a probability of 2^-53, is left out of account.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import comb

from tokenlaw.stats.enumeration import monotone
from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.monotone import Steps, ratio
from tokenlaw.stats.enumeration.tape import Tape


@dataclass(frozen=True, slots=True)
class Threshold:
    """On which side of a threshold a number is that follows from a uniform.

    Attributes
    ----------
    threshold : of the uniform itself.
    steps : the function of the uniform that was compared.
    """

    threshold: Weight
    steps: Steps = ()

    def words(self, taken: int, weight: Weight) -> str:
        """
        >>> Threshold(0.25).words(1, 0.75)
        'u >= 0.25 (probability 0.75)'
        """
        value = float(monotone.forward(self.steps, self.threshold))
        below = (taken == 0) == monotone.is_rising(self.steps)
        name = monotone.words(self.steps, "u")
        return f"{name} {'<' if below else '>='} {value:.6g} (probability {float(weight):.4g})"


@dataclass(frozen=True, slots=True)
class Piece:
    """Between which of several sorted thresholds a uniform lies."""

    edges: Sequence[Weight]

    def words(self, taken: int, weight: Weight) -> str:
        """
        >>> Piece([0, 0.25, 1]).words(1, 0.75)
        'u in [0.25, 1) (probability 0.75)'
        """
        low, high = float(self.edges[taken]), float(self.edges[taken + 1])
        return f"u in [{low:.6g}, {high:.6g}) (probability {float(weight):.4g})"


@dataclass(frozen=True, slots=True)
class RankSplit:
    """How many of several ranked uniforms are below a threshold."""

    threshold: Weight

    def words(self, taken: int, weight: Weight) -> str:
        """
        >>> RankSplit(0.25).words(1, 0.375)
        '1 of the compared uniforms below 0.25 (probability 0.375)'
        """
        below = f"{taken} of the compared uniforms below {float(self.threshold):.6g}"
        return f"{below} (probability {float(weight):.4g})"


class Order:
    """Which of two uniforms is smaller."""

    def words(self, taken: int, weight: Weight) -> str:
        """
        >>> Order().words(0, 0.5)
        'the first of two uniforms is the smaller (probability 0.5)'
        """
        which = ("first", "second")[taken]
        return f"the {which} of two uniforms is the smaller (probability {float(weight):.4g})"


ORDER = Order()


class Uniform:
    """A uniform random number in [low, high), all that is known of it.

    Parameters
    ----------
    tape : decides.
    row : path of the tape that it belongs to.

    Attributes
    ----------
    ranked : uniforms in the same interval, itself among them, in ascending order; None if it wasn't compared
        with others.
    clock : which function of it rings in races, if it took part in one; its interval is void then.
    """

    __slots__ = ("__weakref__", "clock", "high", "low", "ranked", "row", "run", "tape")

    low: Weight
    high: Weight

    def __init__(self, tape: Tape, row: int = 0) -> None:
        self.tape, self.row, self.run = tape, row, tape.run
        self.low, self.high = 0, 1
        self.ranked: list[Uniform] | None = None
        self.clock: object = None

    @property
    def untouched(self) -> bool:
        """Whether it wasn't compared with thresholds, nor with others but in races."""
        return self.low == 0 and self.high == 1 and self.ranked is None

    @property
    def is_new(self) -> bool:
        """Whether nothing has been decided yet."""
        return self.clock is None and self.untouched

    def below(self, threshold: Weight, steps: Steps = ()) -> bool:
        """Whether it is below the threshold; steps say, for people, as what it was compared."""
        tape = self.tape
        if self.run != tape.run:
            tape.check_run(self.run)
        low, high = self.low, self.high
        if low == 0 and high == 1 and type(threshold) is Fraction:
            if not 0 < threshold.numerator < threshold.denominator:
                return threshold.numerator > 0
        elif threshold <= low or threshold >= high:
            return threshold > low
        if self.ranked is not None or self.clock is not None:
            return self._ranked_below(threshold)
        share = threshold if low == 0 and high == 1 else ratio(threshold - low, high - low)
        if tape.choose([share, 1 - share], Threshold(threshold, steps), self.row) == 0:
            self.high = threshold
            return True
        self.low = threshold
        return False

    def piece(self, thresholds: Sequence[Weight]) -> int:
        """How many of the ascending thresholds it isn't below: one choice for all of them."""
        if self.ranked is not None or self.clock is not None:
            return bisect_left(thresholds, True, key=self.below)
        self.tape.check_run(self.run)
        inner = sorted({value for value in thresholds if self.low < value < self.high})
        edges = [self.low, *inner, self.high]
        if inner:
            length = self.high - self.low
            weights = [ratio(high - low, length) for low, high in pairwise(edges)]
            taken = self.tape.choose(weights, Piece(edges), self.row)
            self.low, self.high = edges[taken], edges[taken + 1]
        return sum(value <= self.low for value in thresholds)

    def smaller_than(self, other: "Uniform") -> bool:
        """Which of two is smaller; from then on they are ranked."""
        self._align(other)
        if self.high <= other.low or other.high <= self.low:
            return self.high <= other.low
        mine, others = self.ranked or [self], other.ranked or [other]
        if mine is not others:
            self._merge(mine, others)
        ranked = self.ranked or []
        return ranked.index(self) < ranked.index(other)

    def _align(self, other: "Uniform") -> None:
        """Split both at each other's borders: then they have the same interval, or no number in common."""
        for threshold in (other.low, other.high):
            self.below(threshold)
        for threshold in (self.low, self.high):
            other.below(threshold)

    def _merge(self, first: "list[Uniform]", second: "list[Uniform]") -> None:
        """Shuffle two rankings into one: all interleavings are equally likely."""
        merged: list[Uniform] = []
        left, right = list(first), list(second)
        while left and right:
            share = Fraction(len(left), len(left) + len(right))
            taken = self.tape.choose([share, 1 - share], ORDER, self.row)
            merged.append((left, right)[taken].pop(0))
        merged += left + right
        for uniform in merged:
            uniform.ranked = merged

    def _ranked_below(self, threshold: Weight) -> bool:
        if self.clock is not None:
            self.tape.undecidable("comparing noise with a threshold", "after it took part in a race")
        ranked = self.ranked or []
        share = ratio(threshold - self.low, self.high - self.low)
        size = len(ranked)
        weights = [comb(size, k) * share**k * (1 - share) ** (size - k) for k in range(size + 1)]
        taken = self.tape.choose(weights, RankSplit(threshold), self.row)
        for group, low, high in (
            (ranked[:taken], self.low, threshold),
            (ranked[taken:], threshold, self.high),
        ):
            for uniform in group:
                uniform.low, uniform.high = low, high
                uniform.ranked = group if len(group) > 1 else None
        return self.high <= threshold
