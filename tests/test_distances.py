"""Total variation: the bounds hold, and are as narrow as they should be."""

import numpy as np
import pytest
from scipy import stats

from support.known_laws import zipf
from tokenlaw.stats.distances import plug_in_tv, tv_bounds


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
    bounds = [tv_bounds(row, law, alpha=0.1) for row in counts]
    misses = sum(not least <= true <= most for least, most in bounds)
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
    least, bound = tv_bounds(counts, counts / counts.sum(), alpha=1e-9)
    assert least == 0
    assert x / 3 < bound < x


def test_bands_make_the_bound_narrower_than_the_worst_law_would() -> None:
    """A skewed law of 32768 cells: the worst case alone would add sqrt(V / 4N) = 0.09."""
    counts = np.round(1e6 * zipf(32768))
    _, bound = tv_bounds(counts, counts / counts.sum(), alpha=1e-9)
    assert bound < 0.06


def test_bad_input_is_refused() -> None:
    law = np.array([0.5, 0.5])
    with pytest.raises(ValueError, match="alpha must be above 0 and below 1, but is 1"):
        tv_bounds(np.array([1, 2]), law, alpha=1)
    with pytest.raises(ValueError, match="nothing was drawn"):
        plug_in_tv(np.array([0, 0]), law)
    with pytest.raises(ValueError, match="both must be over the same cells"):
        tv_bounds(np.array([1, 2, 3]), law, alpha=0.1)
