"""Pearson's chi-square test at a fixed sample size, with a p-value that is honest far into the tail.

Pearson's statistic alone isn't: beside heavy cells, one cell that is expected 100 times makes its
asymptotic p-value 8 times too small at 1e-9, one that is expected 20 times 80 times (its count is skewed, and
Pearson's statistic grows with the square of the excess). The likelihood-ratio statistic G with the
correction of Williams (1976, Biometrika 63) keeps its tail, but at few cells it jumps over what lies between
two whole counts. So the law is refuted only where both statistics refute it: the p-value is that of the
smaller one, doubled. Computed exactly (two, three and many cells, all expected at least 20 times), the
smaller one is never wrong by more than a factor 1.5 down to 1e-12, so that the doubled p-value is an upper
bound. Power hardly differs: on spread deviations the two statistics agree within a few percent.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy import special

from tokenlaw.stats.counts import Counts, Law, check_counts_and_law
from tokenlaw.stats.pooling import LEAST_EXPECTED, Grouping, pool_cells

SAFETY_FACTOR = 2.0
"""By how much the asymptotic p-value is raised, so that it is honest at 1e-9 and below."""


@dataclass(frozen=True)
class ChiSquare:
    """What Pearson's test says about a sample.

    Attributes
    ----------
    pearson : sum of (observed - expected)^2 / expected over the pooled cells; infinite if an impossible
        cell was drawn.
    likelihood_ratio : G, twice the log-likelihood ratio over the pooled cells; infinite likewise.
    degrees_of_freedom : pooled cells less one. With 0 nothing was tested.
    p_value : an upper bound of the probability of such a sample or a worse one under the law.
    cells : pooled cells that are possible.
    pooled_mass : probability inside pooled cells, where a fault is invisible: see `Grouping`.
    samples : size of the sample.
    """

    pearson: float
    likelihood_ratio: float
    degrees_of_freedom: int
    p_value: float
    cells: int
    pooled_mass: float
    samples: int


def chi_square(counts: Counts, law: Law, *, least: float = LEAST_EXPECTED) -> ChiSquare:
    """Test whether the counts were drawn from the law (Pearson 1900), cells pooled to `least` expected.

    The size of the sample must not depend on what was drawn.

    Parameters
    ----------
    counts : ``[cells]``, how often each cell was drawn, at least once in all.
    law : ``[cells]``.
    least : least expected count of a pooled cell, at least ``LEAST_EXPECTED``.

    Raises
    ------
    ValueError
        As `check_counts_and_law`, or nothing was drawn, or least is too small for an honest p-value.

    Examples
    --------
    >>> fair = np.array([0.5, 0.5])
    >>> chi_square(np.array([510, 490]), fair).p_value
    1.0
    >>> result = chi_square(np.array([700, 300]), fair)
    >>> result.pearson, result.degrees_of_freedom, result.p_value < 1e-30
    (160.0, 1, True)
    """
    observed, exact = check_counts_and_law(counts, law)
    if not least >= LEAST_EXPECTED:
        raise ValueError(
            f"cells must be pooled to an expected count of at least {LEAST_EXPECTED:g}, but least is {least}"
        )
    samples = observed.sum()
    if samples == 0:
        raise ValueError("nothing was drawn: all counts are 0")
    grouping = pool_cells(exact, samples, least=least)
    return _test(grouping.pool(observed), grouping, int(samples))


def _test(pooled: Float64[np.ndarray, " groups"], grouping: Grouping, samples: int) -> ChiSquare:
    """The test on pooled counts."""
    possible = grouping.law > 0
    cells = int(np.count_nonzero(possible))
    if pooled[~possible].any():
        return ChiSquare(np.inf, np.inf, cells - 1, 0.0, cells, grouping.pooled_mass, samples)
    observed, expected = pooled[possible], samples * grouping.law[possible]
    x, g = pearson(observed, expected), likelihood_ratio(observed, expected)
    p_value = float(honest_p_value(x, g, expected))
    return ChiSquare(float(x), float(g), cells - 1, p_value, cells, grouping.pooled_mass, samples)


def pearson(
    observed: Float64[np.ndarray, "*batch cells"], expected: Float64[np.ndarray, " cells"]
) -> Float64[np.ndarray, "*batch"]:
    """Pearson's statistic of each row of counts; every expected count is positive.

    >>> float(pearson(np.array([60.0, 40.0]), np.array([50.0, 50.0])))
    4.0
    """
    return np.asarray(((observed - expected) ** 2 / expected).sum(-1))


def likelihood_ratio(
    observed: Float64[np.ndarray, "*batch cells"], expected: Float64[np.ndarray, " cells"]
) -> Float64[np.ndarray, "*batch"]:
    """The statistic G of each row: 2 sum of observed log(observed / expected) - (observed - expected).

    >>> round(float(likelihood_ratio(np.array([60.0, 40.0]), np.array([50.0, 50.0]))), 3)
    4.027
    """
    terms = special.xlogy(observed, observed / expected) - (observed - expected)
    return np.asarray(2 * terms.sum(-1))


def honest_p_value(
    pearson: Float64[np.ndarray, "*batch"],
    likelihood_ratio: Float64[np.ndarray, "*batch"],
    expected: Float64[np.ndarray, " cells"],
) -> Float64[np.ndarray, "*batch"]:
    """The p-value of both statistics together: ``SAFETY_FACTOR`` times the tail of the smaller one.

    Parameters
    ----------
    pearson, likelihood_ratio : the statistics, of any shape.
    expected : ``[cells]``, expected counts, each at least ``LEAST_EXPECTED``, with the sum of the counts.

    Returns
    -------
    At most 1, and 1 if there is one cell only.
    """
    degrees_of_freedom = len(expected) - 1
    if degrees_of_freedom == 0:
        return np.ones_like(pearson)
    williams = 1 + ((1 / expected).sum() - 1 / expected.sum()) / (6 * degrees_of_freedom)
    smaller = np.minimum(pearson, likelihood_ratio / williams)
    return np.asarray(np.minimum(1.0, SAFETY_FACTOR * special.chdtrc(degrees_of_freedom, smaller)))
