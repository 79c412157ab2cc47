"""How many samples see a deviation, and what a given number of samples would have seen.

A deviation of total variation d changes Pearson's statistic by a non-centrality of at least 4 N d^2, with
equality where every cell is off by the same relative amount. The number of samples that this worst case needs
is therefore enough for every law at that distance. The power is that of the non-central chi-square law,
which is an approximation; tests check it by simulation.
"""

import math
from dataclasses import dataclass

from scipy import optimize, special

from tokenlaw.stats.chi_square import SAFETY_FACTOR
from tokenlaw.stats.counts import check_inside_unit, check_samples
from tokenlaw.stats.pooling import LEAST_EXPECTED

BUDGET_FACTOR = 1.3
"""The gate may look at any time; for that it needs at most about this many times the samples."""


@dataclass(frozen=True)
class Plan:
    """What a test of fixed size needs, and what it promises.

    Attributes
    ----------
    samples : for Pearson's test.
    budget : where the sequential gate gives up: ``BUDGET_FACTOR`` times the samples.
    tv, cells, alpha, beta : what was planned for, see `plan`.
    """

    samples: int
    budget: int
    tv: float
    cells: int
    alpha: float
    beta: float


def plan(tv: float, cells: int, *, alpha: float = 1e-9, beta: float = 1e-3) -> Plan:
    """How many samples refute any law at total variation `tv` or more with probability 1 - beta.

    Parameters
    ----------
    tv : total variation over the pooled cells, above 0, at most 1.
    cells : number of cells after pooling, at least 2. Each needs ``LEAST_EXPECTED`` samples.
    alpha : probability of a false alarm.
    beta : probability of a miss.

    Raises
    ------
    ValueError
        An argument is out of range, or alpha + beta isn't below 1.

    Examples
    --------
    >>> plan(tv=0.01, cells=8).samples // 1000
    266
    """
    if not 0 < tv <= 1:
        raise ValueError(f"the total variation to plan for must be above 0 and at most 1, but is {tv}")
    needed = _noncentrality(cells, alpha, beta) / (4 * tv**2)
    samples = math.ceil(max(needed, LEAST_EXPECTED * cells))
    return Plan(samples, math.ceil(BUDGET_FACTOR * samples), tv, cells, alpha, beta)


def smallest_tv(samples: float, cells: int, *, alpha: float = 1e-9, beta: float = 1e-3) -> float:
    """The total variation from which on `samples` refute any law with probability 1 - beta.

    The inverse of `plan`, with the same arguments; above 1 means that the samples promise nothing.

    Raises
    ------
    ValueError
        An argument is out of range, or there are fewer than ``LEAST_EXPECTED`` samples for each cell.

    Examples
    --------
    >>> round(smallest_tv(plan(tv=0.01, cells=8).samples, cells=8), 6)
    0.01
    """
    check_samples(samples)
    noncentrality = _noncentrality(cells, alpha, beta)
    if samples < LEAST_EXPECTED * cells:
        raise ValueError(
            f"{samples} samples can't fill {cells} pooled cells with {LEAST_EXPECTED:g} each; "
            "give the number of cells after pooling"
        )
    return math.sqrt(noncentrality / (4 * samples))


def power_sentence(
    samples: int, cells: int, *, alpha: float = 1e-9, beta: float = 1e-3, pooled_mass: float = 0.0
) -> str:
    """What a report says about a test that didn't refute.

    Parameters
    ----------
    samples, cells, alpha, beta : as `smallest_tv`.
    pooled_mass : probability inside pooled cells; a fault may hide that much there.

    Raises
    ------
    ValueError
        As `smallest_tv`, or the pooled mass is outside [0, 1].

    Examples
    --------
    >>> from textwrap import fill
    >>> print(fill(power_sentence(270_000, cells=8), 80))
    With 270000 samples any law at TV >= 0.00994 from the exact one would have been
    refuted with probability >= 0.999 (alpha 1e-09).
    """
    if not 0 <= pooled_mass <= 1:
        raise ValueError(f"the pooled mass must be from 0 to 1, but is {pooled_mass}")
    visible = smallest_tv(samples, cells, alpha=alpha, beta=beta)
    if visible + pooled_mass > 1:
        return f"{samples} samples over {cells} pooled cells promise to refute nothing (alpha {alpha:g})."
    sentence = (
        f"With {samples} samples any law at TV >= {_round_up(visible + pooled_mass)} from the exact one "
        f"would have been refuted with probability >= {1 - beta:.12g} (alpha {alpha:g})"
    )
    if pooled_mass > 0:
        sentence += f"; {_round_up(pooled_mass)} of that is the mass of pooled cells, where a fault may hide"
    return sentence + "."


def noncentrality(degrees_of_freedom: int, alpha: float, beta: float) -> float:
    """The non-centrality at which a chi-square test at level alpha misses with probability beta.

    Raises
    ------
    ValueError
        alpha or beta is outside (0, 1), their sum isn't below 1, or there are no degrees of freedom.

    Examples
    --------
    >>> round(noncentrality(7, alpha=1e-9, beta=0.1) / 4, 1)
    17.5
    """
    check_inside_unit(alpha, "alpha")
    check_inside_unit(beta, "beta")
    if alpha + beta >= 1:
        raise ValueError(f"alpha {alpha} and beta {beta} must sum to less than 1")
    if degrees_of_freedom < 1:
        raise ValueError(f"a test needs at least one degree of freedom, not {degrees_of_freedom}")
    threshold = special.chdtri(degrees_of_freedom, alpha)

    def surplus(value: float) -> float:
        return float(special.chndtr(threshold, degrees_of_freedom, value)) - beta

    upper = 1.0
    while surplus(upper) > 0:
        upper *= 2
    return float(optimize.brentq(surplus, 0.0, upper))


def _noncentrality(cells: int, alpha: float, beta: float) -> float:
    """For the test of `tokenlaw.stats.chi_square`, whose p-value carries a safety factor."""
    check_inside_unit(alpha, "alpha")
    if cells < 2:
        raise ValueError(f"a law over {cells} cells leaves nothing to test; at least 2 are needed")
    return noncentrality(cells - 1, alpha / SAFETY_FACTOR, beta)


def _round_up(value: float) -> str:
    """Three significant digits, never below the value beyond rounding of doubles."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / unit * (1 - 1e-9)) * unit:.3g}"
