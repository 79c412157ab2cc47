"""Exact tails of the binomial law, and the confidence bounds that follow from them."""

from typing import TypeAlias

import numpy as np
from jaxtyping import Float64
from scipy import special

Numbers: TypeAlias = float | Float64[np.ndarray, "..."]
"""A number, or an array of them; arguments broadcast."""


def upper_tail(successes: Numbers, trials: Numbers, probability: Numbers) -> Float64[np.ndarray, "..."]:
    """P(X >= successes) for a binomial X and 0 <= successes <= trials, by the incomplete beta function.

    >>> float(upper_tail(2.0, 2.0, 0.25)), float(upper_tail(0.0, 2.0, 0.25))
    (0.0625, 1.0)
    """
    some = np.maximum(successes, 1.0)
    tail = special.betainc(some, np.subtract(trials, some) + 1.0, probability)
    return np.where(np.less(successes, 1.0), 1.0, tail)


def lower_tail(successes: Numbers, trials: Numbers, probability: Numbers) -> Float64[np.ndarray, "..."]:
    """P(X <= successes) for a binomial X and 0 <= successes <= trials.

    >>> float(lower_tail(0.0, 2.0, 0.25)), float(lower_tail(2.0, 2.0, 0.25))
    (0.5625, 1.0)
    """
    fewer = np.minimum(successes, np.subtract(trials, 1.0))
    tail = special.betaincc(np.add(fewer, 1.0), np.subtract(trials, fewer), probability)
    return np.where(np.greater_equal(successes, trials), 1.0, tail)


def smaller_tail(successes: Numbers, trials: Numbers, probability: Numbers) -> Float64[np.ndarray, "..."]:
    """The smaller of both tails; twice this is a two-sided p-value.

    >>> float(smaller_tail(0.0, 2.0, 0.25))
    0.5625
    """
    upper, lower = upper_tail(successes, trials, probability), lower_tail(successes, trials, probability)
    return np.asarray(np.minimum(upper, lower))


def upper_confidence(successes: Numbers, trials: Numbers, alpha: float) -> Float64[np.ndarray, "..."]:
    """The largest probability that `successes` don't refute at level alpha (Clopper and Pearson, 1934).

    >>> round(float(upper_confidence(0.0, 2.0, 0.5625)), 9)  # at 1/4, no success in two has this probability
    0.25
    """
    fewer = np.minimum(successes, np.subtract(trials, 1.0))
    bound = special.betainccinv(np.add(fewer, 1.0), np.subtract(trials, fewer), alpha)
    return np.where(np.greater_equal(successes, trials), 1.0, bound)
