"""Log likelihood ratios of Gamma mixtures of Poisson laws: the arithmetic under `tokenlaw.stats.e_values`.

Let a cell's rate be its expected count E times a Gamma factor of shape a and mean one. The marginal
likelihood of the count n over the Poisson likelihood of E is

    Γ(a + n) / (Γ(a) a^n) (1 + E / a)^-(a + n) exp(E).

With r(x) = lnΓ(x) - x ln x + x (`log_gamma_remainder`) its logarithm is

    (a + n) ln(1 + (n - E) / (a + E)) - (n - E) + r(a + n) - r(a),

in which nothing large cancels. The likelihood ratio of N draws under a Dirichlet(c p) mixture of laws is the
product of these factors with a = c p and E = N p, over the one factor of the total (n = E = N, a = c), whose
logarithm is r(c + N) - r(c).
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float64

from tokenlaw.stats.log_gamma import log_gamma_remainder

Vector = Float64[np.ndarray, " cells"]
"""A number for each cell."""

Table = Float64[np.ndarray, "cells priors"]
"""A number for each cell under each prior."""

_CELLS_AT_ONCE = 512
"""So many cells times some tens of priors stay in the processor's cache."""


def blocks(num_cells: int) -> Iterator[slice]:
    """Slices that walk over the cells in pieces that fit in the cache.

    >>> list(blocks(600))
    [slice(0, 512, None), slice(512, 1024, None)]
    """
    return (slice(start, start + _CELLS_AT_ONCE) for start in range(0, num_cells, _CELLS_AT_ONCE))


def log_factors(shapes: Table, remainders: Table, counts: Vector, expected: Vector) -> Table:
    """Log factor of every cell under every prior.

    Parameters
    ----------
    shapes : a, above 0.
    remainders : ``log_gamma_remainder(shapes)``, which a gate computes once.
    counts, expected : n and E of the cells.

    Examples
    --------
    >>> shapes = np.array([[1.0], [1.0]])  # the second factor is exp(1) / 2
    >>> factors = log_factors(shapes, log_gamma_remainder(shapes), np.array([9.0, 0.0]), np.array([2.0, 1.0]))
    >>> np.exp(factors).round(6)
    array([[45.40874 ],
           [ 1.359141]])
    """
    seen = np.flatnonzero(counts)
    if seen.size == len(counts):
        return _seen_factors(shapes, remainders, counts[:, None], expected[:, None])
    factors: Table = expected[:, None] - shapes * np.log1p(expected[:, None] / shapes)
    if seen.size:
        rows = (shapes[seen], remainders[seen], counts[seen, None], expected[seen, None])
        factors[seen] = _seen_factors(*rows)
    return factors


def log_total_factor(concentrations: Vector, size: float) -> Vector:
    """Log factor of the total of so many draws under Dirichlet laws of these concentrations.

    >>> log_total_factor(np.array([1.0, 100.0]), 0.0)
    array([0., 0.])
    """
    factors: Vector = log_gamma_remainder(concentrations + size) - log_gamma_remainder(concentrations)
    return factors


def log_sum_exp(logs: Sequence[float] | Float64[np.ndarray, "..."]) -> float:
    """``ln(sum(exp(logs)))`` without overflow.

    >>> round(log_sum_exp([1000.0, 1000.0]), 9)
    1000.693147181
    """
    values = np.asarray(logs)
    largest = float(values.max())
    if not np.isfinite(largest):
        return largest
    return largest + float(np.log(np.exp(values - largest).sum()))


def half_dense_half_cells(dense: Vector, cells: Sequence[float], num_cell_priors: int) -> float:
    """Log of the average of the dense mixture and the cell mixture.

    Parameters
    ----------
    dense : log likelihood ratio under each dense prior.
    cells : log sums over blocks of cells, of one-cell likelihood ratios.
    num_cell_priors : how many such ratios there are in all blocks together.

    Examples
    --------
    >>> round(half_dense_half_cells(np.zeros(3), [np.log(14.0), np.log(16.0)], 10), 9)  # (1 + 3) / 2
    0.693147181
    """
    dense_log = log_sum_exp(dense) - np.log(len(dense))
    cell_log = log_sum_exp(cells) - np.log(num_cell_priors)
    return float(np.logaddexp(dense_log, cell_log) - np.log(2))


def _seen_factors(
    shapes: Table,
    remainders: Table,
    counts: Float64[np.ndarray, "cells 1"],
    expected: Float64[np.ndarray, "cells 1"],
) -> Table:
    """`log_factors` for cells with counts above zero."""
    posterior, excess = shapes + counts, counts - expected
    factors: Table = excess / (shapes + expected)
    np.log1p(factors, out=factors)
    factors *= posterior
    factors -= excess
    factors += log_gamma_remainder(posterior)
    factors -= remainders
    return factors
