"""What a test would have seen, beside the exact power of that test."""

import math

import numpy as np
import pytest
from scipy import stats

from tokenlaw.stats.dependence import EqualNeighbours, equal_neighbours
from tokenlaw.stats.planner import noncentrality
from tokenlaw.stats.power import MISS, visible_copies, visible_mass, visible_tv


def comparison(pairs: int, chance: float) -> EqualNeighbours:
    return EqualNeighbours(pairs, 0, pairs * chance, 1.0)


def power(pairs: int, chance: float, share: float, alpha: float) -> float:
    """Probability of a p-value of at most alpha if such a share of pairs are copies."""
    equal = next(
        equal
        for equal in range(math.ceil(pairs * chance), pairs + 1)
        if equal_neighbours(equal, np.array([pairs]), np.array([chance])).p_value <= alpha
    )
    return float(stats.binom.sf(equal - 1, pairs, chance + share * (1 - chance)))


@pytest.mark.parametrize("chance", [0.03, 0.3, 0.8])
@pytest.mark.parametrize("pairs", [150, 3_000])
def test_copies_are_seen_as_promised_and_not_much_fewer(pairs: int, chance: float) -> None:
    share = visible_copies(comparison(pairs, chance), 1e-10)
    assert 0 < share < 1
    assert power(pairs, chance, share, 1e-10) == pytest.approx(1 - MISS, abs=1e-6)
    assert power(pairs, chance, share * 0.9, 1e-10) < 1 - 2 * MISS


def test_unequal_chances_need_no_more() -> None:
    """Half of the pairs match by chance in 5 %, half in 55 %; in 2,000 runs 2 misses are expected at most.

    More than 12 have a probability below 1e-6. Power: a figure that half as many copies as needed would give
    misses in more than half of the runs.
    """
    pairs, chances, alpha = np.array([400, 400]), np.array([0.05, 0.55]), 1e-10
    share = visible_copies(comparison(800, float(chances.mean())), alpha)
    generator = np.random.default_rng(0)
    equal = generator.binomial(pairs, chances + share * (1 - chances), (2_000, 2)).sum(-1)
    values = {count: equal_neighbours(int(count), pairs, chances).p_value for count in set(equal.tolist())}
    assert sum(values[count] > alpha for count in equal.tolist()) <= 12


@pytest.mark.parametrize("chance", [0.3, 0.8])
def test_a_figure_beyond_one_says_how_many_pairs_it_takes(chance: float) -> None:
    few = visible_copies(comparison(10, chance), 1e-10)
    assert few > 1
    needed = math.ceil(10 * few**2 - 1e-9)
    assert visible_copies(comparison(needed, chance), 1e-10) < 1
    assert visible_copies(comparison(needed - 1, chance), 1e-10) > 1


def test_where_nothing_can_be_seen_the_figure_is_infinite() -> None:
    assert visible_copies(comparison(50, 1.0), 1e-10) == math.inf
    assert visible_copies(comparison(0, 0.0), 1e-10) == math.inf
    assert visible_mass(0.0) == visible_tv(0.0, 5, 1e-10) == math.inf


@pytest.mark.parametrize("samples", [8.0, 500.0])
def test_impossible_outcomes_are_seen_as_promised(samples: float) -> None:
    assert math.exp(-samples * visible_mass(samples)) == pytest.approx(MISS)
    assert visible_mass(samples / 100) ** 2 * samples / 100 == pytest.approx(-math.log(MISS), rel=1e-9)


def test_a_threshold_beyond_the_smallest_double_is_no_error() -> None:
    assert visible_tv(1_000.0, 5, 0.0) == visible_tv(1_000.0, 5, 1e-300)


def test_what_is_visible_follows_the_planner() -> None:
    needed = noncentrality(63, 1e-10, 1e-3)
    for samples in (1_000.0, 100_000.0):
        tv = visible_tv(samples, 64, 1e-10, factor=1.0)
        assert tv == pytest.approx(math.sqrt(needed / (4 * samples)), rel=5e-3)
        assert tv >= math.sqrt(needed / (4 * samples)) * (1 - 1e-9)
        assert visible_tv(samples, 64, 1e-10) > tv
    assert visible_tv(0.0, 4, 1e-10) == math.inf
    few = visible_tv(3.0, 4, 1e-10)
    assert few > 1
    assert visible_tv(3.0 * few**2, 4, 1e-10) == pytest.approx(1)
    assert visible_tv(1_000.0, 4, 1e-10) < visible_tv(1_000.0, 4, 1e-12) < visible_tv(1_000.0, 64, 1e-12)
