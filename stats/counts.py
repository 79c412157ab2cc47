"""What every test of a law is given: counts of the cells, and the law that they are tested against."""

import math

import numpy as np
from jaxtyping import Float64, Int64, Real

from tokenlaw.spec.laws import FLOAT_TOLERANCE

Counts = Real[np.ndarray, " cells"]
"""How often each cell was drawn: whole numbers, of an integer or a float type."""

Law = Float64[np.ndarray, " cells"]
"""The probability of each cell, in double precision."""

Labels = Int64[np.ndarray, " cells"]
"""The group that each cell belongs to."""

SUM_TOLERANCE = FLOAT_TOLERANCE
"""How far from one the probabilities of a law may sum: rounding of doubles, not of single precision."""

LARGEST_COUNT = 2.0**53
"""Above this a double no longer holds every whole number."""


def check_counts(counts: Counts, name: str = "counts") -> Float64[np.ndarray, " cells"]:
    """The counts as float64, which holds them exactly.

    Parameters
    ----------
    counts : ``[cells]``, whole numbers from 0 to ``LARGEST_COUNT``.
    name : what the message calls them.

    Raises
    ------
    ValueError
        Not one-dimensional, empty, or a count is NaN, infinite, negative, fractional or too large.

    Examples
    --------
    >>> check_counts(np.array([3, 0, 2]))
    array([3., 0., 2.])
    >>> check_counts(np.array([3.0, 0.5]))
    Traceback (most recent call last):
    ValueError: the counts of cell 1 must be a whole number from 0 to 2^53, but is 0.5
    """
    values = _vector(counts, name)
    with np.errstate(invalid="ignore"):
        good = (values >= 0) & (values <= LARGEST_COUNT) & (np.floor(values) == values)
    if not good.all():
        cell = int(np.argmin(good))
        raise ValueError(
            f"the {name} of cell {cell} must be a whole number from 0 to 2^53, but is {values[cell]:.17g}"
        )
    return values


def check_law(law: Law, name: str = "law") -> Law:
    """The law as float64.

    Parameters
    ----------
    law : ``[cells]``, each probability from 0 to 1, with the sum one within ``SUM_TOLERANCE``.
    name : what the message calls it.

    Raises
    ------
    ValueError
        Not one-dimensional, empty, a probability is NaN or negative, or the sum isn't one.

    Examples
    --------
    >>> check_law(np.array([0.5, 0.4]))
    Traceback (most recent call last):
    ValueError: the probabilities of the law sum to 0.9 instead of 1
    """
    values = _vector(law, name)
    good = values >= 0  # false for NaN as well
    if not good.all():
        cell = int(np.argmin(good))
        raise ValueError(f"the {name} gives cell {cell} the probability {values[cell]:.17g}")
    mass = float(values.sum())
    if not abs(mass - 1) <= SUM_TOLERANCE:
        raise ValueError(f"the probabilities of the {name} sum to {mass:.12g} instead of 1")
    return values


def check_counts_and_law(counts: Counts, law: Law) -> tuple[Float64[np.ndarray, " cells"], Law]:
    """Both as float64, over the same cells.

    Raises
    ------
    ValueError
        As `check_counts` and `check_law`, or the lengths differ.

    Examples
    --------
    >>> check_counts_and_law(np.array([1, 2, 3]), np.array([0.5, 0.5]))
    Traceback (most recent call last):
    ValueError: there are 3 counts but the law has 2 cells; both must be over the same cells
    """
    observed, exact = check_counts(counts), check_law(law)
    if len(observed) != len(exact):
        raise ValueError(
            f"there are {len(observed)} counts but the law has {len(exact)} cells; "
            "both must be over the same cells"
        )
    return observed, exact


def check_inside_unit(value: float, name: str) -> None:
    """Refuse what isn't strictly between 0 and 1: an error probability such as alpha or beta.

    >>> check_inside_unit(0.0, "alpha")
    Traceback (most recent call last):
    ValueError: alpha must be above 0 and below 1, but is 0.0
    """
    if not 0 < value < 1:
        raise ValueError(f"{name} must be above 0 and below 1, but is {value}")


def check_samples(samples: float) -> None:
    """Refuse a number of samples that isn't positive and finite.

    >>> check_samples(0)
    Traceback (most recent call last):
    ValueError: the number of samples must be positive and finite, but is 0
    """
    if not 0 < samples < math.inf:
        raise ValueError(f"the number of samples must be positive and finite, but is {samples}")


def _vector(values: Real[np.ndarray, " cells"], name: str) -> Float64[np.ndarray, " cells"]:
    """One-dimensional float64, not empty."""
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"the {name} must be one number for each cell, but the shape is {array.shape}")
    if array.dtype.kind not in "iuf":
        raise ValueError(f"the {name} must be integers or floats, but the type is {array.dtype}")
    return array.astype(np.float64)
