"""The law within a total variation of a given one that explains counts best: the inner step of `tolerant`."""

import numpy as np

from tokenlaw.stats.counts import Counts, Law, check_counts_and_law, check_inside_unit
from tokenlaw.stats.mixtures import Vector


def distance(counts: Vector, law: Vector) -> float:
    """Total variation between the frequencies of checked counts and a law; 0 without draws.

    >>> distance(np.array([3.0, 1.0]), np.array([0.5, 0.5])), distance(np.zeros(2), np.array([0.5, 0.5]))
    (0.25, 0.0)
    """
    size = counts.sum()
    return float(np.abs(counts / size - law).sum() / 2) if size > 0 else 0.0


def likeliest_law(counts: Counts, law: Law, tolerance: float) -> Law:
    """Among the laws within a total variation of the given one, one under which the counts are likeliest.

    The total number of Poisson counts says nothing about the law, so this serves for them too.

    Derivation: maximise the sum of n_i ln(q_i). If the observed frequencies are within the tolerance, they
    are the solution. Else the whole tolerance is used, and by the Karush-Kuhn-Tucker conditions the raised
    cells have one common n_i / q_i = high, the lowered ones one common n_i / q_i = low < high, and the others
    q_i = p_i. Hence ``q = clip(p, n / high, n / low)``, where both sides move the whole tolerance:

        sum of (n_i / high - p_i)+ = tolerance = sum of (p_i - n_i / low)+.

    For any set S of cells the sum over S without "+" is at most the sum with it, and equal for the right set,
    which holds the cells of the largest (smallest) n_i / p_i. So high is the largest N(S) / (P(S) +
    tolerance), and low the smallest N(S) / (P(S) - tolerance), over the sets that begin that order. If the
    cells without counts hold more than the tolerance, low is 0, and they are lowered in proportion.
    Cost: O(cells log cells).

    Raises
    ------
    ValueError
        Counts or law are none, their lengths differ, or the tolerance is out of range.

    Examples
    --------
    >>> likeliest_law(np.array([90, 10, 0]), np.array([0.5, 0.25, 0.25]), 0.1)
    array([0.6 , 0.25, 0.15])
    """
    observed, exact = check_counts_and_law(counts, law)
    check_inside_unit(tolerance, "tolerance")
    exact = exact / exact.sum()
    solution: Law
    if not observed.any():
        solution = exact
    elif distance(observed, exact) <= tolerance:
        solution = observed / observed.sum()
    else:
        solution = _on_the_boundary(observed, exact, tolerance)
    return solution


def _on_the_boundary(observed: Vector, exact: Vector, tolerance: float) -> Vector:
    """The solution for frequencies that are farther away than the tolerance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(np.where(observed > 0, observed / exact, 0.0))
    high = _largest_level(observed[order[::-1]], exact[order[::-1]], tolerance)
    low = _smallest_level(observed[order], exact[order], tolerance)
    raised: Vector = np.maximum(exact, observed / high)
    if low > 0:
        lowered: Vector = np.minimum(raised, observed / low)
        return lowered
    unseen = observed == 0
    return np.where(unseen, exact * (1 - tolerance / exact[unseen].sum()), raised)


def _largest_level(counts: Vector, law: Vector, tolerance: float) -> float:
    """The common n / q of raised cells; cells in falling order of n / p."""
    return float((np.cumsum(counts) / (np.cumsum(law) + tolerance)).max())


def _smallest_level(counts: Vector, law: Vector, tolerance: float) -> float:
    """The common n / q of lowered cells; cells in rising order of n / p."""
    spare = np.cumsum(law) - tolerance
    enough = spare > 0
    return float((np.cumsum(counts)[enough] / spare[enough]).min())
