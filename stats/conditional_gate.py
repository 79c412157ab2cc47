"""The gate for conditional laws: the next token's law after each class of prefixes.

Beyond some 1e5 sequences their joint law can't be counted cell by cell. By the chain rule it is the product
of the laws of each token given those before it, and these can be tested one position after the other, with
the prefixes hashed into classes. That is exact, not approximate, on one condition: *a class must decide the
law*, that is, two prefixes of one class must be followed by the same law. (Where it doesn't, the law after a
class is an average over prefixes whose weights the implementation decides.)

Derivation. Let F_j be what all rows have emitted before position j; it decides which rows get there and the
class g of each. Rows are independent, so given F_j the n_g tokens behind class g are independent draws from
its law L_g. The likelihood ratio B_g(c) of a Dirichlet(c L_g) mixture of laws to L_g itself (as in
`tokenlaw.stats.gates.DirichletGate`) has therefore the mean one given F_j, whatever n_g came to be, and so
has the product over the classes of a position. Multiplying over positions is betting again what was won so
far: E[B_1 ... B_j] = E[B_1 ... B_(j-1) E[B_j | F_j]] = 1. Averages keep the mean as long as their weights are
known before the bet: those over concentrations and positions are fixed, and F_j decides which classes share
the weight of position j. So the result is an e-value. The law of the classes is never asked for, and what is
wrong at earlier positions speaks there alone.
"""

import math

import numpy as np
from jaxtyping import Float64, Int64

from tokenlaw.stats.gates import DIRICHLET_CONCENTRATIONS
from tokenlaw.stats.log_gamma import log_gamma_remainder
from tokenlaw.stats.mixtures import blocks, log_factors, log_sum_exp, log_total_factor

PARTS = 3
"""Parts of the e-value: all classes of all positions err alike, those of one position, one class alone."""

ClassCounts = Int64[np.ndarray, "positions classes cells"]
"""How often each cell came after each class."""

ClassLaws = Float64[np.ndarray, "positions classes cells"]
"""The law after each class; the masses of a class sum to one, or are all 0 where it can't occur."""


def conditional_log_e(counts: ClassCounts, laws: ClassLaws) -> float:
    """Natural logarithm of the e-value of tokens counted after classes of prefixes.

    The average of its `PARTS`, each of which is an average over concentrations. Places without counts are
    bets not placed, and count as one.

    Parameters
    ----------
    counts : of each cell after each class at each position.
    laws : the law after each class.

    Returns
    -------
    Logarithm of the e-value; infinity if a cell of probability zero was hit.

    Raises
    ------
    ValueError
        The shapes differ.

    Examples
    --------
    >>> laws = np.array([[[0.5, 0.5], [0.9, 0.1]]])
    >>> conditional_log_e(np.array([[[52, 48], [90, 10]]]), laws) < 0
    True
    >>> conditional_log_e(np.array([[[90, 10], [52, 48]]]), laws) > 20
    True
    """
    if counts.shape != laws.shape:
        raise ValueError(f"the counts have the shape {counts.shape}, the laws {laws.shape}")
    if counts[laws == 0].any():
        return math.inf
    together, alone = np.zeros((len(counts), len(DIRICHLET_CONCENTRATIONS))), np.zeros(len(counts))
    for position, (here, exact) in enumerate(zip(counts, laws, strict=True)):
        met = np.flatnonzero(here.any(-1))
        if len(met):
            by_class = class_log_es(here[met], exact[met])
            together[position], alone[position] = by_class.sum(0), _log_mean(by_class)
    return _log_mean(np.array([_log_mean(together.sum(0)), _log_mean(together), _log_mean(alone)]))


def _log_mean(logs: Float64[np.ndarray, "..."]) -> float:
    """Logarithm of the mean of numbers given by their logarithms."""
    return log_sum_exp(logs) - math.log(logs.size)


def class_log_es(
    counts: Int64[np.ndarray, "classes cells"], laws: Float64[np.ndarray, "classes cells"]
) -> Float64[np.ndarray, "classes priors"]:
    """Log likelihood ratio of each class under each concentration.

    Its time grows with the number of cells that were hit, not with that of all cells: with n = 0 and the
    mass 1 - P of all cells that were not hit, their factors (`tokenlaw.stats.mixtures`) sum to
    (1 - P) (N - c ln(1 + N / c)) for N draws.
    """
    size, priors = counts.sum(-1).astype(np.float64), DIRICHLET_CONCENTRATIONS
    rows, cells = np.nonzero(counts)
    hits, masses = counts[rows, cells].astype(np.float64), laws[rows, cells]
    unhit = np.maximum(1 - np.bincount(rows, masses, minlength=len(counts)), 0.0)
    totals = np.stack([log_total_factor(priors, draws) for draws in size])
    found: Float64[np.ndarray, "classes priors"]
    found = unhit[:, None] * (size[:, None] - priors * np.log1p(size[:, None] / priors)) - totals
    for block in blocks(len(rows)):
        shapes = masses[block, None] * priors
        expected = size[rows[block]] * masses[block]
        factors = log_factors(shapes, log_gamma_remainder(shapes), hits[block], expected)
        np.add.at(found, rows[block], factors)
    return found
