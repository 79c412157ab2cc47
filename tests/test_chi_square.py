"""The p-value of the chi-square test is an upper bound far into the tail, computed exactly."""

import numpy as np
import pytest
from scipy import signal, special, stats

from tokenlaw.stats.chi_square import chi_square, honest_p_value, likelihood_ratio, pearson
from tokenlaw.stats.counts import check_counts


def assert_valid(p_values: np.ndarray, probabilities: np.ndarray) -> None:
    """P(p-value <= x) <= x for every x that the sample can give, down to 1e-15."""
    order = np.argsort(p_values)
    p_values, reached = p_values[order], np.cumsum(probabilities[order])
    far = reached > 1e-15  # below, the sum of what a test left out would matter
    assert far.any()
    assert (reached[far] <= p_values[far] * (1 + 1e-9)).all()


def p_values_of(counts: np.ndarray, law: np.ndarray) -> np.ndarray:
    """The p-value of each row, without pooling."""
    expected = counts[0].sum() * law
    return honest_p_value(pearson(counts, expected), likelihood_ratio(counts, expected), expected)


@pytest.mark.parametrize("light", [0.5, 0.3, 0.1, 0.01, 0.0001])
@pytest.mark.parametrize("expected", [20, 21.3, 28.7, 50, 100, 1000])
def test_two_cells_are_honest_at_every_level(light: float, expected: float) -> None:
    samples = int(np.ceil(expected / light))
    hits = np.arange(min(samples, int(3 * expected) + 200) + 1)  # more has a probability below 1e-60
    counts = np.stack([hits, samples - hits], axis=-1).astype(float)
    assert_valid(p_values_of(counts, np.array([light, 1 - light])), stats.binom.pmf(hits, samples, light))


@pytest.mark.parametrize(
    ("law", "samples"), [((0.2, 0.3, 0.5), 100), ((1 / 3, 1 / 3, 1 / 3), 90), ((0.002, 0.003, 0.995), 10**4)]
)
def test_three_cells_are_honest_at_every_level(law: tuple[float, ...], samples: int) -> None:
    most = min(samples, 220)  # more of a cell that is expected 30 times has probability 1e-90
    first, second = (axis.ravel() for axis in np.meshgrid(np.arange(most + 1), np.arange(most + 1)))
    counts = np.stack([first, second, samples - first - second], axis=-1).astype(float)
    counts = counts[counts[:, 2] >= 0]
    assert_valid(p_values_of(counts, np.array(law)), stats.multinomial.pmf(counts, samples, law))


def tail_beside_a_heavy_cell(statistic: np.ndarray, mean: float, cells: int, threshold: float) -> float:
    """P(sum of `cells` independent statistics of Poisson counts >= threshold), never too small.

    Each statistic is rounded up to a grid of 4000 steps; the convolution is tilted to the threshold, where
    it is exact to nine digits.
    """
    step = threshold / 4000
    weights = stats.poisson.pmf(np.arange(len(statistic)), mean)
    tilt = step * max(0.0, 0.5 * (1 - cells / threshold))
    index = np.minimum(np.ceil(statistic / step).astype(int), 8000)
    one = np.bincount(index, weights * np.exp(tilt * index))
    total, scale = one / one.sum(), one.sum()
    result = np.ones(1)
    for _ in range(cells):
        result = np.maximum(signal.fftconvolve(result, total), 0)
    beyond = np.arange(4000, len(result))
    return float((result[4000:] * np.exp(cells * np.log(scale) - tilt * beyond)).sum())


MEAN = 20.0
COUNTS = np.arange(400.0)
G_OF_CELL = 2 * (special.xlogy(COUNTS, COUNTS / MEAN) - (COUNTS - MEAN))


@pytest.mark.parametrize("alpha", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("cells", [3, 7, 31])
def test_many_cells_are_honest(cells: int, alpha: float) -> None:
    """All light cells are expected 20 times, beside one that is so heavy that they are independent.

    The smaller statistic reaches the threshold only if the corrected G does.
    """
    threshold = special.chdtri(cells, alpha / 2) * (1 + 1 / (6 * MEAN))
    expected = np.append(np.full(cells, MEAN), 1e12)
    assert honest_p_value(np.array(np.inf), np.array(threshold), expected) == pytest.approx(
        alpha, rel=1e-6, abs=0
    )
    assert tail_beside_a_heavy_cell(G_OF_CELL, MEAN, cells, threshold) <= alpha


def test_pearson_alone_would_not_be_honest() -> None:
    """Why G stands guard: seven cells expected 20 times make Pearson's tail 47 times too heavy at 1e-9."""
    threshold = float(special.chdtri(7, 1e-9))
    assert tail_beside_a_heavy_cell((COUNTS - MEAN) ** 2 / MEAN, MEAN, 7, threshold) > 40e-9


def test_statistics_agree_with_scipy() -> None:
    rng = np.random.default_rng(1)
    law = rng.dirichlet(np.ones(12))
    counts = rng.multinomial(10**5, law)
    result = chi_square(counts, law)
    assert (result.cells, result.degrees_of_freedom, result.pooled_mass) == (12, 11, 0)
    assert result.pearson == pytest.approx(stats.chisquare(counts, 10**5 * law).statistic)
    g = stats.power_divergence(counts, 10**5 * law, lambda_="log-likelihood").statistic
    assert result.likelihood_ratio == pytest.approx(g)


def test_light_cells_are_pooled_and_named() -> None:
    law = np.array([0.9, 0.05, 0.03, 0.02, 0.0])
    result = chi_square(np.array([900, 50, 30, 20, 0]), law)
    assert (result.cells, result.pooled_mass, result.pearson, result.p_value) == (4, 0, 0, 1)
    result = chi_square(np.array([900, 50, 30, 20, 0]), law, least=40)
    assert (result.cells, result.samples) == (3, 1000)
    assert result.pooled_mass == pytest.approx(0.05)


def test_one_draw_of_an_impossible_cell_refutes() -> None:
    result = chi_square(np.array([500, 499, 1]), np.array([0.5, 0.5, 0.0]))
    assert (result.p_value, result.pearson, result.likelihood_ratio) == (0, np.inf, np.inf)


def test_too_few_samples_test_nothing() -> None:
    result = chi_square(np.array([15, 0]), np.array([0.5, 0.5]))
    assert (result.degrees_of_freedom, result.p_value, result.pooled_mass) == (0, 1, 1)


def test_false_alarms_at_one_percent() -> None:
    """False alarm 1e-9: under the law at most 1 % of 20000 p-values are below 0.01 (binomial).

    Power: four times as many alarms as allowed would lie 18 standard deviations above the limit.
    """
    rng = np.random.default_rng(2)
    law = 1 / np.arange(1, 33)
    law /= law.sum()
    counts = rng.multinomial(20_000, law, size=20_000).astype(float)
    alarms = np.count_nonzero(p_values_of(counts, law) <= 0.01)
    assert alarms <= stats.binom.isf(1e-9, 20_000, 0.01)


LAW = np.array([0.5, 0.5])


@pytest.mark.parametrize(
    ("counts", "law", "message"),
    [
        (np.array([1, -2]), LAW, "cell 1 must be a whole number .* but is -2"),
        (np.array([1.5, 2]), LAW, "cell 0 must be a whole number"),
        (np.array([np.nan, 2]), LAW, "cell 0 .* nan"),
        (np.array([np.inf, 2]), LAW, "cell 0 .* inf"),
        (np.array([2.0**54, 2]), LAW, "cell 0"),
        (np.array([1, 2, 3]), LAW, "3 counts but the law has 2 cells"),
        (np.array([[1, 2]]), LAW, "shape is \\(1, 2\\)"),
        (np.array([True, False]), LAW, "type is bool"),
        (np.array([0, 0]), LAW, "nothing was drawn"),
        (np.array([1, 2]), np.array([0.5, 0.6]), "sum to 1.1"),
        (np.array([1, 2]), np.array([-0.5, 1.5]), "gives cell 0 the probability -0.5"),
        (np.array([1, 2]), np.array([0.5, np.nan]), "gives cell 1 the probability nan"),
        (np.array([]), np.array([]), "shape is \\(0,\\)"),
    ],
)
def test_bad_input_is_refused(counts: np.ndarray, law: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chi_square(counts, law)


def test_dishonest_pooling_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 20, but least is 5"):
        chi_square(np.array([10, 10]), LAW, least=5)


def test_counts_of_any_number_type_are_read() -> None:
    for dtype in (np.int32, np.uint8, np.int64, np.float32):
        assert check_counts(np.array([3, 4], dtype=dtype)).tolist() == [3, 4]
