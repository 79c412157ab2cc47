"""The functions of ``random``, and of ``math`` on random numbers, against closed forms."""

import itertools
import math
import random
import secrets
import tempfile
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import log
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenlaw.stats.enumeration.exact_law import exact_law

few = settings(max_examples=20)
HALF, THIRD, NAN = Fraction(1, 2), Fraction(1, 3), float("nan")
GENERATOR = random.Random(5)
bound_earlier = GENERATOR.random
imported_by_name = random.random


class Slotted:
    """Holds a function where there is no dictionary."""

    __slots__ = ("draw",)

    def __init__(self) -> None:
        self.draw = imported_by_name


HOLDER = Slotted()


@few
@given(st.fractions(Fraction(1, 9), Fraction(8, 9), max_denominator=9), st.integers(2, 4))
def test_compared_uniforms_stay_exact(bound: Fraction, count: int) -> None:
    """The largest of n is below t with probability t^n; two are below t and in order with t^2 / 2."""

    def program() -> tuple[bool, bool, bool]:
        numbers = [random.random() for _ in range(count)]
        first, second = numbers[:2]
        return first < second, max(first, second) < bound, max(numbers) < bound

    law = exact_law(program)
    assert law.probabilities[True, True, True] == bound**count / 2
    assert law.map(lambda outcome: outcome[1]).probabilities[True] == bound**2
    assert law.map(lambda outcome: outcome[0]).probabilities[True] == HALF


def test_random_keys_shuffle() -> None:
    law = exact_law(lambda: sorted(range(4), key=lambda _: random.random()))
    assert law.probabilities == dict.fromkeys(itertools.permutations(range(4)), Fraction(1, 24))


def test_random_powers_draw_without_replacement() -> None:
    """The largest u ** (1 / w) has the law of the weights (Efraimidis and Spirakis, 2006)."""
    weights = [0.5, 0.3, 0.2]
    law = exact_law(lambda: max(range(3), key=lambda place: random.random() ** (1 / weights[place])))
    assert [law.probabilities[place] for place in range(3)] == pytest.approx(weights, abs=1e-15)


def equals_itself() -> bool:
    one = other = random.random()
    return one <= other and not (one < other or one != other)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda: math.log(random.random()) < -1, math.exp(-1)),
        (lambda: log(random.random()) < -1, math.exp(-1)),
        (lambda: -math.log(1 - random.random()) / 3 > 0.5, math.exp(-1.5)),
        (lambda: math.log(random.random()) < math.log(0.3) and True, 0.3),
        (lambda: random.random() ** 2 < 0.25, 0.5),
        (lambda: math.sqrt(random.random()) > 0.5, 0.75),
        (lambda: 1 / (1 + random.random()) < 0.8, 0.75),
        (lambda: math.exp(-random.random()) < 0.5, 1 - math.log(2)),
        (lambda: 2 ** random.random() < 1.5, math.log2(1.5)),
        (lambda: math.log10(random.random()) + math.log2(4) > 1, 0.9),
        (lambda: random.expovariate(2) < 0.5, 1 - math.exp(-1)),
        (lambda: random.uniform(-1, 3) < 0, 0.25),
        (lambda: (random.random() - 0.5) ** 2 < 0.01, 0.2),
        (lambda: max(random.random(), 0.5) < 0.75, 0.75),
        (lambda: divmod(random.random(), 0.4)[1] < 0.1, 0.3),
        (lambda: random.random() > NAN or random.random() <= NAN, 0),
        (lambda: random.random() == 0.5, 0),
        (equals_itself, 1),
        (lambda: isinstance(random.random(), float), 1),
    ],
)
def test_monotone_functions_are_inverted(program: Callable[[], bool], expected: float) -> None:
    law = exact_law(program)
    assert float(law.probabilities.get(True, 0)) == pytest.approx(expected, abs=1e-14)


def two_thresholds(low: float, high: float) -> tuple[bool, bool]:
    noise = random.expovariate(1.5)
    return noise < low, math.exp(-noise) > high


@few
@given(st.floats(0.1, 2), st.floats(0.1, 0.9))
def test_an_exponential_stays_narrowed(low: float, high: float) -> None:
    law = exact_law(lambda: two_thresholds(low, high))
    other = -math.log(high)
    both = 1 - math.exp(-1.5 * min(low, other))
    assert law.probabilities[True, True] == pytest.approx(both, abs=1e-14)
    assert law.map(lambda outcome: outcome[0]).probabilities[True] == pytest.approx(1 - math.exp(-1.5 * low))


def shuffled() -> list[int]:
    deck = [1, 2, 3]
    random.shuffle(deck)
    return deck


@pytest.mark.parametrize(
    ("program", "size"),
    [
        (lambda: random.choice("abc"), 3),
        (lambda: random.randint(1, 6), 6),
        (lambda: random.randrange(0, 10, 2), 5),
        (lambda: random.getrandbits(3), 8),
        (lambda: random.choices("abcd")[0], 4),
        (lambda: int(random.random() * 7), 7),
        (lambda: math.floor(1 + 5 * random.random()), 5),
        (lambda: tuple(random.sample(range(4), 2)), 12),
        (lambda: tuple(random.sample("ab", 2, counts=[2, 2])), 4),
        (shuffled, 6),
        (lambda: GENERATOR.randrange(3), 3),
        (lambda: random.Random(7).choice("ab"), 2),
        (lambda: random.SystemRandom().randrange(5), 5),
        (lambda: secrets.randbelow(4), 4),
        (lambda: secrets.choice("ab"), 2),
        (lambda: secrets.randbits(2), 4),
        (lambda: bound_earlier() < HALF, 2),
        (lambda: imported_by_name() < HALF, 2),
        (lambda: HOLDER.draw() < HALF, 2),
        (partial(lambda draw: draw() < HALF, random.random), 2),
        (lambda draw=random.random: draw() < HALF, 2),
        (lambda: (tempfile.TemporaryDirectory().cleanup(), random.random() < HALF), 2),
    ],
)
def test_every_generator_is_seen(program: Callable[[], Any], size: int) -> None:
    masses = list(exact_law(program).probabilities.values())
    if size == 4 and len(masses) == 4 and len(set(masses)) == 2:  # two of a, two of b, without replacement
        assert sorted(masses) == [Fraction(1, 6)] * 2 + [THIRD] * 2
    else:
        assert masses == [Fraction(1, size)] * size
