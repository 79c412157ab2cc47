"""What programs that draw from ``random`` are refused, and that nothing stays behind."""

import itertools
import json
import math
import random
import secrets
import struct
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from tokenlaw.stats.enumeration.errors import NotRepeatableError, UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
out_of_reach = (random.random,)


class Fixed(random.Random):
    """A generator of the program's own making, which isn't random."""

    def random(self) -> float:
        return 0.25


def test_a_generator_of_the_programs_own_is_left_alone() -> None:
    law = exact_law(lambda: (Fixed().choices("abcd")[0], Fixed().random() < 0.5))
    assert law.probabilities == {("b", True): 1}


def test_seeding_is_harmless_and_leaves_no_trace() -> None:
    def program() -> bool:
        random.seed(3)
        return random.random() < THIRD

    state = random.getstate()
    assert exact_law(program).probabilities == {True: THIRD, False: 1 - THIRD}
    assert random.getstate() == state
    assert type(random.random()) is float
    assert "random" not in vars(random.Random)


def seeded_twice() -> bool:
    return random.Random(1).random() < random.Random(1).random()


def returned() -> float:
    return random.random()


def below_its_square() -> bool:
    u = random.random()
    return u < u**2


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda: random.gauss(0, 1) < 1, "random.gauss has no exact law"),
        (lambda: random.betavariate(1, 2) < 1, "random.betavariate"),
        (lambda: random.randbytes(2), "random.randbytes"),
        (lambda: secrets.token_hex(2), "random.randbytes"),
        (lambda: random.getrandbits(64), "getrandbits has more than 100000 outcomes"),
        (lambda: int(1e9 * random.random()), "rounding to an integer has more than"),
        (lambda: int(-math.log(random.random())), "rounding to an integer"),
        (lambda: random.setstate(random.getstate()), "would repeat random numbers"),
        (seeded_twice, r"seed\(1\) is called twice"),
        (lambda: float(random.random()), r"float\(\), or a function that reads a float"),
        (lambda: bool(random.random()), "the truth of a random number"),
        (lambda: f"{random.random():.3f}", "printing a random number"),
        (lambda: str(random.random()), "printing a random number"),
        (lambda: {random.random(): 1}, r"hash\(\), or returning a random number"),
        (returned, "returning it"),
        (lambda: [1, 2][random.random()], "list indices must be integers"),
        (lambda: json.dumps(random.random()), "not JSON serializable"),
        (lambda: math.sin(random.random()) < 0.5, "reads a float"),
        (lambda: random.random() + random.random() < 1, "a sum of two random numbers"),
        (lambda: random.random() * random.random() < 1, "a product of two random numbers"),
        (lambda: random.random() < 0.5 * random.random(), "comparing two random numbers of different laws"),
        (below_its_square, "comparing two functions of one random number"),
        (lambda: round(random.random(), 2), r"round\(\) to digits"),
        (lambda: random.random() ** random.random(), "a random power"),
        (lambda: Fraction(random.random()) < HALF, "as_integer_ratio"),
        (lambda: struct.pack("d", random.random()), "reads a float"),
        (lambda: random.random().hex(), "`.hex` of a random number"),
        (lambda: out_of_reach[0]() < 2, "import the module instead"),
    ],
)
def test_what_cannot_be_decided_is_refused(program: Callable[[], Any], message: str) -> None:
    with pytest.raises(UndecidableError, match=message):
        exact_law(program)


def test_a_refusal_names_the_line() -> None:
    with pytest.raises(UndecidableError, match=r"^test_python_refusals.py:\d+ `exact_law\(lambda: bool"):
        exact_law(lambda: bool(random.random()))


def test_a_generator_that_keeps_going_is_noticed() -> None:
    numbers = itertools.count()
    with pytest.raises(NotRepeatableError):
        exact_law(partial(lambda: (random.random() < HALF, next(numbers))))
