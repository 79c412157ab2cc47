"""Equal neighbours are counted against their exact law; tables of pairs see the rest."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from support.known_laws import zipf
from tokenlaw.stats.dependence import (
    equal_mass_buckets,
    equal_neighbours,
    independence_log_e,
    match_probability,
)
from tokenlaw.stats.poisson_binomial import upper_tail_of_sum


def convolved(trials: list[int], probabilities: list[float]) -> np.ndarray:
    """The law of the sum, term by term: every number is a sum of positive products."""
    law = np.ones(1)
    for n, p in zip(trials, probabilities, strict=True):
        law = np.convolve(law, stats.binom.pmf(np.arange(n + 1), n, p))
    return law


@pytest.mark.parametrize(
    ("trials", "probabilities"),
    [
        ([3, 5], [0.1, 0.6]),
        ([1] * 20, [i / 21 for i in range(1, 21)]),
        ([900, 50, 400], [0.01, 0.9, 0.3]),
        ([5, 1], [0.5, 1e-300]),
    ],
)
def test_tail_of_a_sum_is_exact_far_out(trials: list[int], probabilities: list[float]) -> None:
    law = convolved(trials, probabilities)
    exact = np.cumsum(law[::-1])[::-1]
    for successes in np.linspace(0, sum(trials), 40).astype(int).tolist():
        tail = upper_tail_of_sum(successes, np.array(trials, float), np.array(probabilities))
        if exact[successes] > 1e-290:
            assert tail == pytest.approx(exact[successes], rel=1e-8, abs=0)


def test_tail_of_a_large_sum() -> None:
    """Two groups of equal probability are one binomial; 10^9 pairs take no more than a moment."""
    trials = np.array([4e8, 6e8])
    for deviations in (1, 6, 12):
        successes = round(1e8 + deviations * np.sqrt(9e7))
        tail = upper_tail_of_sum(successes, trials, np.array([0.1, 0.1]))
        assert tail == pytest.approx(stats.binom.sf(successes - 1, 1e9, 0.1), rel=1e-8, abs=0)


def test_equal_neighbours_by_enumeration() -> None:
    """All samples of three pairs from small laws: P(p-value <= x) <= x, and the mean is right."""
    pairs, match = np.array([1, 2]), np.array([0.2, 0.7])
    chances = {}
    for first, second, third in product([0, 1], repeat=3):
        chance = [0.8, 0.2][first] * [0.3, 0.7][second] * [0.3, 0.7][third]
        chances[first + second + third] = chances.get(first + second + third, 0) + chance
    results = {equal: equal_neighbours(equal, pairs, match) for equal in chances}
    for result in results.values():
        reached = sum(chances[k] for k, other in results.items() if other.p_value <= result.p_value)
        assert reached <= result.p_value * (1 + 1e-9)
        assert (result.pairs, result.expected) == (3, pytest.approx(1.6))


def test_one_group_is_a_binomial() -> None:
    result = equal_neighbours(80, np.array([100, 100]), np.array([0.3, 0.3]))
    assert result.p_value == pytest.approx(2 * stats.binom.sf(79, 200, 0.3), rel=1e-9, abs=0)
    result = equal_neighbours(40, np.array([200]), np.array([0.3]))
    assert result.p_value == pytest.approx(2 * stats.binom.cdf(40, 200, 0.3), rel=1e-9, abs=0)


def test_certain_and_impossible_matches() -> None:
    pairs, match = np.array([5, 7, 0]), np.array([1.0, 0.0, 0.5])
    assert equal_neighbours(5, pairs, match).p_value == 1
    assert equal_neighbours(6, pairs, match).p_value == 0
    assert equal_neighbours(4, pairs, match).p_value == 0


def test_false_alarms_at_five_percent() -> None:
    """False alarm 1e-6: p-values below 0.05 are no more than a binomial allows.

    At most 5 % of 2000. Power: tails that aren't doubled give 9 % and fail with probability 0.99.
    """
    rng = np.random.default_rng(11)
    pairs, match = np.array([300, 200, 100]), np.array([0.05, 0.2, 0.5])
    equal = rng.binomial(pairs, match, size=(2000, 3)).sum(1)
    values, times = np.unique(equal, return_counts=True)
    alarming = [equal_neighbours(int(value), pairs, match).p_value <= 0.05 for value in values]
    assert 0 < times[alarming].sum() <= stats.binom.isf(1e-6, 2000, 0.05)


def copied(law: np.ndarray, pairs: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows of which the second one repeats the first one's draw with probability `share`."""
    rng = np.random.default_rng(seed)
    first, second = rng.choice(len(law), size=(2, pairs), p=law)
    return first, np.where(rng.random(pairs) < share, first, second)


def test_copied_rows_are_found_by_both_tests() -> None:
    """One row in ten copied, zipf over 256: the study needs 240 pairs, and 2700 by a table of 4 buckets.

    With 600 and 6000 pairs either miss has probability below 1e-6.
    """
    law = zipf(256)
    first, second = copied(law, 600, 0.1, seed=12)
    match = match_probability(law, law)
    found = equal_neighbours(int((first == second).sum()), np.array([600]), np.array([match]))
    assert found.p_value < 1e-9
    assert tabled(*copied(law, 6000, 0.1, seed=13), 4, law) > math.log(1e9)


def tabled(first: np.ndarray, second: np.ndarray, buckets: int, law: np.ndarray) -> float:
    """Log e-value of a table of pairs of draws over buckets of the law."""
    groups = equal_mass_buckets(law, buckets)
    labels = groups.labels[first] * buckets + groups.labels[second]
    counts = np.bincount(labels, minlength=buckets**2).reshape(buckets, buckets)
    return independence_log_e(counts, groups.law, groups.law)


def test_neighbours_that_avoid_each_other_are_found() -> None:
    """Never equal, where 600 * 0.044 = 26 are expected: p-value 2 * (1 - 0.044)^600."""
    law = zipf(256)
    match = match_probability(law, law)
    assert equal_neighbours(0, np.array([600]), np.array([match])).p_value == pytest.approx(
        2 * (1 - match) ** 600, rel=1e-9, abs=0
    )


@pytest.mark.parametrize("drawn", [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
def test_the_mean_under_independence_is_at_most_one(drawn: list[float]) -> None:
    """Exact sums over all tables of 6 pairs, whether draws have the laws that they should have or not."""
    law, other = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.4])
    pairs, total = np.outer(drawn, [0.3, 0.7]).ravel(), 0.0
    for counts in product(range(7), repeat=5):
        if sum(counts) <= 6:
            table = np.array([*counts, 6 - sum(counts)])
            chance = stats.multinomial.pmf(table, 6, pairs)
            total += chance * np.exp(independence_log_e(table.reshape(3, 2), law, other))
    assert 0 < total <= 1


def test_independent_pairs_fit_the_table() -> None:
    """False alarm 1e-6, by the e-value itself; the power is that of the test of copied rows."""
    rng = np.random.default_rng(14)
    law = zipf(256)
    first, second = rng.choice(256, (2, 50_000), p=law)
    assert tabled(first, second, 8, law) < math.log(1e6)
    assert tabled(first[first > 20][:9000], second[:9000] // 2, 8, law) < math.log(1e6)


def test_draws_that_follow_each_other_are_found_though_they_are_equal_as_often_as_by_chance() -> None:
    """Of three tokens the second is the first with probability 1/3, else the next one, never the one before.

    Of 600 pairs 400 are of 3 cells where 200 should be: by far more than the e-value needs.
    """
    rng = np.random.default_rng(15)
    first = rng.integers(0, 3, 600)
    second = (first + (rng.random(600) < 2 / 3)) % 3
    law = np.full(3, 1 / 3)
    equal = int((first == second).sum())
    assert equal_neighbours(equal, np.array([600]), np.array([1 / 3])).p_value > 1e-6
    assert tabled(first, second, 3, law) > math.log(1e9)


def test_no_pairs_are_no_evidence() -> None:
    assert independence_log_e(np.zeros((2, 3)), np.array([0.5, 0.5]), np.array([0.2, 0.3, 0.5])) == 0.0


def test_buckets_have_about_equal_mass() -> None:
    buckets = equal_mass_buckets(zipf(32_768), 16)
    assert buckets.law.max() - buckets.law[1:].min() <= zipf(32_768)[0]
    assert np.ptp(equal_mass_buckets(np.full(64, 1 / 64), 16).law) == pytest.approx(0)


@pytest.mark.parametrize(
    ("equal", "pairs", "match", "message"),
    [
        (4, [3], [0.5], "4 of 3 pairs can't be equal"),
        (-1, [3], [0.5], "-1 of 3"),
        (1.5, [3], [0.5], "1.5 of 3"),
        (1, [3], [1.5], "from 0 to 1, but one is 1.5"),
        (1, [3], [np.nan], "from 0 to 1, but one is nan"),
        (1, [3], [0.5, 0.5], "1 numbers of pairs"),
        (1, [-3], [0.5], "whole number"),
    ],
)
def test_bad_input_is_refused(equal: int, pairs: list[int], match: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        equal_neighbours(equal, np.array(pairs), np.array(match))


def test_bad_laws_are_refused() -> None:
    law = np.array([0.5, 0.5])
    with pytest.raises(ValueError, match="first law has 2 cells, the second one 1"):
        match_probability(law, np.array([1.0]))
    with pytest.raises(ValueError, match="3 buckets can't be filled from 2"):
        equal_mass_buckets(law, 3)
    with pytest.raises(ValueError, match="0 buckets"):
        equal_mass_buckets(law, 0)
    with pytest.raises(ValueError, match=r"shape \(2, 3\), their laws \(2, 2\)"):
        independence_log_e(np.ones((2, 3)), law, law)
    with pytest.raises(ValueError, match="second law"):
        independence_log_e(np.ones((2, 2)), law, np.array([0.5, 0.4]))
