"""Total variation: the bounds hold, the Chernoff p-value is valid and has power."""

import numpy as np
import pytest
from scipy import stats

from tokenlaw.stats.distances import _log_moments, plug_in_tv, tv_lower_bound, tv_p_value, tv_upper_bound


def zipf(cells: int) -> np.ndarray:
    law = 1 / np.arange(1, cells + 1)
    return law / law.sum()


def test_plug_in_distance() -> None:
    assert plug_in_tv(np.array([3, 1, 0]), np.array([0.5, 0.25, 0.25])) == pytest.approx(0.25)
    assert plug_in_tv(np.array([0, 4]), np.array([1.0, 0.0])) == 1


@pytest.mark.parametrize(
    ("law", "other"),
    [
        (zipf(8), zipf(8)),
        (zipf(8), zipf(8)[::-1]),
        (zipf(256), np.full(256, 1 / 256)),
        (np.append(zipf(30), np.zeros(5)), np.append(0.9 * zipf(30), np.full(5, 0.02))),
    ],
)
def test_bounds_hold_at_ten_percent(law: np.ndarray, other: np.ndarray) -> None:
    """False alarm 1e-6: at alpha 0.1 at most 10 % of 300 pairs of bounds miss the true distance.

    Power: a third of the radius fails, since it misses in 64 % of the samples of the exact law.
    """
    true = np.abs(law - other).sum() / 2
    counts = np.random.default_rng(6).multinomial(2000, other, size=300)
    misses = sum(
        not tv_lower_bound(row, law, alpha=0.1) <= true <= tv_upper_bound(row, law, alpha=0.1)
        for row in counts
    )
    assert misses <= stats.binom.isf(1e-6, 300, 0.1)


@pytest.mark.parametrize(("cells", "published"), [(8, 78), (256, 350)])
def test_the_certificate_needs_what_was_measured(cells: int, published: float) -> None:
    """TV <= x with confidence 1 - 1e-9 after published/x^2 samples, where the sample is what is expected.

    The published figures take the plug-in distance at its mean and the law as known; here it is 0, and the
    unknown law is bounded, so the bound must lie between a third of x and x.
    """
    x = 0.001
    samples = published / x**2
    counts = np.round(samples * zipf(cells))
    bound = tv_upper_bound(counts, counts / counts.sum(), alpha=1e-9)
    assert x / 3 < bound < x


def test_bands_make_the_bound_narrower_than_the_worst_law_would() -> None:
    """A skewed law of 32768 cells: the worst case alone would add sqrt(V / 4N) = 0.09."""
    counts = np.round(1e6 * zipf(32768))
    bound = tv_upper_bound(counts, counts / counts.sum(), alpha=1e-9)
    assert bound < 0.06


def test_moments_agree_with_sums() -> None:
    means = np.array([0.3, 1.0, 7.5, 40.0, 90.9])
    counts = np.arange(2000)[:, None]
    for theta in (0.01, 0.3, 1.5):
        terms = stats.poisson.logpmf(counts, means) + theta * np.abs(counts - means)
        assert _log_moments(theta, means) == pytest.approx(np.log(np.exp(terms).sum(0)), rel=1e-9)


def test_false_alarms_of_the_p_value() -> None:
    """False alarm 1e-6: at most 5 % of 1000 p-values are below 0.05 (binomial).

    Power: one ten times too small gives 12 % and fails with probability 0.99; one three times too small
    passes, since Chernoff's bound gives about a factor of 10 away.
    """
    rng = np.random.default_rng(7)
    law = zipf(20)
    rows = rng.poisson(1000 * law, size=(1000, 20))
    alarms = sum(tv_p_value(row, law, 1000) <= 0.05 for row in rows)
    assert alarms <= stats.binom.isf(1e-6, 1000, 0.05)


@pytest.mark.parametrize(("cells", "published"), [(8, 19.9), (256, 36.0)])
def test_power_is_as_measured(cells: int, published: float) -> None:
    """With 1.3 times the published samples for power 0.9 at alpha 1e-9, most of 60 samples are refuted.

    The dense deviation of TV 0.01 under a zipf law. False alarm below 1e-9: the power is then above 0.97, and
    fewer than 40 of 60 would need 21 misses. Power of this test: half the power fails with probability 0.99.
    """
    rng = np.random.default_rng(8)
    law, tv = zipf(cells), 0.01
    up = rng.permutation(cells) % 2 == 0
    wrong = law * np.where(up, 1 + tv / law[up].sum(), 1 - tv / law[~up].sum())
    samples = 1.3 * published / tv**2
    refuted = sum(
        tv_p_value(row, law, samples) <= 1e-9 for row in rng.poisson(samples * wrong, size=(60, cells))
    )
    assert refuted >= 40


@pytest.mark.parametrize("mean", [1e-8, 1e-3, 0.5, 3.0])
def test_a_single_cell_of_any_mean_is_bounded(mean: float) -> None:
    """Chernoff's bound is at least the true tail, also where next to nothing is expected."""
    masses = stats.poisson.pmf(np.arange(200), mean)
    for count in range(1, 30):
        tail = masses[np.abs(np.arange(200) - mean) >= abs(count - mean)].sum()
        assert tv_p_value(np.array([count]), np.array([1.0]), mean) >= min(1.0, tail)
    assert tv_p_value(np.array([30]), np.array([1.0]), mean) < 1e-12


def test_an_impossible_draw_refutes() -> None:
    assert tv_p_value(np.array([10, 1]), np.array([1.0, 0.0]), 10) == 0


def test_bad_input_is_refused() -> None:
    law = np.array([0.5, 0.5])
    with pytest.raises(ValueError, match="alpha must be above 0 and below 1, but is 1"):
        tv_upper_bound(np.array([1, 2]), law, alpha=1)
    with pytest.raises(ValueError, match="nothing was drawn"):
        plug_in_tv(np.array([0, 0]), law)
    with pytest.raises(ValueError, match="number of samples must be positive"):
        tv_p_value(np.array([1, 2]), law, -1)
    with pytest.raises(ValueError, match="both must be over the same cells"):
        tv_p_value(np.array([1, 2, 3]), law, 5)
