"""Which traces a seed gives doesn't depend on constants in the source of loaded modules."""

import copy
from collections import Counter

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase
from hypothesis.internal.conjecture import providers

from tokenlaw.properties.drawing import any_of, evenly


def drawn(strategy: hypothesis.strategies.SearchStrategy[int], examples: int = 300) -> list[int]:
    numbers: list[int] = []

    @hypothesis.seed("a seed")
    @hypothesis.settings(
        max_examples=examples,
        phases=(Phase.generate,),
        database=None,
        derandomize=False,
        deadline=None,
        suppress_health_check=tuple(HealthCheck),
    )
    @hypothesis.given(hypothesis.strategies.lists(strategy, min_size=4, max_size=4))
    def example(found: list[int]) -> None:
        numbers.extend(found)

    example()
    return numbers


def test_constants_of_loaded_modules_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before, plainly = drawn(evenly(0, 10**6)), drawn(hypothesis.strategies.integers(0, 10**6))
    found = copy.deepcopy(providers._get_local_constants())
    found.integers.update(range(1_000, 9_000, 7))
    monkeypatch.setattr(providers, "_get_local_constants", lambda: found)
    providers.CONSTANTS_CACHE.cache.clear()
    assert drawn(evenly(0, 10**6)) == before
    assert drawn(hypothesis.strategies.integers(0, 10**6)) != plainly, "the test changes nothing"


def test_numbers_are_in_range_and_even() -> None:
    counts = Counter(drawn(evenly(-2, 7)))
    assert set(counts) == set(range(-2, 8))
    # The first number has an extra share: hypothesis starts with the plainest example.
    assert max(counts[number] for number in range(-1, 8)) < 5 * min(counts.values())


def test_what_stands_twice_is_drawn_twice_as_often() -> None:
    counts = Counter(drawn(any_of((3, 1, 2, 2, 2, 2))))
    assert set(counts) == {1, 2, 3}
    assert counts[2] > 2 * counts[1]
