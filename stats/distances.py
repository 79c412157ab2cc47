"""Total variation between a sample and a law: estimate, rigorous bounds, and a rigorous test.

The plug-in estimate is biased upwards: a sample never equals its own law. The bounds pay for that with

    TV(q, p) <= TV(sample, p) + TV(sample, q),

where q is the law that the sample was drawn from. TV(sample, q) changes by at most 1/N when one draw changes,
so it stays within sqrt(log(1/alpha) / 2N) of its mean (McDiarmid 1989), and its mean is at most
sum of sqrt(q_i) / (2 sqrt N).
"""

import math

import numpy as np
from jaxtyping import Float64
from scipy import optimize, special

from tokenlaw.stats.binomial import upper_confidence
from tokenlaw.stats.counts import Counts, Law, check_counts_and_law, check_inside_unit, check_samples
from tokenlaw.stats.tails import probability_bands


def plug_in_tv(counts: Counts, law: Law) -> float:
    """Total variation between the frequencies of the sample and the law, from 0 to 1.

    Raises
    ------
    ValueError
        As `check_counts_and_law`, or nothing was drawn.

    Examples
    --------
    >>> plug_in_tv(np.array([6, 4]), np.array([0.5, 0.5])).__round__(12)
    0.1
    """
    observed, exact = _drawn(counts, law)
    return float(np.abs(observed / observed.sum() - exact).sum() / 2)


def tv_upper_bound(counts: Counts, law: Law, alpha: float) -> float:
    """With confidence 1 - alpha the law that the sample was drawn from is at most this far from `law`.

    Holds for every law and every size of the sample, unless the size depends on what was drawn. On a given
    sample this bound and `tv_lower_bound` at the same alpha hold together.

    Parameters
    ----------
    counts : ``[cells]``.
    law : ``[cells]``.
    alpha : probability that the bound is wrong.

    Raises
    ------
    ValueError
        As `check_counts_and_law`, or nothing was drawn, or alpha is outside (0, 1).

    Examples
    --------
    >>> round(tv_upper_bound(np.array([500_600, 499_400]), np.array([0.5, 0.5]), alpha=1e-9), 4)
    0.0044
    """
    return min(1.0, plug_in_tv(counts, law) + _radius(counts, law, alpha))


def tv_lower_bound(counts: Counts, law: Law, alpha: float) -> float:
    """With confidence 1 - alpha the law that the sample was drawn from is at least this far from `law`.

    Parameters and errors as `tv_upper_bound`.

    Examples
    --------
    >>> round(tv_lower_bound(np.array([600_000, 400_000]), np.array([0.5, 0.5]), alpha=1e-9), 4)
    0.0962
    """
    return max(0.0, plug_in_tv(counts, law) - _radius(counts, law, alpha))


def _radius(counts: Counts, law: Law, alpha: float) -> float:
    """How far the sample may be from its own law, with confidence 1 - alpha.

    The mean needs sum sqrt(q_i) of the unknown q. In a band of m cells it is at most sqrt(m q(band)), and
    q(band) is bounded by exact confidence bounds that share half of alpha. All impossible cells count as one:
    that changes no distance from `law`.
    """
    check_inside_unit(alpha, "alpha")
    observed, exact = _drawn(counts, law)
    samples = observed.sum()
    bands = probability_bands(exact)
    sizes = np.where(bands.law > 0, np.bincount(bands.labels), 1)
    bounds = upper_confidence(bands.pool(observed), samples, alpha / 2 / len(sizes))
    any_law = math.sqrt(max(int(sizes.sum()) - 1, 0))
    mean = min(any_law, float(np.sqrt(sizes * bounds).sum())) / (2 * math.sqrt(samples))
    return mean + math.sqrt(math.log(2 / alpha) / (2 * samples))


def tv_p_value(counts: Counts, law: Law, expected_samples: float) -> float:
    """Rigorous p-value of the plug-in distance, for samples whose size was drawn as a Poisson number.

    The cells are then independent Poisson counts n_i with means E_i, and log E exp(theta |n_i - E_i|) has a
    closed form K_i(theta). So P(sum |n_i - E_i| >= t) <= min over theta of exp(sum K_i(theta) - theta t)
    (Chernoff's bound). Valid for every law, without pooling; it gives away about a factor of 10 in the
    p-value.

    Parameters
    ----------
    counts : ``[cells]``.
    law : ``[cells]``.
    expected_samples : mean of the Poisson number of samples.

    Raises
    ------
    ValueError
        As `check_counts_and_law`, or expected_samples isn't positive.

    Examples
    --------
    >>> tv_p_value(np.array([500, 510]), np.array([0.5, 0.5]), expected_samples=1000)
    1.0
    >>> tv_p_value(np.array([700, 300]), np.array([0.5, 0.5]), expected_samples=1000) < 1e-30
    True
    """
    observed, exact = check_counts_and_law(counts, law)
    check_samples(expected_samples)
    possible = exact > 0
    if observed[~possible].any():
        return 0.0
    expected = expected_samples * exact[possible]
    distance = float(np.abs(observed[possible] - expected).sum())

    def exponent(log_theta: float) -> float:
        theta = math.exp(log_theta)
        return float(_log_moments(theta, expected).sum() - theta * distance)

    # Every theta gives a valid bound, so the best one needn't be found exactly.
    best = optimize.minimize_scalar(
        exponent, bounds=_exponents(expected_samples), method="bounded", options={"xatol": 1e-3}
    )
    return min(1.0, math.exp(min(0.0, float(best.fun))))


def _exponents(expected_samples: float) -> tuple[float, float]:
    """Logarithms of the least and largest theta to try: far around 1 / sqrt(N), and within doubles."""
    scale = math.sqrt(expected_samples)
    return math.log(min(0.01 / scale, 1.0)), math.log(min(100.0 / scale, 20.0))


def _log_moments(theta: float, expected: Float64[np.ndarray, " cells"]) -> Float64[np.ndarray, " cells"]:
    """log E exp(theta |n - E|) for a Poisson n of mean E: both signs, each an exponentially tilted tail."""
    whole = np.floor(expected)
    with np.errstate(divide="ignore"):  # a tail below the smallest double
        over = np.log(special.pdtrc(whole, expected * math.exp(theta)))
        under = np.log(special.pdtr(whole, expected * math.exp(-theta)))
    above = expected * (math.expm1(theta) - theta) + over
    below = expected * (math.expm1(-theta) + theta) + under
    return np.asarray(np.logaddexp(above, below))


def _drawn(counts: Counts, law: Law) -> tuple[Float64[np.ndarray, " cells"], Law]:
    """Checked counts and law, with at least one draw."""
    observed, exact = check_counts_and_law(counts, law)
    if not observed.any():
        raise ValueError("nothing was drawn: all counts are 0")
    return observed, exact
