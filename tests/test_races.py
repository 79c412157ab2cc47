"""Races of exponential clocks: closed forms against integration, simulation and the memoryless property."""

from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from tokenlaw.stats.enumeration.errors import UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.law import Law
from tokenlaw.stats.enumeration.races import Races
from tokenlaw.stats.enumeration.second_races import second_race
from tokenlaw.stats.enumeration.tape import Tape

FLOATS = st.floats(0.05, 5.0)
FRACTIONS = st.fractions(Fraction(1, 9), 9, max_denominator=9)


def law_of(program: Callable[[Races], Any]) -> Law:
    """The law of a program that lets clocks race."""
    tapes: list[Tape] = []

    def sources(tape: Tape) -> list[Any]:
        tapes.append(tape)
        return []

    return exact_law(lambda: program(Races(tapes[0])), sources=sources)


def rates_of(values: list[Any]) -> dict[Hashable, Any]:
    """Clocks 0, 1, ... with these rates."""
    return dict(enumerate(values))


def two_races(first: list[Any], second: list[Any]) -> Law:
    """The winners of two races on the same clocks."""
    return law_of(
        lambda races: (races.first(rates_of(first), "draft"), races.first(rates_of(second), "recover"))
    )


def integrated(first: list[float], second: list[float], winner: int, follower: int) -> float:
    """P(winner, follower) by integrating over t = e_follower / e_winner numerically."""
    rest = [j for j in range(len(first)) if j not in (winner, follower)]

    def bound(j: int, t: float) -> float:
        return max(first[j] / first[winner], t * second[j] / second[follower])

    lower = first[follower] / first[winner]
    upper = second[follower] / second[winner] if second[winner] else np.inf
    if upper <= lower:
        return 0.0
    bends = sorted(
        t
        for j in rest
        if second[j] and lower < (t := first[j] / first[winner] * second[follower] / second[j]) < upper
    )
    edges = [lower, *bends, upper]
    return sum(
        quad(lambda t: (1 + t + sum(bound(j, t) for j in rest)) ** -2, start, end, epsabs=1e-13)[0]
        for start, end in pairwise(edges)
    )


def test_first_race_is_a_draw_from_the_rates():
    law = law_of(lambda races: races.first(rates_of([Fraction(1), Fraction(0), Fraction(3)]), "draw"))
    assert law.probabilities == {0: Fraction(1, 4), 2: Fraction(3, 4)}


@given(st.lists(st.tuples(FLOATS, st.one_of(st.just(0.0), FLOATS)), min_size=3, max_size=5))
def test_second_race_is_what_integration_gives(pairs):
    first, second = ([*column] for column in zip(*pairs, strict=True))
    if not any(second):
        second[0] = 1.0
    law = two_races(first, second)
    for winner in range(len(first)):
        for follower in range(len(first)):
            if winner != follower and second[follower]:
                expected = integrated(first, second, winner, follower)
                assert law.probabilities.get((winner, follower), 0) == pytest.approx(expected, abs=1e-10)


@given(st.lists(st.tuples(FRACTIONS, FRACTIONS), min_size=2, max_size=4))
def test_second_race_is_rational_over_fractions(pairs):
    first, second = ([*column] for column in zip(*pairs, strict=True))
    law = two_races(first, second)
    assert all(isinstance(weight, Fraction | int) for weight in law.probabilities.values())
    assert sum(law.probabilities.values()) == 1
    # Either race alone is a draw from its rates, whatever the other one does.
    assert all(
        law.map(lambda winners: winners[1]).probabilities[clock] == rate / sum(second)
        for clock, rate in enumerate(second)
    )


def test_second_race_is_what_clocks_do():
    """Simulated clocks: Pearson's chi-square of 400,000 pairs of races against the closed form.

    Nine cells. False alarm 1e-9 (chi-square above 57.6 with 8 degrees of freedom); a law whose chi-square
    distance from the truth is 4e-4 (a total variation of 0.01) would be refuted with probability above 0.999.
    """
    first, second, samples = [1.0, 2.0, 0.5], [0.3, 1.0, 2.0], 400_000
    noise = np.random.default_rng(5).exponential(size=(samples, 3))
    pairs = np.argmin(noise / first, axis=1) * 3 + np.argmin(noise / second, axis=1)
    counts = np.bincount(pairs, minlength=9)
    law = two_races(first, second)
    expected = np.array([law.probabilities.get((i, k), 0.0) for i in range(3) for k in range(3)]) * samples
    possible = expected > 0
    assert counts[~possible].sum() == 0
    assert np.sum((counts - expected)[possible] ** 2 / expected[possible]) < 57.6


def test_known_leads_count_in_a_second_race():
    joint = second_race({"a": Fraction(1), "b": Fraction(2)}, "a", {"b": Fraction(1), "c": Fraction(1)})
    assert sum(joint.values()) == Fraction(1, 3)
    # c beats b, which rings after twice the leader's time: 1 / (1 + b + c), c from 0 to b, b from 2.
    assert joint["c"] == Fraction(1, 3) - joint["b"]
    assert joint["b"] == pytest.approx(quad(lambda t: (1 + 2 * t) ** -2, 2, np.inf)[0])


@pytest.mark.parametrize("factor", [1.0, 0.1, 3.0])
def test_race_in_proportion_to_an_earlier_one_has_the_same_winner(factor):
    first = [0.1, 0.7, 0.2]
    law = two_races(first, [factor * rate for rate in first])
    assert set(law.probabilities) == {(0, 0), (1, 1), (2, 2)}
    assert law.probabilities[1, 1] == pytest.approx(0.7, abs=1e-15)


def test_winner_among_fewer_clocks_stays_the_winner():
    law = two_races([0.5, 0.25, 0.25], [0.5, 0.25, 0])
    assert law.probabilities[0, 0] == 0.5
    assert (1, 0) not in law.probabilities
    assert law.probabilities[2, 0] == pytest.approx(0.25 * 2 / 3)


def test_order_is_drawing_without_replacement():
    weights = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    law = law_of(lambda races: tuple(races.order(rates_of(weights), 3, "sort")))
    for order in permutations(range(3)):
        left, expected = Fraction(1), Fraction(1)
        for clock in order:
            expected *= weights[clock] / left
            left -= weights[clock]
        assert law.probabilities[order] == expected


def test_order_goes_on_where_an_earlier_race_has_stopped():
    rates = rates_of([Fraction(1), Fraction(2), Fraction(3)])

    def masked(races: Races) -> Any:
        winner = races.first(rates, "argmax")
        rest = {clock: rate for clock, rate in rates.items() if clock != winner}
        second = races.first(rest, "argmax of the rest")
        return winner, second, tuple(races.order(rates, 3, "sort"))[:2] == (winner, second)

    law = law_of(masked)
    assert {outcome[2] for outcome in law.probabilities} == {True}
    assert law.probabilities[2, 1, True] == Fraction(1, 2) * Fraction(2, 3)


def test_same_winner_may_race_again():
    """Two races that clock 0 has won leave a closed form for a third."""

    def program(races: Races) -> Any:
        found = [races.first(rates_of(rates), "race") for rates in ([2.0, 1.0], [1.0, 1.0])]
        return (*found, races.first(rates_of([1.0, 2.0]), "race") if found == [0, 0] else None)

    law = law_of(program)
    # e_1 / e_0 is above 1 in the second race; the third one is won by 0 if it is above 2.
    assert law.probabilities[0, 0, 0] == pytest.approx(1 / 3)
    assert law.probabilities[0, 0, 1] == pytest.approx(1 / 2 - 1 / 3)


def test_clocks_that_have_not_raced_are_fresh():
    def program(races: Races) -> Any:
        return races.first({"a": 1.0, "b": 1.0}, "one"), races.first({"c": 1.0, "d": 3.0}, "other")

    assert law_of(program).probabilities["a", "d"] == pytest.approx(0.375)


def third_race(races: Races) -> Any:
    return [races.first(rates_of(rates), "third") for rates in ([1.0, 2.0], [2.0, 1.0], [1.0, 1.0])]


def joined_groups(races: Races) -> Any:
    races.first({"a": 1.0, "b": 1.0}, "one")
    races.first({"c": 1.0, "d": 1.0}, "other")
    return races.first({"a": 1.0, "c": 1.0}, "joined")


@pytest.mark.parametrize(("program", "name"), [(third_race, "third"), (joined_groups, "joined")])
def test_what_has_no_closed_form_is_refused_by_name(program, name):
    with pytest.raises(UndecidableError, match=f"test_races.py.*{name}.*race"):
        law_of(program)
