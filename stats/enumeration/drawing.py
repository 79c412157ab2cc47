"""Draws of whole values: one of several, a permutation, counts.

They are decided at once, with their exact weights, since nothing else of the random numbers behind them
is seen.
"""

import math
from collections.abc import Hashable, MutableSequence, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import comb
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from tokenlaw.stats.enumeration.choices import Draw, Question, Weight
from tokenlaw.stats.enumeration.deciding import Among
from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.images import Image, operand
from tokenlaw.stats.enumeration.lazy_numbers import LazyNumber
from tokenlaw.stats.enumeration.monotone import EXPONENTIAL, GUMBEL
from tokenlaw.stats.enumeration.tape import Tape
from tokenlaw.stats.enumeration.uniforms import Uniform

MOST_OUTCOMES = 100_000
"""Outcomes that one draw may have, at most."""

MOST_KNOWN = 10_000
"""Distributions that are kept, at most."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Outcomes with a probability above zero.

    Attributes
    ----------
    places : their indices.
    weights : their probabilities, which sum to one.
    question : for people.
    """

    places: Sequence[int]
    weights: Sequence[Weight]
    question: Question


_seeds: "WeakKeyDictionary[Tape, tuple[int, set[Hashable]]]" = WeakKeyDictionary()


class Drawer:
    """Draws values for the functions of one module.

    Parameters
    ----------
    tape : decides.
    module : its name, for people.
    """

    def __init__(self, tape: Tape, module: str) -> None:
        self.tape, self.module = tape, module
        self._known: dict[Hashable, Distribution | None] = {}

    def refuse(self, function: str, why: str = "has no exact law here") -> NoReturn:
        """Stop the run: the function is named, and the program's line."""
        self.tape.undecidable(f"{self.module}.{function}", why)

    def uniform(self, function: str = "random") -> LazyNumber:
        """A number in [0, 1)."""
        if self.tape.rows > 1:
            self._no_rows(function)
        return LazyNumber(Uniform(self.tape))

    def exponential(self, function: str) -> LazyNumber:
        """An exponential number of rate one."""
        if self.tape.rows > 1:
            self._no_rows(function)
        return LazyNumber(Uniform(self.tape), EXPONENTIAL)

    def gumbel(self, function: str) -> LazyNumber:
        """A standard Gumbel number."""
        if self.tape.rows > 1:
            self._no_rows(function)
        return LazyNumber(Uniform(self.tape), GUMBEL)

    def below(self, count: int, function: str) -> int:
        """One of 0 .. count - 1, all equally likely."""
        if self.tape.rows > 1:
            self._no_rows(function)
        if count > MOST_OUTCOMES:
            self.refuse(function, f"has more than {MOST_OUTCOMES} outcomes")
        if count <= 1:
            return 0
        return self.tape.choose([Fraction(1, count)] * count, Draw(f"{self.module}.{function}"))

    def index(self, weights: Sequence[Weight], function: str) -> int:
        """One of several, by weights that are at least zero; their sum needn't be one.

        Raises
        ------
        ValueError
            They aren't numbers above or equal to zero, or all are zero.
        """
        known = self.distribution(weights, function)
        if known is None:
            raise ValueError(f"{self.module}.{function}: {list(weights)} are no weights")
        return self.one_of(known, function)

    def one_of(self, known: Distribution, function: str) -> int:
        """One of several, by a distribution that was made before."""
        if self.tape.rows > 1:
            self._no_rows(function)
        if len(known.places) == 1:
            return known.places[0]
        return known.places[self.tape.choose(known.weights, known.question)]

    def distribution(
        self, weights: Sequence[Weight], function: str, *, cumulative: bool = False
    ) -> Distribution | None:
        """The distribution that weights stand for; None if they are none.

        Programs draw from the same few again and again, so those are kept.
        """
        key = (cumulative, function, *map(_key, weights))
        if key not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[key] = _distribution(weights, f"{self.module}.{function}", cumulative)
        return self._known[key]

    def without_replacement(self, weights: Sequence[Weight], count: int, function: str) -> list[int]:
        """Several different ones, each by the weights of those that are left."""
        left: list[Weight] = list(weights)
        found: list[int] = []
        for _ in range(count):
            found.append(self.index(left, function))
            left[found[-1]] = 0
        return found

    @as_the_real_one
    def shuffle(self, values: MutableSequence[Any], function: str) -> None:
        """Permute in place, all orders equally likely."""
        for last in range(len(values) - 1, 0, -1):
            other = self.below(last + 1, function)
            values[last], values[other] = values[other], values[last]

    def binomial(self, count: int, probability: Weight, function: str) -> int:
        """Number of successes in independent trials."""
        rest = 1 - probability
        weights = [comb(count, k) * probability**k * rest ** (count - k) for k in range(count + 1)]
        return self.index(weights, function)

    def multinomial(self, count: int, weights: Sequence[Weight], function: str) -> list[int]:
        """How often each of several outcomes comes in independent trials, one outcome after the other."""
        found: list[int] = []
        for number, weight in enumerate(weights):
            rest = sum(weights[number:])
            share = 1 if number == len(weights) - 1 else 0 if rest <= 0 else min(weight / rest, 1)
            found.append(self.binomial(count - sum(found), share, function))
        return found

    def seed(self, seed: object, function: str, state: Hashable) -> None:
        """A generator starts from a seed, which is harmless once in a run: the law is over all seeds.

        The same seed again would give the same numbers again.

        Parameters
        ----------
        seed, function : for people; a seed that is None is another one at every call.
        state : of a real generator that starts from the seed.
        """
        run, seeds = _seeds.get(self.tape, (0, set()))
        if run != self.tape.run:
            seeds = set()
            _seeds[self.tape] = self.tape.run, seeds
        if seed is not None and state in seeds:
            self.refuse(
                f"{function}({seed!r})", "is called twice in one run: its random numbers would repeat"
            )
        seeds.add(state)

    def _no_rows(self, function: str) -> NoReturn:
        self.refuse(
            function, "doesn't say to which row of the batch a number belongs; enumerate one row at a time"
        )


def _key(weight: Any) -> Hashable:
    """Equal for equal weights of the same kind; quicker to find than a fraction."""
    kind = type(weight)
    if kind is float:
        return float(weight)
    if kind is Fraction or kind is int:
        return weight.numerator, weight.denominator
    number = operand(weight)
    return id(weight) if number is None or isinstance(number, Image) else _key(number)


def _distribution(weights: Sequence[Any], source: str, cumulative: bool) -> Distribution | None:
    numbers = [operand(weight) for weight in weights]
    if not all(isinstance(number, int | float | Fraction) and math.isfinite(number) for number in numbers):
        return None
    exact: list[Any] = [Fraction(number) if isinstance(number, int) else number for number in numbers]
    if cumulative:
        exact = [after - before for before, after in pairwise([0, *exact])]
    places = [place for place, weight in enumerate(exact) if weight > 0]
    if not places or any(weight < 0 for weight in exact):
        return None
    total = sum(exact)
    question = Draw(source) if len(places) == len(exact) else Among(source, places)
    return Distribution(places, [exact[place] / total for place in places], question)
