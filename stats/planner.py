"""How many samples see a deviation, and what a given number of samples would have seen.

A deviation of total variation d changes Pearson's statistic by a non-centrality of at least 4 N d^2, with
equality where every cell is off by the same relative amount. The number of samples that this worst case needs
is therefore enough for every law at that distance. Beyond d = 1/2 no law is off like that, and the smaller of
both statistics of the test grows faster (`_least_effect`). The power is that of the non-central chi-square
law, which is an approximation; tests check it by simulation.

The test joins outcomes that are expected less than 20 times, and what is moved inside a group is invisible:
with one sample less than 20 for each of V equal outcomes these are joined in pairs, between whose halves
everything may be wrong. So Pearson's test needs 20 V samples, however coarse the deviation is. The gate joins
nothing: `tokenlaw.stats.gate_power` says how many it needs. A plan has both, and names the smaller.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from tokenlaw.spec.shown_numbers import rounded_up
from tokenlaw.stats.chi_square import SAFETY_FACTOR
from tokenlaw.stats.counts import check_inside_unit, check_samples
from tokenlaw.stats.gate_power import gate_samples
from tokenlaw.stats.pooling import LEAST_EXPECTED

BY_CHI_SQUARE, BY_GATE = "chi-square", "gate"


@dataclass(frozen=True)
class Plan:
    """What the tests need, and what they promise.

    Attributes
    ----------
    chi_square : samples of Pearson's test, for laws whose outcomes are all expected `LEAST_EXPECTED` times.
    gate : samples by which the gate has refuted, on average, for any law; it often stops earlier.
    tv, cells, alpha, beta : what was planned for, see `plan`.
    """

    chi_square: int
    gate: int
    tv: float
    cells: int
    alpha: float
    beta: float

    @property
    def test(self) -> str:
        """The test that needs the fewest samples, ``chi-square`` or ``gate``."""
        return BY_CHI_SQUARE if self.chi_square <= self.gate else BY_GATE

    @property
    def samples(self) -> int:
        """What that test needs."""
        return min(self.chi_square, self.gate)

    @property
    def sentence(self) -> str:
        """What that test promises, as a report says it."""
        if self.test == BY_GATE:
            return (
                f"With {self.gate} samples on average any law at TV >= {rounded_up(self.tv, 3)} from the "
                f"exact one would have been refuted by the gate with probability >= {1 - self.beta:.12g} "
                f"(alpha {self.alpha:g})."
            )
        told = power_sentence(self.chi_square, self.cells, alpha=self.alpha, beta=self.beta)
        least = rounded_up(LEAST_EXPECTED / self.chi_square, 3)
        return f"{told[:-1]}, if each outcome of the exact law has probability >= {least}."


def plan(tv: float, cells: int, *, alpha: float = 1e-9, beta: float = 1e-3) -> Plan:
    """How many samples refute any law at total variation `tv` or more with probability 1 - beta.

    Parameters
    ----------
    tv : total variation, above 0, at most 1.
    cells : outcomes of the law, at least 2.
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
    >>> coarse = plan(tv=0.5, cells=100_000)
    >>> coarse.test, coarse.gate < 6_000, coarse.chi_square
    ('gate', True, 2000000)
    """
    if not 0 < tv <= 1:
        raise ValueError(f"the total variation to plan for must be above 0 and at most 1, but is {tv}")
    needed = _noncentrality(cells, alpha, beta) / _least_effect(tv)
    # Laws so far apart exist only where some outcomes have a mass of 1 - tv or less.
    filled = LEAST_EXPECTED * max(cells, 1 / (1 - min(tv, _COARSEST)))
    samples = math.ceil(max(needed, filled))
    return Plan(samples, gate_samples(tv, cells, alpha=alpha, beta=beta), tv, cells, alpha, beta)


def smallest_tv(samples: float, cells: int, *, alpha: float = 1e-9, beta: float = 1e-3) -> float:
    """The total variation from which on Pearson's test refutes any law with probability 1 - beta.

    The inverse of ``plan(...).chi_square``; infinity means that the samples promise nothing.

    Parameters
    ----------
    samples : number of them.
    cells : number of cells after pooling, each of which is expected at least `LEAST_EXPECTED` times.
    alpha, beta : as `plan`.

    Raises
    ------
    ValueError
        An argument is out of range, or there are fewer than ``LEAST_EXPECTED`` samples for each cell.

    Examples
    --------
    >>> round(smallest_tv(plan(tv=0.01, cells=8).chi_square, cells=8), 6)
    0.01
    """
    check_samples(samples)
    effect = _noncentrality(cells, alpha, beta) / samples
    if samples < LEAST_EXPECTED * cells:
        raise ValueError(
            f"{samples} samples can't fill {cells} pooled cells with {LEAST_EXPECTED:g} each; "
            "give the number of cells after pooling"
        )
    if effect <= 1:
        return math.sqrt(effect / 4)
    if effect >= _least_effect(_COARSEST):
        return math.inf
    return float(optimize.brentq(lambda tv: _least_effect(tv) - effect, 0.5, _COARSEST))


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
        f"With {samples} samples any law at TV >= {rounded_up(visible + pooled_mass, 3)} from the exact one "
        f"would have been refuted with probability >= {1 - beta:.12g} (alpha {alpha:g})"
    )
    if pooled_mass > 0:
        sentence += (
            f"; {rounded_up(pooled_mass, 3)} of that is the mass of pooled cells, where a fault may hide"
        )
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


_COARSEST = 0.9999
"""Beyond this the plan is that of this total variation."""


def _least_effect(tv: float) -> float:
    """By how much a sample raises the statistics of the test, at least, for laws at this total variation.

    One group of cells of mass a is raised by tv, the others lowered. Pearson's statistic grows with
    tv^2 / (a (1 - a)), G with twice the divergence; the test takes the smaller.

    >>> _least_effect(0.25), _least_effect(0.9) < 4 * 0.9**2 * 1.5
    (0.25, True)
    """
    if tv <= 0.5:
        return 4 * tv**2
    mass = (1 - min(tv, _COARSEST)) * np.linspace(0.05, 1, 96)
    pearson = tv**2 / (mass * (1 - mass))
    lowered = np.maximum(1 - mass - tv, 0)
    divergence = (mass + tv) * np.log1p(tv / mass) + special.xlogy(lowered, lowered / (1 - mass))
    return float(np.minimum(pearson, 2 * divergence).min())


def _noncentrality(cells: int, alpha: float, beta: float) -> float:
    """For the test of `tokenlaw.stats.chi_square`, whose p-value carries a safety factor."""
    check_inside_unit(alpha, "alpha")
    if cells < 2:
        raise ValueError(f"a law over {cells} cells leaves nothing to test; at least 2 are needed")
    return noncentrality(cells - 1, alpha / SAFETY_FACTOR, beta)
