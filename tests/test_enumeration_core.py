"""The core of exact enumeration: bounds, merging, fractions, rows and outcomes."""

import itertools
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenlaw.stats.enumeration import choices
from tokenlaw.stats.enumeration.choices import Draw
from tokenlaw.stats.enumeration.errors import (
    EnumerationError,
    UndecidableError,
)
from tokenlaw.stats.enumeration.exact_law import exact_law, exact_laws
from tokenlaw.stats.enumeration.law import Law, Raised, total_variation
from tokenlaw.stats.enumeration.sources.python_random import PythonRandom
from tokenlaw.stats.enumeration.states import same_state
from tokenlaw.stats.enumeration.tape import Source, Tape

few = settings(max_examples=30)
HALF = Fraction(1, 2)


def coins(shares: list[Fraction]) -> Callable[[], list[bool]]:
    """Independent coins with these probabilities of heads."""
    return lambda: [random.random() < share for share in shares]


def product_law(shares: list[Fraction]) -> dict[tuple[bool, ...], Fraction]:
    """The law of independent coins, by multiplication."""
    law = {}
    for outcome in itertools.product((False, True), repeat=len(shares)):
        mass = Fraction(1)
        for heads, share in zip(outcome, shares, strict=True):
            mass *= share if heads else 1 - share
        law[outcome] = mass
    return law


shares_of_coins = st.lists(st.fractions(0, 1, max_denominator=20), min_size=1, max_size=4)


@few
@given(shares_of_coins)
def test_a_law_over_fractions_is_exact(shares: list[Fraction]) -> None:
    law = exact_law(coins(shares))
    expected = product_law(shares)
    assert law.complete
    assert {outcome: law.probabilities.get(outcome, 0) for outcome in expected} == expected
    assert total_variation(law, expected) == (0, 0)
    assert all(isinstance(weight, Fraction | int) for weight in law.probabilities.values())


@few
@given(shares_of_coins, st.integers(1, 16))
def test_bounds_hold_wherever_it_is_cut(shares: list[Fraction], max_paths: int) -> None:
    law = exact_law(coins(shares), max_paths=max_paths)
    expected = product_law(shares)
    possible = sum(mass > 0 for mass in expected.values())
    assert law.paths == min(max_paths, possible)
    assert law.complete == (max_paths >= possible)
    for outcome, mass in expected.items():
        lower, upper = law.bounds(outcome)
        assert lower <= mass <= upper
    nearest, farthest = total_variation(law, expected)
    assert nearest == 0
    assert farthest == law.unexplored


@few
@given(st.lists(st.integers(1, 30), min_size=3, max_size=8))
def test_the_most_likely_paths_come_first(weights: list[int]) -> None:
    law = exact_law(lambda: random.choices(range(len(weights)), weights)[0], max_paths=2)
    assert 1 - law.unexplored == Fraction(sum(sorted(weights)[-2:]), sum(weights))


def test_time_ends_an_enumeration_and_progress_is_told() -> None:
    told: list[tuple[int, float]] = []
    law = exact_law(coins([HALF] * 3), seconds=0, progress=lambda paths, mass: told.append((paths, mass)))
    assert law.paths == 1
    assert law.unexplored == Fraction(7, 8)
    assert told == [(1, 0.125)]


@few
@given(
    st.integers(1, 6), st.integers(1, 5), st.fractions(Fraction(1, 10), Fraction(9, 10), max_denominator=10)
)
def test_a_walk_with_declared_states_is_the_ruin_of_a_gambler(start: int, more: int, up: Fraction) -> None:
    goal = start + more

    def walk() -> str:
        place = start
        while 0 < place < goal:
            same_state(place)
            place += 1 if random.random() < up else -1
        return "won" if place else "ruined"

    law = exact_law(walk)
    odds = (1 - up) / up
    won = Fraction(start, goal) if odds == 1 else (1 - odds**start) / (1 - odds**goal)
    assert law.probabilities == {"won": won, "ruined": 1 - won}
    assert law.paths <= 2 * goal


def test_merged_states_are_run_once() -> None:
    def count() -> int:
        heads = 0
        for flip in range(12):
            same_state((flip, heads))
            heads += random.random() < HALF
        return heads

    law = exact_law(count)
    assert law.probabilities[6] == Fraction(924, 4096)
    assert law.paths < 200, "4096 without merging"


def test_a_declared_state_does_nothing_outside() -> None:
    same_state("anywhere")


def test_what_a_program_raises_is_an_outcome() -> None:
    def program() -> str:
        if random.random() < Fraction(1, 3):
            raise ValueError("rejected")
        return "fine"

    law = exact_law(program)
    assert law.probabilities == {Raised("ValueError: rejected"): Fraction(1, 3), "fine": Fraction(2, 3)}


def test_a_path_without_end_is_unexplored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "MOST_CHOICES", 10)

    def program() -> int:
        return next(count for count in itertools.count() if random.random() < HALF)

    law = exact_law(program)
    assert law.unexplored == Fraction(1, 2**10)
    assert law.bounds(0) == (HALF, HALF + law.unexplored)


def test_rows_follow_paths_of_their_own() -> None:
    tapes: list[Tape] = []

    def no_sources(tape: Tape) -> list[Source]:
        tapes.append(tape)
        return []

    def program() -> list[int]:
        """Asks the tape itself."""
        return [tapes[0].choose([Fraction(1, 6)] * 6, Draw("dice"), row) for row in range(4)]

    law = exact_laws(program, 4, sources=no_sources)
    assert law.probabilities == dict.fromkeys(range(6), Fraction(1, 6))
    assert law.paths == 6


@pytest.mark.parametrize("program", [lambda: [random.random() < HALF] * 2, lambda: [random.randrange(3)] * 2])
def test_numbers_without_a_row_are_refused_in_batches(program: Callable[[], list[Any]]) -> None:
    with pytest.raises(UndecidableError, match="row of the batch"):
        exact_laws(program, 2, sources=lambda tape: [PythonRandom(tape)])


def test_a_batch_that_raises_is_refused() -> None:
    with pytest.raises(EnumerationError, match="the row is unknown"):
        exact_laws(lambda: [1 // 0], 2)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ([1, [2]], (1, (2,))),
        (np.arange(2), (0, 1)),
        ({"a": [1]}, (("a", (1,)),)),
        (np.float64(0.5), 0.5),
    ],
)
def test_outcomes_become_hashable(outcome: Any, expected: Any) -> None:
    assert exact_law(lambda: outcome).probabilities == {expected: 1}


def test_an_outcome_that_cannot_be_compared_is_refused() -> None:
    with pytest.raises(EnumerationError, match="set, which can't be compared"):
        exact_law(lambda: {1})


def test_the_law_of_a_function_of_the_outcome() -> None:
    law = exact_law(coins([HALF, Fraction(1, 4)])).map(sum)
    assert law.probabilities == {0: Fraction(3, 8), 1: HALF, 2: Fraction(1, 8)}
    assert set(law.examples) == {0, 1, 2}


def test_a_total_variation_is_never_above_one_nor_below_zero() -> None:
    law = Law({"a": 0.75}, 0.25, neglected=0.125)
    assert total_variation(law, {"b": 1.0}) == (0.625, 1)
    assert total_variation(law, {"a": 1.0}) == (0, 0.375)


def test_examples_are_the_shortest_paths() -> None:
    def program() -> bool:
        return random.random() < HALF or random.random() < Fraction(1, 3)

    example = exact_law(program).examples[True]
    assert example is not None
    node, taken = example
    [(first, branch)] = node.line(taken)
    assert first.question.words(branch, first.weights[branch]) == "u < 0.5 (probability 0.5)"


def test_the_law_of_nothing_random() -> None:
    law = exact_law(lambda: "always")
    assert (law.probabilities, law.paths, law.complete) == ({"always": 1}, 1, True)
    assert law.examples == {"always": None}
