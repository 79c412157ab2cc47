"""The log gamma function without its leading terms, so that differences of it keep their digits.

A Bayes factor of counts is made of differences lnΓ(a + n) - lnΓ(a). With a or n near 1e12 both terms are near
3e13, where doubles are 4e-3 apart, while the factor itself may be near 1. So the leading terms of Stirling's
formula are taken out, to be combined by hand where they meet their counterparts (`tokenlaw.stats.e_values`),
and only a remainder that stays below 20 is computed here.

Source: NIST Digital Library of Mathematical Functions, 5.11.1 (Stirling's series) and 5.5.1 (recurrence).
"""

import math

import numpy as np
from jaxtyping import Float64

Shaped = Float64[np.ndarray, "*shape"]
"""Any shape; the result has the shape of the arguments."""

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
"""Coefficients of 1/x, 1/x^3, ... in Stirling's series."""

_SERIES_FROM = 12
"""From here on the first term left out, 691 / 360360 / x^11, is below 3e-15."""

_HALF_LOG_TWO_PI = math.log(2 * math.pi) / 2


def log_gamma_remainder(x: Shaped) -> Shaped:
    """``lnΓ(x) - x ln x + x``: what is left of the log gamma function without its leading terms.

    Parameters
    ----------
    x : above 0 and finite; not checked, since this is the innermost loop.

    Returns
    -------
    Remainder, to an absolute error of about 1e-14. It falls like ``-ln(x) / 2`` for large x.

    Examples
    --------
    >>> log_gamma_remainder(np.array([1.0, 1e12])).round(6)
    array([  1.      , -12.896572])
    """
    remainder = _series(x)
    flat, small = remainder.reshape(-1), np.flatnonzero(x < _SERIES_FROM)
    if small.size:
        flat[small] = _shifted(x.reshape(-1)[small])
    return flat.reshape(x.shape)


def _series(x: Shaped) -> Shaped:
    """Stirling's series, for large x; meaningless but harmless for small x."""
    inverse = 1 / np.maximum(x, 1.0)
    square = inverse * inverse
    series = np.full_like(x, _STIRLING[-1])
    for coefficient in reversed(_STIRLING[:-1]):
        series *= square
        series += coefficient
    series *= inverse
    series -= 0.5 * np.log(x)
    series += _HALF_LOG_TWO_PI
    return series


def _shifted(x: Shaped) -> Shaped:
    """The recurrence Γ(x + 12) = x (x + 1) ... (x + 11) Γ(x), for small x."""
    product, shifted = x.copy(), x + _SERIES_FROM
    for step in range(1, _SERIES_FROM):
        product *= x + step
    leading = shifted * np.log(shifted) - x * np.log(x) - _SERIES_FROM
    remainder: Shaped = _series(shifted) + leading - np.log(product)
    return remainder
