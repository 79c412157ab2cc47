"""What programs that draw from ``numpy.random`` are refused, and that nothing stays behind."""

import gc
import itertools
import math
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import special

from tokenlaw.stats.enumeration.errors import UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.law import Raised
from tokenlaw.stats.enumeration.living import living_generators

GENERATOR = np.random.default_rng(1)
P = np.array([0.5, 0.3, 0.2])
Vector = Any


def negative_scale() -> float:
    return np.random.exponential(-1)


@pytest.mark.parametrize(
    "program",
    [
        lambda: np.random.choice(3, p=[0.5, 0.1, 0.1]),
        lambda: np.random.choice(0),
        lambda: np.random.choice(3, 4, replace=False),
        lambda: GENERATOR.integers(3, 3),
        lambda: GENERATOR.multinomial(1, [0.9, 0.9, 0.1]),
        negative_scale,
    ],
)
def test_what_numpy_refuses_is_still_refused_by_numpy(program: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r".") as real:
        program()
    assert exact_law(program).probabilities == {Raised(f"ValueError: {real.value}"): 1}


out_of_reach = (np.random.default_rng(5),)
endless = map(np.random.RandomState(5).randint, itertools.repeat(1000))


def returned() -> Vector:
    return np.random.rand(2)


def raced_and_compared() -> tuple[int, bool]:
    noise = np.random.exponential(size=3)
    return int(np.argmax(P / noise)), noise[0] < 1


def fill(numbers: Vector) -> Vector:
    numbers[:] = np.random.rand(len(numbers))
    return numbers


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda: np.random.normal() < 1, "numpy.random.normal has no exact law"),
        (lambda: np.random.randn(2).argmax(), "numpy.random.randn has no exact law"),
        (lambda: GENERATOR.dirichlet([1, 1]), "numpy.random.Generator.dirichlet"),
        (lambda: np.random.poisson(3), "numpy.random.poisson"),
        (lambda: np.random.set_state(np.random.get_state()), "numpy.random.set_state"),
        (lambda: GENERATOR.bit_generator.random_raw(1), "numpy.random.Generator.bit_generator"),
        (lambda: GENERATOR.random(out=np.empty(2)), r"random\(out="),
        (lambda: GENERATOR.choice(4, 2, replace=False, shuffle=False), "leaves the order"),
        (lambda: [default_rng(1).random() for _ in range(2)], r"default_rng\(1\) is called twice"),
        (lambda: np.random.rand(2).sum() < 1, "a sum of two random numbers"),
        (lambda: np.random.rand(2) @ np.ones(2), "numpy.matmul has no exact law"),
        (lambda: np.sin(np.random.rand(2)), "numpy.sin"),
        (lambda: np.interp(np.random.rand(), [0, 1], [0, 1]), "numpy.interp"),
        (lambda: np.isclose(np.random.rand(), 0.5), "numpy.isclose"),
        (lambda: np.random.rand(2).astype(complex), "a cast to complex128"),
        (lambda: np.asarray(np.random.rand(2), dtype=float), r"float\(\), or a function"),
        (lambda: fill(np.empty(2)), r"float\(\), or a function"),
        (lambda: np.fromiter((np.random.rand() for _ in range(2)), float), r"float\(\), or a function"),
        (lambda: special.softmax(np.random.rand(2)), "."),
        (lambda: special.expit(np.random.rand(2).view(np.ndarray)), "can't read a random number"),
        (returned, "returning it"),
        (lambda: np.argmax(-np.log(np.random.rand(3) + 1e-9) / P), "different laws"),
        (raced_and_compared, "took part in a race"),
        (lambda: out_of_reach[0].random() < 2, "made before"),
        (lambda: next(endless) < 2000, "made before"),
    ],
)
def test_what_cannot_be_decided_is_refused(program: Callable[[], Any], message: str) -> None:
    with pytest.raises(UndecidableError, match=message):
        exact_law(program)


def test_generators_are_seen_that_the_program_has_frozen() -> None:
    """Servers freeze what they have loaded, and then no list of objects has it."""
    mine = (np.random.default_rng(6),)
    gc.freeze()
    with pytest.raises(UndecidableError, match="made before"):
        exact_law(lambda: mine[0].random() < 2)


def test_the_look_for_generators_holds_nothing() -> None:
    """Python itself fails where a tuple that it builds is held by others."""
    young = ["of this test"]
    living_generators()  # from here on only young objects are looked through
    for _ in range(2):
        before = sys.getrefcount(young)
        living_generators()
        assert sys.getrefcount(young) == before
    assert [one for one in gc.get_referrers(young) if type(one) is list] == []


def test_seeding_everything_is_harmless() -> None:
    def program() -> bool:
        random.seed(3)
        np.random.seed(3)
        generator = np.random.default_rng(3)
        return bool(generator.random() < 0.5) and random.random() < 0.5 and np.random.rand() < 0.5

    assert exact_law(program).probabilities[True] == 0.125


def test_nothing_stays_replaced() -> None:
    before = np.random.rand, np.random.default_rng, np.array, math.log, GENERATOR
    exact_law(lambda: GENERATOR.random() < 0.5)
    assert before == (np.random.rand, np.random.default_rng, np.array, math.log, GENERATOR)
    assert type(GENERATOR) is np.random.Generator
