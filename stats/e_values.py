"""The gate of the law tests: e-values of counts against an exactly known law.

An e-value is a number e >= 0 whose expectation under the null law is at most one. Large values speak against
the law: by Markov's inequality P(e >= 1 / alpha) <= alpha. The e-values here are likelihood ratios of a
mixture of alternatives to the null law, hence test martingales over accumulating data, for which Ville's
inequality says more: P(e >= 1 / alpha at *any* look) <= alpha. So the counts may be looked at as often as one
likes, sampling may stop at the first look that refutes, and it may be continued later. Both hold at every
sample size, for every law, without pooling of light cells. Sources: Ville, Étude critique de la notion de
collectif, 1939; Ramdas, Grünwald, Vovk and Shafer, Statistical Science 38, 2023.

Which gate (`tokenlaw.stats.gates`) is legal depends on how the data were collected:

- `GammaPoissonGate`: independent Poisson counts. The size of every chunk is drawn from a Poisson law,
  independently of the data. The prior is on relative errors, which on skewed laws over wide vocabularies
  needs far fewer samples.
- `DirichletGate`: independent draws, any number of them: a fixed number, or looks between any two draws.
"""

import math
from collections.abc import Sequence

from tokenlaw.stats.counts import SUM_TOLERANCE, Counts, Law
from tokenlaw.stats.gates import DirichletGate
from tokenlaw.stats.mixtures import log_sum_exp


def dirichlet_log_e(counts: Counts, law: Law) -> float:
    """`DirichletGate` for one look: natural logarithm of the e-value of independent draws from the law.

    Raises
    ------
    ValueError
        The law isn't one; counts that are negative, not whole or not one for each cell.

    Examples
    --------
    >>> import numpy as np
    >>> law = np.array([0.5, 0.4, 0.1])
    >>> dirichlet_log_e(np.array([500, 400, 100]), law) < 0
    True
    >>> dirichlet_log_e(np.array([400, 500, 100]), law) > 15
    True
    """
    return DirichletGate(law).log_e(counts)


def average_log_e(log_es: Sequence[float], weights: Sequence[float]) -> float:
    """Natural logarithm of the weighted average of e-values: again an e-value.

    Legal under any dependence between the e-values, for different claims about one implementation, and at any
    time if each is a test martingale, as long as the weights were fixed before the data were seen. It refutes
    the conjunction of the claims: whatever single e-value reaches ``1 / (alpha weight)`` alone refutes.

    Parameters
    ----------
    log_es : logarithms of e-values; may be infinite.
    weights : above 0, one for each, with sum 1.

    Raises
    ------
    ValueError
        No e-values, a NaN, lengths that differ, or weights that are no weights.

    Examples
    --------
    >>> round(average_log_e([math.log(4.0), math.log(1.0)], [2 / 3, 1 / 3]), 9) == round(math.log(3.0), 9)
    True
    """
    _refuse_nan(log_es)
    if len(log_es) != len(weights):
        raise ValueError(f"there are {len(log_es)} e-values but {len(weights)} weights")
    if not all(weight > 0 for weight in weights) or abs(math.fsum(weights) - 1) > SUM_TOLERANCE:
        raise ValueError(f"weights must be above 0 and sum to 1, but are {list(weights)}")
    return log_sum_exp([log_e + math.log(weight) for log_e, weight in zip(log_es, weights, strict=True)])


def product_log_e(log_es: Sequence[float]) -> float:
    """Natural logarithm of the product of e-values: again an e-value, if the data are independent.

    Legal for e-values of *one* claim on independent data (shards, runs with fresh seeds), and for sequential
    bets, each of which is an e-value given the data of all earlier ones. Not legal for two statistics of the
    same data. Where the law is the same, adding up the counts is better than multiplying.

    Raises
    ------
    ValueError
        No e-values, or a NaN.

    Examples
    --------
    >>> product_log_e([1.5, -0.5]), product_log_e([math.inf, -math.inf])
    (1.0, inf)
    """
    _refuse_nan(log_es)
    # An impossible outcome proves the law wrong, whatever the other shards say.
    return math.inf if math.inf in log_es else math.fsum(log_es)


def log10_of(log_e: float) -> str:
    """Decimal logarithm of an e-value, for people.

    >>> log10_of(math.log(1000.0)), log10_of(-1e-9), log10_of(math.inf)
    ('3.0', '0.0', 'infinity')
    """
    return f"{round(log_e / math.log(10), 1) + 0.0:.1f}" if log_e < math.inf else "infinity"


def _refuse_nan(log_es: Sequence[float]) -> None:
    """Refuse what can't be combined."""
    if len(log_es) == 0:
        raise ValueError("there are no e-values to combine")
    if any(math.isnan(log_e) for log_e in log_es):
        raise ValueError(f"an e-value is NaN: the logarithms are {list(log_es)}")
