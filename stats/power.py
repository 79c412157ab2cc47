"""What a test would have seen: the smallest deviation that it refutes with probability 1 - `MISS`.

Each figure is below 1 where a test promises something. From 1 on it promises nothing, and the square of the
figure says how many times the samples would.
"""

import math
from functools import lru_cache

from scipy import special

from tokenlaw.stats.binomial import upper_tail
from tokenlaw.stats.chi_square import SAFETY_FACTOR
from tokenlaw.stats.dependence import EqualNeighbours
from tokenlaw.stats.planner import noncentrality

MISS = 1e-3
"""Reports say which deviation a run would have missed with this probability."""

LEAST_ALPHA = 1e-300
"""Thresholds beyond the smallest double are out of reach."""

GATE_FACTOR = 1.6
"""Samples that a gate needs over those of the planner's chi-square test, for up to 800 cells. Simulated
on deviations spread over all cells, the worst ones: 1.3 times misses one in a hundred at 600 cells."""


def visible_tv(samples: float, cells: int, alpha: float, *, factor: float = GATE_FACTOR) -> float:
    """Total variation from which on so many samples refute; infinity for no samples.

    Parameters
    ----------
    samples : of the law, on average.
    cells : of the law.
    alpha : what an e-value or a p-value of this law alone must reach.
    factor : how many times the samples of a chi-square test are needed; that of a gate by default.
    """
    if samples <= 0:
        return math.inf
    # Rounded down so that like laws share one computation.
    log_alpha = math.floor(10 * math.log(min(max(alpha, LEAST_ALPHA), 0.5))) / 10
    return math.sqrt(factor * _needed(cells, log_alpha) / (4 * samples))


def visible_by_chi_square(samples: float, cells: int, pooled_mass: float, alpha: float) -> float:
    """Total variation from which on Pearson's test refutes; a fault may hide in pooled cells.

    Parameters
    ----------
    samples : of the law.
    cells, pooled_mass : possible cells after pooling, and the probability inside pooled ones.
    alpha : what the p-value must reach.
    """
    return visible_tv(samples, cells, alpha / SAFETY_FACTOR, factor=1.0) + pooled_mass


@lru_cache(maxsize=1024)
def _needed(cells: int, log_alpha: float) -> float:
    return noncentrality(max(cells - 1, 1), math.exp(log_alpha), MISS)


def visible_mass(samples: float) -> float:
    """Mass of impossible outcomes from which on one is seen among so many samples on average.

    >>> round(visible_mass(69_077.6), 9), visible_mass(6.0) > 1
    (0.0001, True)
    """
    if samples <= 0:
        return math.inf
    mass = -math.log(MISS) / samples
    return mass if mass < 1 else math.sqrt(mass)


def visible_share(count: int) -> float:
    """Share of a number of rows that shows a fault at least once, if it strikes each of them independently.

    >>> round(visible_share(688), 3), visible_share(0) > 1
    (0.01, True)
    """
    return -math.expm1(math.log(MISS) / count) if count else math.inf


def visible_copies(result: EqualNeighbours, alpha: float) -> float:
    """Share of pairs from which on a test refutes, if in so many the second is a copy of the first.

    With the match probability m a share s of copies makes m + s (1 - m) of the pairs equal. Where m differs
    between pairs its mean is taken: no sum of independent pairs spreads more than the binomial law of its
    mean (Hoeffding, Annals of Mathematical Statistics 27, 1956), so that the figure is an upper bound.

    Parameters
    ----------
    result : the comparison.
    alpha : what its p-value must reach.

    Examples
    --------
    >>> round(visible_copies(EqualNeighbours(10_000, 2_513, 2_500.0, 0.8), 1e-10), 3)
    0.056
    >>> visible_copies(EqualNeighbours(12, 3, 3.0, 1.0), 1e-10) > 1
    True
    """
    pairs, chance = result.pairs, result.expected / result.pairs if result.pairs else 1.0
    if chance >= 1:
        return math.inf
    if not _refutes(pairs, pairs, chance, alpha):
        return math.sqrt(math.log(alpha / 2) / math.log(chance) / pairs)
    least, most = 0, pairs
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if _refutes(middle, pairs, chance, alpha) else (middle, most)
    equal = float(special.betaincinv(most, pairs - most + 1, 1 - MISS))
    return (equal - chance) / (1 - chance)


def _refutes(equal: int, pairs: int, chance: float, alpha: float) -> bool:
    """Whether so many equal pairs refute, twice the upper tail being the p-value."""
    return equal >= pairs * chance and 2 * float(upper_tail(equal, pairs, chance)) <= alpha
