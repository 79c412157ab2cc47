"""The cells of a law that deviate most, with exact binomial tails."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64
from scipy import special

from tokenlaw.stats.binomial import smaller_tail
from tokenlaw.stats.counts import Counts, Law, check_counts_and_law

_SPARE = 32
"""Cells looked at beyond those asked for: deviance and exact tail order neighbours differently."""


@dataclass(frozen=True)
class WorstCell:
    """A cell that was drawn too often or too rarely.

    Attributes
    ----------
    cell : its index.
    observed : how often it was drawn.
    expected : how often it should have been, on average.
    p_value : exact, and already multiplied by the number of cells and sides that were looked at: the least
        one of a sample is a valid p-value for the whole law.
    """

    cell: int
    observed: int
    expected: float
    p_value: float


def worst_cells(counts: Counts, law: Law, *, most: int = 8) -> list[WorstCell]:
    """The cells with the smallest binomial tails, worst first.

    The size of the sample must not depend on what was drawn. Bonferroni over all possible cells and both
    sides. A draw of an impossible cell has p-value 0. Exact tails are computed for the most deviant cells
    only, chosen by their deviance.

    Parameters
    ----------
    counts : ``[cells]``.
    law : ``[cells]``.
    most : how many cells to return at most.

    Raises
    ------
    ValueError
        As `check_counts_and_law`, or most is below 1.

    Examples
    --------
    >>> worst_cells(np.array([10, 30, 60]), np.array([0.3, 0.3, 0.4]), most=1)[0].cell
    0
    """
    observed, exact = check_counts_and_law(counts, law)
    if most < 1:
        raise ValueError(f"ask for at least one cell, not {most}")
    samples = observed.sum()
    deviance = binomial_deviance(observed, samples, exact)
    chosen = _largest(deviance, most + _SPARE)
    sides = 2 * np.count_nonzero(exact)
    tails = smaller_tail(observed[chosen], samples, exact[chosen])
    # Stable: among tails too small for a double the larger deviance stays first.
    ranked = np.argsort(tails, kind="stable")[:most]
    return [
        WorstCell(int(cell), int(observed[cell]), float(samples * exact[cell]), min(1.0, float(sides * tail)))
        for cell, tail in zip(chosen[ranked], tails[ranked], strict=True)
    ]


def binomial_deviance(
    observed: Float64[np.ndarray, " cells"], samples: float, law: Law
) -> Float64[np.ndarray, " cells"]:
    """Log-likelihood ratio of each cell's own frequency against its probability; infinite if impossible."""
    others, other_law = samples - observed, 1 - law
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = special.xlogy(observed, observed / (samples * law))
        missed = special.xlogy(others, others / (samples * other_law))
    return np.where(observed == 0, 0.0, hit) + np.where(others == 0, 0.0, missed)


def _largest(values: Float64[np.ndarray, " cells"], number: int) -> Int64[np.ndarray, " chosen"]:
    """Indices of the largest values, largest first."""
    kept = np.argpartition(-values, number)[:number] if number < len(values) else np.arange(len(values))
    return kept[np.argsort(-values[kept], kind="stable")]
