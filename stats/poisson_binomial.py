"""Exact upper tail of a sum of independent binomials with different probabilities."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64
from scipy import optimize, special

_DEVIATIONS, _MARGIN = 9.0, 60.0
"""A binomial is cut at this many standard deviations and a margin: what lies outside is below ``_CUT``."""

_CUT = 1e-17
"""Bernstein's bound of one side of what is cut: exp(-w^2 / 2(v + w/3)) for w = 9 sqrt(v) + 60, any v."""

_ROUNDING = 1e-12
"""Allowance for rounding in the fast convolutions, whose results are probabilities."""

Vector = Float64[np.ndarray, " groups"]


def upper_tail_of_sum(successes: int, trials: Vector, probabilities: Vector) -> float:
    """P(S >= successes) where S is the sum of independent binomials.

    Each binomial is tilted exponentially so that the sum has its mean at `successes`; there the distribution
    is convolved, and tilted back. So even a tail of 1e-200 is found to nine digits. What is cut, and what the
    convolution may round away, is added: the error is upwards.

    Parameters
    ----------
    successes : from 0 to the sum of the trials.
    trials : ``[groups]``, whole numbers, at least 1.
    probabilities : ``[groups]``, strictly between 0 and 1.

    Examples
    --------
    >>> tail = upper_tail_of_sum(3, np.array([1.0, 2.0]), np.array([0.5, 0.1]))
    >>> round(tail, 9)
    0.005
    """
    if successes == 0:
        return 1.0
    if successes == trials.sum():
        return math.exp(float((trials * np.log(probabilities)).sum()))
    tilt = _tilt(successes, trials, probabilities)
    tilted = _tilted(probabilities, tilt)
    first, masses = _convolve([_binomial(int(n), float(p)) for n, p in zip(trials, tilted, strict=True)])
    beyond = np.arange(first, first + len(masses)) - successes
    kept = beyond >= 0
    sum_beyond = float((masses[kept] * np.exp(-tilt * beyond[kept])).sum())
    log_moment = float((trials * np.log1p(probabilities * math.expm1(tilt))).sum())
    allowance = 2 * len(trials) * _CUT + _ROUNDING
    return min(1.0, math.exp(log_moment - tilt * successes) * (sum_beyond + allowance))


def _tilt(successes: int, trials: Vector, probabilities: Vector) -> float:
    """The exponent that moves the mean to `successes`; 0 if the mean is there or beyond already."""

    def missing(tilt: float) -> float:
        return float((trials * _tilted(probabilities, tilt)).sum()) - successes

    if missing(0.0) >= 0:
        return 0.0
    upper = 1.0
    while missing(upper) < 0:
        upper *= 2
    return float(optimize.brentq(missing, 0.0, upper))


def _tilted(probabilities: Vector, tilt: float) -> Vector:
    """p e^t / (1 - p + p e^t), without overflow."""
    return np.asarray(special.expit(special.logit(probabilities) + tilt))


def _binomial(trials: int, probability: float) -> tuple[int, Vector]:
    """First value and probabilities of a binomial, cut where next to nothing lies.

    Each is the one before it times their quotient, from the likeliest value on to both sides.
    """
    mean = trials * probability
    reach = _DEVIATIONS * math.sqrt(mean * (1 - probability)) + _MARGIN
    first, last = max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))
    values = np.arange(first, last + 1)
    odds = probability / (1 - probability) if probability < 1 else math.inf  # a tilt may round to one
    quotients = (trials - values[:-1]) / values[1:] * odds
    likeliest = np.count_nonzero(quotients >= 1)
    below = np.cumprod(1 / quotients[:likeliest][::-1])[::-1]
    weights = np.concatenate([below, [1.0], np.cumprod(quotients[likeliest:])])
    return first, weights / weights.sum()


def _convolve(parts: Sequence[tuple[int, Vector]]) -> tuple[int, Vector]:
    """First value and probabilities of the sum, joined in pairs so that the work stays small."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    (first_a, a), (first_b, b) = _convolve(parts[:half]), _convolve(parts[half:])
    length = len(a) + len(b) - 1
    # scipy.signal has this as well, but takes a second to load.
    size = 1 << (length - 1).bit_length()
    joined = np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)[:length]
    return first_a + first_b, np.asarray(joined)
