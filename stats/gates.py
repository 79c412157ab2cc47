"""The two gates: test martingales of counts against an exactly known law, precomputed for repeated looks.

What an e-value says and when which gate is legal: `tokenlaw.stats.e_values`. Both gates average two mixtures
of alternatives. The *dense* one lets all cells err at once; the *cell* mixture lets one cell err and keeps
the others at their null law, averaged over the cells. Averaging costs at most a factor of two. The priors
depend on the null law alone, so that the e-values of growing counts form one martingale.
"""

import math

import numpy as np
from jaxtyping import Bool, Float64

from tokenlaw.stats.counts import Counts, Law, check_counts, check_law
from tokenlaw.stats.log_gamma import log_gamma_remainder
from tokenlaw.stats.mixtures import (
    Table,
    Vector,
    blocks,
    half_dense_half_cells,
    log_factors,
    log_sum_exp,
    log_total_factor,
)

POISSON_CONCENTRATIONS = np.geomspace(1e-2, 1e8, 11)
"""Concentrations c of the Gamma factors; a relative error of size d is met best by c near 1 / d^2."""

EXPONENTS = (0.0, 1 / 3, 2 / 3, 1.0)
"""Exponents s: the shape of a cell of probability p is c p^s, divided by the mean of p^s. With 0 every cell
errs by about the same share (this is also the prior of the cell mixture), with 1 light cells err by more, as
in a Dirichlet law."""

DIRICHLET_CONCENTRATIONS = np.geomspace(1e-2, 1e10, 13)
"""Concentrations c of the Dirichlet(c p) laws."""


class GammaPoissonGate:
    """The gate for Poisson counts of one law; make it once, look often.

    Parameters
    ----------
    law : probability of each cell.

    Raises
    ------
    ValueError
        The law isn't one.
    """

    def __init__(self, law: Law) -> None:
        self._possible, self._law = _possible_cells(law)
        weights = [self._law**s / (self._law ** (1 + s)).sum() for s in EXPONENTS]
        self._shapes: Table = np.concatenate([np.outer(w, POISSON_CONCENTRATIONS) for w in weights], axis=1)
        self._remainders = log_gamma_remainder(self._shapes)

    def log_e(self, counts: Counts, expected_total: float) -> float:
        """Natural logarithm of the e-value of all the counts so far.

        Parameters
        ----------
        counts : of each cell, cumulative over the chunks.
        expected_total : sum of the means of the Poisson laws from which the sizes of the chunks were drawn
            (not the number of samples that came).

        Returns
        -------
        Logarithm of the e-value; infinity if a cell of probability zero was hit.

        Raises
        ------
        ValueError
            Counts that are negative, not whole or not one for each cell; a total that isn't finite from 0.

        Examples
        --------
        >>> gate = GammaPoissonGate(np.array([0.5, 0.5, 0.0]))
        >>> gate.log_e(np.array([51, 49, 0]), 100.0) < 0 < gate.log_e(np.array([80, 20, 0]), 100.0)
        True
        >>> gate.log_e(np.array([51, 48, 1]), 100.0)
        inf
        """
        if not 0 <= expected_total < math.inf:
            raise ValueError(f"the expected total must be finite and at least 0, but is {expected_total}")
        possible = _possible_counts(counts, self._possible)
        if possible is None or (expected_total == 0 and possible.any()):
            return math.inf
        expected = expected_total * self._law
        dense, cells = np.zeros(self._shapes.shape[1]), []
        for block in blocks(len(possible)):
            logs = log_factors(self._shapes[block], self._remainders[block], possible[block], expected[block])
            dense += logs.sum(axis=0)
            cells.append(log_sum_exp(logs[:, : len(POISSON_CONCENTRATIONS)]))
        return half_dense_half_cells(dense, cells, len(possible) * len(POISSON_CONCENTRATIONS))


class DirichletGate:
    """The gate for independent draws from one law; make it once, look often.

    Parameters
    ----------
    law : probability of each cell.

    Raises
    ------
    ValueError
        The law isn't one.
    """

    def __init__(self, law: Law) -> None:
        self._possible, self._law = _possible_cells(law)
        self._others = _probabilities_of_others(self._law)
        self._shapes: Table = np.outer(self._law, DIRICHLET_CONCENTRATIONS)
        self._other_shapes: Table = np.outer(self._others, DIRICHLET_CONCENTRATIONS)
        self._remainders = log_gamma_remainder(self._shapes)
        self._other_remainders = log_gamma_remainder(self._other_shapes)

    def log_e(self, counts: Counts) -> float:
        """Natural logarithm of the e-value of all the draws so far.

        Parameters
        ----------
        counts : of each cell, cumulative.

        Returns
        -------
        Logarithm of the e-value; infinity if a cell of probability zero was hit.

        Raises
        ------
        ValueError
            Counts that are negative, not whole or not one for each cell.

        Examples
        --------
        >>> gate = DirichletGate(np.array([0.5, 0.5]))
        >>> gate.log_e(np.array([51, 49])) < 0 < gate.log_e(np.array([80, 20]))
        True
        """
        possible = _possible_counts(counts, self._possible)
        if possible is None:
            return math.inf
        size = float(possible.sum())
        total = log_total_factor(DIRICHLET_CONCENTRATIONS, size)
        dense, cells = -total, []
        for block in blocks(len(possible)):
            logs = self._log_factors(block, possible[block], size)
            dense += logs.sum(axis=0)
            cells.append(log_sum_exp(logs + self._other_log_factors(block, possible[block], size) - total))
        return half_dense_half_cells(dense, cells, self._shapes.size)

    def _log_factors(self, block: slice, counts: Vector, size: float) -> Table:
        """Log factors of the cells."""
        return log_factors(self._shapes[block], self._remainders[block], counts, size * self._law[block])

    def _other_log_factors(self, block: slice, counts: Vector, size: float) -> Table:
        """Log factors of "any other cell", for each cell."""
        return log_factors(
            self._other_shapes[block],
            self._other_remainders[block],
            size - counts,
            size * self._others[block],
        )


def _possible_cells(law: Law) -> tuple[Bool[np.ndarray, " cells"], Float64[np.ndarray, " possible"]]:
    """Which cells are possible, and their probabilities, rounding errors of the sum divided out."""
    values = check_law(law)
    return values > 0, values[values > 0] / values.sum()


def _probabilities_of_others(law: Vector) -> Vector:
    """``1 - p`` of each cell, without loss of digits where p is near one."""
    others = 1 - law
    heaviest = int(np.argmax(law))
    others[heaviest] = np.delete(law, heaviest).sum()
    # A law of one cell has no others; almost zero keeps the formulas finite, and then e = 1 comes out.
    positive: Vector = np.maximum(others, 1e-300)
    return positive


def _possible_counts(
    counts: Counts, possible: Bool[np.ndarray, " cells"]
) -> Float64[np.ndarray, " possible"] | None:
    """Counts of the possible cells; None if an impossible one was hit."""
    values = check_counts(counts)
    if len(values) != len(possible):
        raise ValueError(f"there are {len(values)} counts, but the law has {len(possible)} cells")
    return None if values[~possible].any() else values[possible]
