"""Wide vocabularies: cells by powers of two of their probability, and the tail below each power.

Faults of a wide vocabulary live in its tail: a uniform number of 24 bits never selects a token of
probability below 2^-24. Token by token that takes millions of samples to see; as one tail, some ten
thousand.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from tokenlaw.stats.binomial import smaller_tail
from tokenlaw.stats.counts import Counts, Law, check_counts_and_law, check_law
from tokenlaw.stats.pooling import Grouping, group_by


def dyadic_exponents(law: Law) -> Int64[np.ndarray, " cells"]:
    """floor(-log2 p) of each cell, exactly; 1100, more than any double has, where p is 0.

    >>> dyadic_exponents(np.array([0.5, 0.3, 0.2, 0.0]))
    array([   1,    1,    2, 1100])
    """
    mantissa, exponent = np.frexp(law)
    exponents = np.where(mantissa == 0.5, 1 - exponent, -exponent)
    return np.where(mantissa > 0, exponents, 1100).astype(np.int64)


def probability_bands(law: Law) -> Grouping:
    """Cells joined by floor(-log2 p): within a band no cell is twice as probable as another.

    The bands, heaviest cells first, are a coarser law for any test; impossible cells are the last band.

    Raises
    ------
    ValueError
        As `check_law`.

    Examples
    --------
    >>> bands = probability_bands(np.array([0.5, 0.3, 0.125, 0.075, 0.0]))
    >>> bands.labels, bands.law
    (array([0, 0, 1, 1, 2]), array([0.8, 0.2, 0. ]))
    """
    exact = check_law(law)
    exponents = dyadic_exponents(exact)
    _, labels = np.unique(exponents, return_inverse=True)
    return group_by(labels.astype(np.int64), exact)


@dataclass(frozen=True)
class Tail:
    """All cells up to a probability, counted as one.

    Attributes
    ----------
    largest_probability : no cell of the tail is more probable: a power of two.
    cells : number of possible cells in the tail.
    observed : how often one of them was drawn.
    expected : how often it should have been, on average.
    p_value : exact binomial, already multiplied by the number of tails and sides: the least one of a sample
        is a valid p-value for the whole law.
    """

    largest_probability: float
    cells: int
    observed: int
    expected: float
    p_value: float


def cumulative_tails(counts: Counts, law: Law) -> list[Tail]:
    """Each tail of cells with p <= 2^-b, tested by its exact binomial law, smallest p-value first.

    A tail that is never drawn, though it should have been, is seen as soon as about log(1/alpha) of its draws
    are missing. The size of the sample must not depend on what was drawn. Impossible cells are no tail:
    `tokenlaw.stats.cells.worst_cells` reports them.

    Parameters
    ----------
    counts : ``[cells]``.
    law : ``[cells]``.

    Returns
    -------
    One tail for each band but the first; empty if all probabilities lie in one band.

    Raises
    ------
    ValueError
        As `check_counts_and_law`.

    Examples
    --------
    >>> law = np.array([0.5, 0.4, 0.05, 0.05])
    >>> worst = cumulative_tails(np.array([550, 450, 0, 0]), law)[0]
    >>> worst.largest_probability, worst.cells, worst.observed, worst.p_value < 1e-40
    (0.0625, 2, 0, True)
    """
    observed, exact = check_counts_and_law(counts, law)
    exponents = dyadic_exponents(exact)
    bands, labels = np.unique(exponents[exact > 0], return_inverse=True)
    cells, mass, hits = (
        _from_the_end(np.bincount(labels, weights))
        for weights in (np.ones(len(labels)), exact[exact > 0], observed[exact > 0])
    )
    samples = observed.sum()
    p_values = np.minimum(1.0, 2 * len(mass) * smaller_tail(hits, samples, np.minimum(mass, 1.0)))
    ranked = np.argsort(p_values, kind="stable")
    return [
        Tail(
            math.ldexp(1.0, -int(bands[1 + i])),
            int(cells[i]),
            int(hits[i]),
            float(samples * mass[i]),
            float(p_values[i]),
        )
        for i in ranked
    ]


def _from_the_end(weights: Float64[np.ndarray, " bands"]) -> Float64[np.ndarray, " tails"]:
    """Sums over this band and all lighter ones, for each band but the first."""
    return np.cumsum(weights[::-1])[::-1][1:]
