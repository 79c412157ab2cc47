"""Programs that draw from ``numpy.random``: their laws against closed forms, and what is refused."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng, rand
from scipy import stats

from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.law import total_variation

few = settings(max_examples=12)
GENERATOR = np.random.default_rng(1)
STATE = np.random.RandomState(1)
draw_earlier = GENERATOR.random
P = np.array([0.5, 0.3, 0.2])
THIRD = Fraction(1, 3)
Vector = Any

laws = (
    st.lists(st.integers(0, 9), min_size=2, max_size=5).filter(any).map(lambda row: np.array(row) / sum(row))
)
positive_laws = st.lists(st.integers(1, 9), min_size=2, max_size=4).map(lambda row: np.array(row) / sum(row))


def one_per_row(p: Vector) -> Vector:
    """Two rows at once, and their sum is what counts."""
    return (np.cumsum(p)[:-1] <= np.random.rand(2, 1)).sum(axis=1)[1]


SAMPLERS: dict[str, Callable[[Vector], Any]] = {
    "searchsorted": lambda p: np.searchsorted(np.cumsum(p)[:-1], np.random.rand(), side="right"),
    "searchsorted of an array": lambda p: np.searchsorted(np.cumsum(p)[:-1], GENERATOR.random(1))[0],
    "method searchsorted": lambda p: np.cumsum(p)[:-1].searchsorted(np.random.random()),
    "first above": lambda p: np.argmax(np.append(np.cumsum(p)[:-1], 1) > np.random.rand()),
    "how many below": lambda p: (np.cumsum(p)[:-1] <= STATE.random_sample()).sum(),
    "digitize": lambda p: np.digitize(np.random.uniform(), np.cumsum(p)[:-1]),
    "falling bins": lambda p: len(p) - np.digitize(rand(), np.append(np.cumsum(p)[:-1], 2)[::-1]),
    "nonzero": lambda p: np.nonzero(np.random.uniform(0, 2) < np.append(2 * np.cumsum(p)[:-1], 2))[0][0],
    "scaled": lambda p: np.searchsorted(np.cumsum(p)[:-1] * 3, default_rng().uniform(0, 3)),
    "rows": one_per_row,
    "choice": lambda p: np.random.choice(len(p), p=p),
    "choice of values": lambda p: GENERATOR.choice(np.arange(len(p)), p=p),
    "multinomial": lambda p: np.argmax(np.random.multinomial(1, p)),
    "generator's multinomial": lambda p: GENERATOR.multinomial(1, p).tolist().index(1),
}


SAMPLED = ("searchsorted", "first above", "digitize", "nonzero", "rows", "choice", "multinomial")


def some(functions: dict[str, Callable[[Vector], Any]], *by_default: str) -> list[Any]:
    """All names; what isn't asked by default compares, or races, as others do."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name not in by_default)) for name in functions]


@pytest.mark.parametrize("name", some(SAMPLERS, *SAMPLED))
@few
@given(p=laws)
def test_samplers_have_the_law_that_they_sample(name: str, p: Vector) -> None:
    law = exact_law(lambda: int(SAMPLERS[name](p)))
    assert float(total_variation(law, dict(enumerate(p.tolist())))[1]) <= 1e-14


def smallest(p: Vector) -> Any:
    times = STATE.exponential(2.0, len(p)) / p
    return np.argmax(times == times.min())


RACES: dict[str, Callable[[Vector], Any]] = {
    "p / e": lambda p: np.argmax(p / np.random.exponential(size=len(p))),
    "e / p": lambda p: (GENERATOR.standard_exponential(len(p)) / p).argmin(),
    "smallest": smallest,
    "log p - log e": lambda p: np.argmax(np.log(p) - np.log(np.random.exponential(size=len(p)))),
    "gumbel": lambda p: np.argmax(np.log(p) + np.random.gumbel(size=len(p))),
    "gumbel, hot": lambda p: np.argmax((3 * np.log(p) + 3 * np.random.gumbel(size=len(p))) / 0.7 + 1),
    "gumbel of uniforms": lambda p: np.argmax(np.log(p) - np.log(-np.log(GENERATOR.random(len(p))))),
    "falling": lambda p: np.argmin(-np.log(p) - GENERATOR.gumbel(0, 1, size=len(p))),
    "power": lambda p: np.argmax(np.random.rand(len(p)) ** (1 / p)),
    "log u / p": lambda p: np.argsort(np.log(np.random.rand(len(p))) / p)[-1],
    "log(1 - u) / p": lambda p: np.argmin(-np.log(1 - np.random.rand(len(p))) / p),
    "log1p": lambda p: np.argmin(-np.log1p(-np.random.rand(len(p))) / p),
    "exp of gumbel": lambda p: np.argmax(p * np.exp(np.random.gumbel(size=len(p)))),
    "row of two": lambda p: np.argmax(p / np.random.exponential(size=(2, len(p))), axis=-1)[1],
    "sort": lambda p: np.argsort(np.random.exponential(size=len(p)) / p)[0],
    "loop": lambda p: min(range(len(p)), key=list(np.random.exponential(size=len(p)) / p).__getitem__),
    "list": lambda p: np.argmin(np.array([np.random.exponential() / one for one in p])),
}


RACED = ("p / e", "gumbel", "gumbel of uniforms", "power", "log1p", "row of two", "sort", "loop")


@pytest.mark.parametrize("name", some(RACES, *RACED))
@few
@given(p=positive_laws)
def test_races_have_the_law_of_their_rates(name: str, p: Vector) -> None:
    law = exact_law(lambda: int(RACES[name](p)))
    assert float(total_variation(law, dict(enumerate(p.tolist())))[1]) <= 1e-12


@pytest.mark.parametrize(
    "program",
    [
        lambda: np.argmin(np.random.exponential(size=3) / np.array([0.5, 0, 0.5])),
        lambda: np.argmax(np.array([0.5, 0, 0.5]) / np.random.exponential(size=3)),
        lambda: np.argmax(np.array([0, -np.inf, 0]) + np.random.gumbel(size=3)),
        lambda: np.argmax([0.5, 0, 0.5] / np.random.exponential(size=3)),
    ],
)
def test_probability_zero_never_wins(program: Callable[[], Any]) -> None:
    law = exact_law(lambda: int(program()))
    assert law.probabilities == pytest.approx({0: 0.5, 2: 0.5})


@few
@given(positive_laws, st.floats(0.1, 10))
def test_noise_that_is_used_again(p: Vector, factor: float) -> None:
    """With the same rates the same one wins; with one rate larger, only that one may take over."""

    def program() -> tuple[int, int, int]:
        noise = np.random.exponential(size=len(p))
        more = p * np.where(np.arange(len(p)) == 0, 1 + factor, 1)
        return int(np.argmax(p / noise)), int(np.argmax(2 * p / noise)), int(np.argmax(more / noise))

    law = exact_law(program)
    assert all(first == again and third in (first, 0) for first, again, third in law.probabilities)
    won = law.map(lambda outcome: outcome[2]).probabilities[0]
    assert won == pytest.approx(p[0] * (1 + factor) / (1 + p[0] * factor))


@few
@given(positive_laws)
def test_order_of_a_race_draws_without_replacement(p: Vector) -> None:
    law = exact_law(lambda: np.argsort(-(np.log(p) + np.random.gumbel(size=len(p)))))
    drawn = exact_law(lambda: np.random.choice(len(p), len(p), replace=False, p=p))
    for order in itertools.permutations(range(len(p))):
        left = [
            p[place] / (p[place] + sum(p[rest] for rest in order[at + 1 :])) for at, place in enumerate(order)
        ]
        assert law.probabilities[order] == pytest.approx(math.prod(left))
        assert float(drawn.probabilities[order]) == pytest.approx(math.prod(left))


@few
@given(st.integers(1, 3), st.lists(st.integers(0, 5), min_size=2, max_size=3).filter(any))
def test_counts_are_exact(count: int, weights: list[int]) -> None:
    p = [Fraction(weight, sum(weights)) for weight in weights]
    law = exact_law(lambda: np.random.multinomial(count, p))
    for counts, mass in law.probabilities.items():
        assert float(mass) == pytest.approx(stats.multinomial.pmf(counts, count, [float(one) for one in p]))
        assert isinstance(mass, Fraction | int)
    successes = exact_law(lambda: int(GENERATOR.binomial(count, p[0])))
    assert successes.probabilities == {
        k: math.comb(count, k) * p[0] ** k * (1 - p[0]) ** (count - k)
        for k in range(count + 1)
        if p[0] ** k * (1 - p[0]) ** (count - k)
    }


def elementwise() -> Any:
    u = np.random.rand(2)
    u *= 2
    u[0] = u[0] / 2
    return (u[:1] < 0.5).all(), np.floor(u).astype(int), np.where(u > 1.5, 1, 0)[1]


def test_arrays_are_moved_and_computed_with() -> None:
    law = exact_law(elementwise)
    assert law.map(lambda outcome: outcome[0]).probabilities == {True: Fraction(1, 2), False: Fraction(1, 2)}
    quarter = Fraction(1, 4)
    rest = law.map(lambda outcome: (outcome[1][1], outcome[2]))
    assert rest.probabilities == {(0, 0): 2 * quarter, (1, 0): quarter, (1, 1): quarter}


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda: np.maximum(np.random.rand(), 0.5) < 0.75, 0.75),
        (lambda: np.clip(np.random.rand(1), 0.2, 0.4)[0] == 0.4, 0.6),
        (lambda: np.all(np.random.rand(3) < 0.5), 0.125),
        (lambda: np.max(np.random.rand(3)) < 0.5, 0.125),
        (lambda: np.float64(0.3) > np.random.rand(), 0.3),
        (lambda: P[1] >= np.random.rand(), 0.3),
        (lambda: np.float32(0.25) > np.random.rand(), 0.25),
        (lambda: np.array(0.25) > np.random.rand(), 0.25),
        (lambda: np.sqrt(np.random.rand(1))[0] < 0.5, 0.25),
        (lambda: np.exp(-np.random.exponential(size=1))[0] < 0.25, 0.25),
        (lambda: np.random.gumbel() < 1, math.exp(-math.exp(-1))),
        (lambda: np.random.gumbel(1, 2) < 1, math.exp(-1)),
        (lambda: np.isnan(np.random.rand(2)).any() or np.stack([rand(), rand()]).shape != (2,), 0),
        (lambda: np.array([rand(), 0.5]).reshape(1, 2)[0, 0] < 0.5, 0.5),
        (lambda: np.round(rand(1))[0] == 1, 0.5),
        (lambda: np.random.rand(1)[0] / np.float64(0) == np.inf, 1),
        (lambda: (1 / np.random.rand(1))[0] > 4, 0.25),
        (lambda: np.concatenate([rand(1), np.zeros(1)]).max() < 0.5, 0.5),
        (lambda: isinstance(GENERATOR, np.random.Generator) and isinstance(STATE, np.random.RandomState), 1),
        (lambda: draw_earlier() < 0.25, 0.25),
        (lambda: np.random.default_rng(3).random() < 0.25, 0.25),
        (lambda: np.random.Generator(np.random.PCG64(3)).random() < 0.25, 0.25),
        (lambda: np.random.RandomState(3).uniform() < 0.25, 0.25),
        (lambda: np.random.seed(3) is None and np.random.sample() < 0.25, 0.25),
    ],
)
def test_single_events(program: Callable[[], Any], expected: float) -> None:
    law = exact_law(lambda: bool(program()))
    assert float(law.probabilities.get(True, 0)) == pytest.approx(expected, abs=1e-14)


def shuffled(shuffle: Callable[[Any], None], values: Any) -> list[int]:
    shuffle(values)
    return list(values)


@pytest.mark.parametrize(
    ("program", "size"),
    [
        (lambda: np.random.randint(4), 4),
        (lambda: GENERATOR.integers(1, 6, endpoint=True), 6),
        (lambda: GENERATOR.integers([2, 3], 4).tolist(), 2),
        (lambda: np.random.permutation(3).tolist(), 6),
        (lambda: GENERATOR.permutation(["a", "b"]).tolist(), 2),
        (lambda: shuffled(np.random.shuffle, np.arange(3)), 6),
        (lambda: shuffled(GENERATOR.shuffle, [1, 2, 3]), 6),
        (lambda: np.random.choice(["a", "b", "c"]), 3),
        (lambda: GENERATOR.choice(4, 2, replace=False).tolist(), 12),
        (lambda: np.random.choice(3, size=(1, 2)).tolist(), 9),
        (lambda: np.argsort(np.random.rand(3)).tolist(), 6),
        (lambda: np.sort(np.random.rand(2)).argmin(), 1),
        (lambda: np.argmin(np.random.rand(4)), 4),
        (lambda: np.floor(5 * np.random.rand(1)).astype(int)[0], 5),
        (lambda: GENERATOR.spawn(1)[0].integers(3), 3),
    ],
)
def test_equally_likely_outcomes(program: Callable[[], Any], size: int) -> None:
    masses = exact_law(program).probabilities.values()
    assert list(masses) == [Fraction(1, size)] * size
