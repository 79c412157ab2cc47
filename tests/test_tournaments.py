"""Exponential numbers that are compared two by two, against the law of their order."""

import heapq
import itertools
import math
import random
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenlaw.stats.enumeration.errors import UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law

SIZE = 4
all_rates = st.lists(st.integers(1, 9).map(Fraction), min_size=SIZE, max_size=SIZE)
questions = st.lists(
    st.permutations(range(SIZE)).map(lambda order: (order[0], order[1])), min_size=1, max_size=6
)


def law_of_order(rates: list[Fraction]) -> dict[tuple[int, ...], Fraction]:
    """Who is first, second, ...: draws without replacement, by the rates."""
    law = {}
    for order in itertools.permutations(range(len(rates))):
        left = [rates[place] / sum(rates[other] for other in order[at:]) for at, place in enumerate(order)]
        law[order] = math.prod(left)
    return law


@pytest.mark.slow
@settings(max_examples=40)
@given(all_rates, questions)
def test_any_comparisons_have_the_law_of_the_order(
    rates: list[Fraction], asked: list[tuple[int, int]]
) -> None:
    def program() -> list[bool]:
        times = [random.expovariate(1) / rate for rate in rates]
        return [times[one] < times[other] for one, other in asked]

    expected: dict[Any, Fraction] = defaultdict(Fraction)
    for order, mass in law_of_order(rates).items():
        expected[tuple(order.index(one) < order.index(other) for one, other in asked)] += mass
    assert exact_law(program).probabilities == expected


@settings(max_examples=10)
@given(all_rates)
def test_sorting_and_heaps(rates: list[Fraction]) -> None:
    law = law_of_order(rates)

    def time(place: int) -> Any:
        return random.expovariate(1) / rates[place]

    assert exact_law(lambda: sorted(range(SIZE), key=time)).probabilities == law
    two = exact_law(lambda: heapq.nsmallest(2, range(SIZE), key=time))
    for first in itertools.permutations(range(SIZE), 2):
        assert two.probabilities[first] == sum(mass for order, mass in law.items() if order[:2] == first)


@settings(max_examples=10)
@given(st.lists(st.floats(-3, 3), min_size=2, max_size=5))
def test_gumbel_keys_draw_from_the_softmax(logits: list[float]) -> None:
    softmax = np.exp(logits) / np.exp(logits).sum()
    law = exact_law(
        lambda: max(
            range(len(logits)), key=lambda place: logits[place] - math.log(-math.log(random.random()))
        )
    )
    assert [law.probabilities[place] for place in range(len(logits))] == pytest.approx(softmax, abs=1e-13)


def test_the_last_of_an_array() -> None:
    rates = [Fraction(1), Fraction(2), Fraction(5)]
    law = exact_law(lambda: int(np.argmax(np.random.exponential(size=3) / np.array(rates, dtype=float))))
    for place in range(3):
        last = sum(mass for order, mass in law_of_order(rates).items() if order[-1] == place)
        assert float(law.probabilities[place]) == pytest.approx(float(last))


def test_an_array_of_compared_numbers() -> None:
    def program() -> tuple[bool, int]:
        times = np.random.exponential(size=3)
        return times[0] < times[1], int(np.argmin(times))

    sixth = Fraction(1, 6)
    law = {(True, 0): 2 * sixth, (False, 1): 2 * sixth, (True, 2): sixth, (False, 2): sixth}
    assert exact_law(program).probabilities == law


def other_rates() -> list[bool]:
    times = [random.expovariate(1) for _ in range(3)]
    return [times[0] < times[1], times[1] < times[2], times[0] < 2 * times[2]]


def compared_with_a_threshold() -> bool:
    times = [random.expovariate(1) for _ in range(2)]
    return times[0] < times[1] and times[0] < 1


@pytest.mark.parametrize("program", [other_rates, compared_with_a_threshold])
def test_what_has_no_closed_form_is_refused(program: Any) -> None:
    with pytest.raises(UndecidableError, match=r"different laws|took part in a race"):
        exact_law(program)
