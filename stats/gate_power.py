"""How many samples the gate needs: its power, computed for the laws that it sees worst.

The gate's mixture is at least each of its parts, and a part is a sum over cells that are independent, as the
size of the sample is a Poisson number. So the probability of a miss is at most that of the best part, whose
law is known: the saddlepoint approximation of Lugannani and Rice (Advances in Applied Probability 12, 1980)
gives it within a percent, however few samples a cell gets; nothing is pooled, so that there is no least
number of samples for each cell. Where cells are expected more than `LARGE` times, their counts are normal and
the sum is a non-central chi-square.

The gate sees deviations worst that are spread over all cells: one group of cells raised, the others lowered,
all by the same share. Of these, the group's mass and number of cells are chosen for the largest miss.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy import optimize, special

from tokenlaw.stats.gates import EXPONENTS, POISSON_CONCENTRATIONS
from tokenlaw.stats.log_gamma import log_gamma_remainder
from tokenlaw.stats.mixtures import log_factors

LARGE = 1e4
"""From this expected count on a cell's count is taken to be normal."""

FINE = 0.05
"""Below this total variation halves of equal cells are the worst case."""

_LARGEST_TV = 0.9999
"""Beyond this the number of samples is that of this total variation."""

_ROUNDS = 2
"""So often the worst case is looked for, each time with the samples that the last one needed."""

_DEEP = 1e6
"""Tilts beyond this are those of a sum that can't be so small, or so large."""

_PRIORS = len(POISSON_CONCENTRATIONS)


@dataclass(frozen=True)
class Spread:
    """A law of two groups of equal cells, and one at total variation `tv` that raises the first group.

    Attributes
    ----------
    cells : number of cells.
    tv : total variation.
    mass : probability of the first group, above 0 and at most 1 - tv.
    raised : number of its cells; ``mass * cells`` where all cells are equally likely. May be a fraction.
    """

    cells: int
    tv: float
    mass: float
    raised: float

    def groups(self) -> tuple[tuple[float, float, float], ...]:
        """Number of cells, probability of each, and by what that is multiplied, of both groups."""
        others = self.cells - self.raised
        lowered = max(0.0, 1 - self.tv / (1 - self.mass))
        return (
            (self.raised, self.mass / self.raised, 1 + self.tv / self.mass),
            (others, (1 - self.mass) / others, lowered),
        )


def gate_samples(tv: float, cells: int, *, alpha: float = 1e-9, beta: float = 1e-3) -> int:
    """Mean number of samples with which the gate refutes any law at total variation `tv` or more.

    Parameters
    ----------
    tv : total variation, above 0, at most 1.
    cells : outcomes of the law, at least 2; some may be as rare as you like.
    alpha, beta : probabilities of a false alarm and of a miss.

    Examples
    --------
    >>> gate_samples(0.5, 100_000) < 6_000
    True
    """
    spreads = _spreads(min(tv, _LARGEST_TV), cells)
    samples = _enough(spreads[0], alpha, beta, -math.log(alpha) / (32 * tv**2) + 1)
    for _ in range(_ROUNDS):
        worst = max(spreads, key=lambda spread: gate_miss(samples, spread, alpha))
        samples = _enough(worst, alpha, beta, samples)
    return math.ceil(samples)


def _spreads(tv: float, cells: int) -> list[Spread]:
    """What may be the worst case, the likeliest first."""
    if tv < FINE:
        return [Spread(cells, tv, 0.5, 0.5 * cells)]
    masses = [(1 - tv) * eighth / 8 for eighth in (4, 2, 3, 5, 6)] + ([0.5] if tv <= 0.5 else [])
    counts = sorted({min(max(1, round(cells * part / 8)), cells - 1) for part in (2, 4, 6)})
    return [Spread(cells, tv, mass, count) for mass in masses for count in (mass * cells, *counts)]


def gate_miss(samples: float, spread: Spread, alpha: float) -> float:
    """How likely the gate is to miss such a law, at most, with a mean of so many samples."""
    equal = math.isclose(spread.raised, spread.mass * spread.cells)
    # The shapes of all exponents are the same where all cells are.
    needed = math.log(2 * _PRIORS / alpha) + (0.0 if equal else math.log(len(EXPONENTS)))
    if samples / spread.cells > LARGE:
        return _normal_miss(samples, spread, needed)
    return _Sum(samples, spread).at_most(needed)


def _enough(spread: Spread, alpha: float, beta: float, least: float) -> float:
    """Number of samples, at least `least`, with which such a law is missed with probability beta."""

    def surplus(log_samples: float) -> float:
        return gate_miss(math.exp(log_samples), spread, alpha) - beta

    low = high = math.log(least)
    while surplus(high) > 0:
        low, high = high, high + math.log(2)
    return math.exp(float(optimize.brentq(surplus, low, high, xtol=1e-3)) if high > low else high)


def _normal_miss(samples: float, spread: Spread, needed: float) -> float:
    """The miss where each count is normal: with E expected a part is a quadratic form of the deviates."""
    expected, spreads = samples / spread.cells, POISSON_CONCENTRATIONS
    noncentrality = samples * spread.tv**2 / (spread.mass * (1 - spread.mass))
    penalty = spread.cells / 2 * np.log1p(expected / spreads)
    thresholds = 2 * (spreads + expected) / expected * (needed + penalty)
    return float(special.chndtr(thresholds, spread.cells, noncentrality).min())


class _Sum:
    """The law of the logarithm of that part of the gate's mixture which sees a deviation best."""

    def __init__(self, samples: float, spread: Spread) -> None:
        groups = spread.groups()
        self._groups = []
        for cells, probability, ratio in groups:
            weights = [
                probability**s / math.fsum(count * p ** (1 + s) for count, p, _ in groups) for s in EXPONENTS
            ]
            shapes = np.outer(weights, POISSON_CONCENTRATIONS).ravel()
            logs, factors = _cell(samples * probability, samples * probability * ratio, shapes)
            self._groups.append((cells, logs, factors))

    def at_most(self, value: float) -> float:
        """Probability that the sum under the best prior is at most so much."""
        means, variances = np.zeros(_PRIORS * len(EXPONENTS)), np.zeros(_PRIORS * len(EXPONENTS))
        for cells, logs, factors in self._groups:
            first = np.exp(logs) @ factors
            means += cells * first
            variances += cells * (np.exp(logs) @ factors**2 - first**2)
        scores = (means - value) / np.sqrt(np.maximum(variances, 1e-300))
        prior = int(np.argmax(scores))
        if abs(scores[prior]) < 1e-3:
            return float(special.ndtr(-scores[prior]))
        return self._tail(prior, value, below=bool(scores[prior] > 0))

    def _tail(self, prior: int, value: float, *, below: bool) -> float:
        """Lugannani and Rice: the cumulants of the tilted sum whose mean is the value."""
        far = -1.0 if below else 1.0
        while (self._cumulants(prior, far)[1] > value) == below:
            far *= 2
            if abs(far) > _DEEP:
                return 0.0 if below else 1.0
        tilt = float(
            optimize.brentq(lambda t: self._cumulants(prior, t)[1] - value, min(far, 0), max(far, 0))
        )
        total, _, variance = self._cumulants(prior, tilt)
        root = math.copysign(math.sqrt(max(2 * (tilt * value - total), 1e-300)), tilt)
        density = math.exp(-(root**2) / 2) / math.sqrt(2 * math.pi)
        found = float(special.ndtr(root)) + density * (1 / root - 1 / (tilt * math.sqrt(variance)))
        return min(max(found, 0.0), 1.0)

    def _cumulants(self, prior: int, tilt: float) -> tuple[float, float, float]:
        """Logarithm of the mean of exp(tilt * sum), and its first two derivatives."""
        total = mean = variance = 0.0
        for cells, logs, factors in self._groups:
            values = factors[:, prior]
            exponents = logs + tilt * values
            largest = exponents.max()
            weights = np.exp(exponents - largest)
            mass = weights.sum()
            centre = weights @ values / mass
            total += cells * (largest + math.log(mass))
            mean += cells * centre
            variance += cells * (weights @ (values - centre) ** 2) / mass
        return float(total), float(mean), float(variance)


def _cell(
    expected: float, mean: float, shapes: Float64[np.ndarray, " priors"]
) -> tuple[Float64[np.ndarray, " counts"], Float64[np.ndarray, "counts priors"]]:
    """Log probabilities of the counts of one cell of this mean, and its log factor under each prior."""
    reach = 9 * math.sqrt(mean + 1) + 20
    counts = np.arange(max(0, math.floor(mean - reach)), math.ceil(mean + reach) + 1, dtype=np.float64)
    logs = special.xlogy(counts, mean) - mean - special.gammaln(counts + 1)
    table = np.broadcast_to(shapes, (len(counts), len(shapes)))
    return logs, log_factors(table, log_gamma_remainder(table), counts, np.full(len(counts), expected))
