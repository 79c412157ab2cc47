"""What makes an enumerated law untrustworthy is found and said: state, hidden numbers, lost probability."""

import contextlib
import itertools
import json
import random
import statistics
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tokenlaw.stats.enumeration.choices import Draw, Weight
from tokenlaw.stats.enumeration.errors import NotRepeatableError, UndecidableError, VoidLawError
from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.law import Law
from tokenlaw.stats.enumeration.states import same_state
from tokenlaw.stats.enumeration.tape import Tape

HALF = Fraction(1, 2)


def by_hand(weights: list[Weight]) -> Callable[[Tape], list[Any]]:
    """A source that puts one choice behind ``random.random``, whatever its weights sum to."""

    class Source:
        def __init__(self, tape: Tape) -> None:
            self.tape = tape

        def __enter__(self) -> None:
            self.real = random.random
            module: Any = random
            module.random = lambda: self.tape.choose(weights, Draw("by hand"))

        def __exit__(self, *exception: object) -> None:
            random.random = self.real

    return lambda tape: [Source(tape)]


def _changing_weights() -> Callable[[], Any]:
    calls = itertools.count(2)
    return lambda: random.random() < Fraction(1, next(calls))


def _fewer_choices() -> Callable[[], Any]:
    calls = itertools.count()
    return lambda: next(calls) == 0 and random.random() < HALF


def _more_choices() -> Callable[[], Any]:
    calls = itertools.count()
    return lambda: [random.random() < HALF for _ in range(next(calls))] and "done"


def _a_new_state() -> Callable[[], Any]:
    calls = itertools.count()

    def program() -> list[bool]:
        first = random.random() < Fraction(3, 4)
        if next(calls) > 1:
            same_state("late")
        return [first, random.random() < Fraction(1, 4)]

    return program


def _changing_outcome() -> Callable[[], Any]:
    calls = itertools.count()
    return lambda: (random.random() < HALF, next(calls))


def _counting() -> Callable[[], Any]:
    """The first path is run twice, the other one once; from then on outcomes are others."""
    calls = itertools.count(1)

    def program() -> str:
        bool(random.random() < HALF)
        return "one" if next(calls) < 4 else "other"

    return program


def _remembering() -> Callable[[], Any]:
    """Only the path that is run last is remembered, and is another one when it is run again."""
    seen: set[bool] = set()

    def program() -> str:
        below = random.random() < Fraction(1, 3)
        kept = below in seen
        seen.update({below} & {True})
        return f"{below} again" if kept else f"{below}"

    return program


def _kept_number() -> Callable[[], Any]:
    kept: list[Any] = []

    def program() -> bool:
        kept.append(random.random())
        return bool(kept[0] < HALF)

    return program


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_changing_weights, "choice 1 differs"),
        (_fewer_choices, "0 random choices where it made more"),
        (_more_choices, "and then to another choice"),
        (_changing_outcome, "the same choices led to"),
        (_counting, "the same choices led to 'one' and then to 'other'"),
        (_remembering, "led to 'True' and then to 'True again'"),
        (_kept_number, "drawn in an earlier run"),
    ],
)
def test_state_between_runs_is_found(make: Callable[[], Callable[[], Any]], message: str) -> None:
    with pytest.raises(NotRepeatableError, match=message):
        exact_law(make())


def test_states_that_come_and_go_give_no_law() -> None:
    with pytest.raises((NotRepeatableError, VoidLawError)):
        exact_law(_a_new_state())


def test_places_are_those_of_the_program_not_of_libraries() -> None:
    for program in (lambda: json.dumps([random.random()]), lambda: statistics.mean([random.random(), 0.5])):
        with pytest.raises(UndecidableError, match=r"test_enumeration_faults.py:\d+ `for program in"):
            exact_law(program)
    with pytest.raises(UndecidableError, match="what the program returns: "):
        exact_law(lambda: random.random())


@pytest.mark.parametrize("kind", [Exception, BaseException])
def test_a_program_cannot_swallow_a_refusal(kind: type[BaseException]) -> None:
    def program() -> str:
        try:
            return str(float(random.random()))
        except kind:
            return "swallowed"

    with pytest.raises(UndecidableError, match=r"test_enumeration_faults.py:\d+ `return str\(float"):
        exact_law(program)


def test_numbers_of_other_threads_are_refused() -> None:
    def program() -> bool:
        found = []

        def draw() -> None:
            with contextlib.suppress(BaseException):
                found.append(random.random() < HALF)

        thread = threading.Thread(target=draw)
        thread.start()
        thread.join()
        return bool(found)

    with pytest.raises(UndecidableError, match="another thread"):
        exact_law(program)


def random_number() -> float:
    return random.random()


def test_a_mass_that_is_not_one_is_void() -> None:
    with pytest.raises(VoidLawError, match=r"sum to 0\.9"):
        exact_law(random_number, sources=by_hand([0.5, 0.4]))
    with pytest.raises(VoidLawError, match=r"a difference of -1e-13$"):
        Law({0: 1 - Fraction(1, 10**13)})
