"""Total variation between a sample and a law: estimate, and rigorous bounds.

The plug-in estimate is biased upwards: a sample never equals its own law. The bounds pay for that with

    TV(q, p) <= TV(sample, p) + TV(sample, q),

where q is the law that the sample was drawn from. TV(sample, q) changes by at most 1/N when one draw changes,
so it stays within sqrt(log(1/alpha) / 2N) of its mean (McDiarmid 1989), and its mean is at most
sum of sqrt(q_i) / (2 sqrt N).
"""

import math

import numpy as np
from jaxtyping import Float64

from tokenlaw.stats.binomial import upper_confidence
from tokenlaw.stats.counts import Counts, Law, check_counts_and_law, check_inside_unit
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


def tv_bounds(counts: Counts, law: Law, alpha: float) -> tuple[float, float]:
    """How far the law that the sample was drawn from is from `law`: at least, and at most.

    Both hold with confidence 1 - alpha, for independent draws, every law and every size of the sample, unless
    the size depends on what was drawn.

    Parameters
    ----------
    counts : ``[cells]``.
    law : ``[cells]``.
    alpha : probability that one of the bounds is wrong.

    Raises
    ------
    ValueError
        As `check_counts_and_law`, or nothing was drawn, or alpha is outside (0, 1).

    Examples
    --------
    >>> [round(bound, 4) for bound in tv_bounds(np.array([600_000, 400_000]), np.array([0.5, 0.5]), 1e-9)]
    [0.0962, 0.1038]
    """
    found, radius = plug_in_tv(counts, law), _radius(counts, law, alpha)
    return max(0.0, found - radius), min(1.0, found + radius)


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


def _drawn(counts: Counts, law: Law) -> tuple[Float64[np.ndarray, " cells"], Law]:
    """Checked counts and law, with at least one draw."""
    observed, exact = check_counts_and_law(counts, law)
    if not observed.any():
        raise ValueError("nothing was drawn: all counts are 0")
    return observed, exact
