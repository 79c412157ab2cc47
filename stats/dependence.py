"""Draws that should be independent: equal neighbours, and tables of pairs.

Rows of a batch, and calls, must not share randomness. Two independent draws are equal with the probability
sum p_i q_i, so counting equal neighbours is one number with an exact law; that is the strongest test of a
copied stream. A table of pairs over buckets sees other dependence too, for example neighbours that follow
each other.
"""

import heapq
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from tokenlaw.stats.binomial import smaller_tail
from tokenlaw.stats.counts import Law, check_counts, check_law
from tokenlaw.stats.e_values import dirichlet_log_e
from tokenlaw.stats.poisson_binomial import upper_tail_of_sum
from tokenlaw.stats.pooling import Grouping, group_by


def match_probability(first: Law, second: Law) -> float:
    """How probable it is that two independent draws from laws over the same cells are equal.

    Raises
    ------
    ValueError
        As `check_law`, or the lengths differ.

    Examples
    --------
    >>> match_probability(np.array([0.5, 0.5]), np.array([0.9, 0.1]))
    0.5
    """
    one, other = check_law(first, "first law"), check_law(second, "second law")
    if len(one) != len(other):
        raise ValueError(f"the first law has {len(one)} cells, the second one {len(other)}")
    return min(1.0, float(one @ other))


@dataclass(frozen=True)
class EqualNeighbours:
    """How often neighbours were equal.

    Attributes
    ----------
    pairs : number of pairs that were compared.
    observed : how many of them were equal.
    expected : how many should have been, on average.
    p_value : exact and two-sided: twice the smaller tail.
    """

    pairs: int
    observed: int
    expected: float
    p_value: float


def equal_neighbours(
    equal: int, pairs: Int[np.ndarray, " groups"], match_probabilities: Float64[np.ndarray, " groups"]
) -> EqualNeighbours:
    """Test that neighbours are equal as often as independent draws are.

    Every pair must be independent of every other one under the null: compare the rows 1 and 2, 3 and 4, ...
    rather than each row with its next, unless all rows have one uniform law. The number of pairs must not
    depend on what was drawn.

    Parameters
    ----------
    equal : how many pairs were equal, over all groups.
    pairs : ``[groups]``, number of pairs of each match probability.
    match_probabilities : ``[groups]``, from 0 to 1, see `match_probability`.

    Raises
    ------
    ValueError
        As `check_counts` for the pairs, or a probability is outside [0, 1], or the lengths differ, or more
        pairs are equal than there are.

    Examples
    --------
    >>> result = equal_neighbours(200, np.array([1000, 500]), np.array([0.1, 0.02]))
    >>> result.expected, result.p_value < 1e-12
    (110.0, True)
    """
    trials = check_counts(pairs, "pairs")
    probabilities = _check_probabilities(match_probabilities, len(trials))
    total = int(trials.sum())
    if not 0 <= equal <= total or int(equal) != equal:
        raise ValueError(f"{equal} of {total} pairs can't be equal")
    expected = float(trials @ probabilities)
    return EqualNeighbours(total, int(equal), expected, _two_sided(int(equal), trials, probabilities))


def _two_sided(
    equal: int, trials: Float64[np.ndarray, " groups"], probabilities: Float64[np.ndarray, " groups"]
) -> float:
    """Twice the tail on the side of the mean where the observed number lies."""
    equal -= int(trials[probabilities == 1].sum())
    free = (trials > 0) & (probabilities > 0) & (probabilities < 1)
    probabilities, groups = np.unique(probabilities[free], return_inverse=True)
    trials = np.bincount(groups, trials[free], minlength=len(probabilities))
    total = int(trials.sum())
    if not 0 <= equal <= total:
        return 0.0
    if len(trials) <= 1:
        return min(1.0, 2 * float(smaller_tail(equal, total, probabilities[0]))) if total else 1.0
    if equal >= trials @ probabilities:
        return min(1.0, 2 * upper_tail_of_sum(equal, trials, probabilities))
    return min(1.0, 2 * upper_tail_of_sum(total - equal, trials, 1 - probabilities))


def _check_probabilities(
    values: Float64[np.ndarray, " groups"], groups: int
) -> Float64[np.ndarray, " groups"]:
    """Refuse NaN, what is outside [0, 1], and another number of groups."""
    probabilities = np.asarray(values, dtype=np.float64)
    if probabilities.shape != (groups,):
        raise ValueError(
            f"there are {groups} numbers of pairs, but the match probabilities have the shape "
            f"{probabilities.shape}"
        )
    good = (probabilities >= 0) & (probabilities <= 1)
    if not good.all():
        raise ValueError(f"a match probability must be from 0 to 1, but one is {probabilities[~good][0]}")
    return probabilities


def equal_mass_buckets(law: Law, buckets: int) -> Grouping:
    """Cells spread over buckets of about equal mass: heaviest cell first, each into the lightest bucket.

    Parameters
    ----------
    law : ``[cells]``.
    buckets : how many, at most the number of possible cells.

    Raises
    ------
    ValueError
        As `check_law`, or there are too many buckets, or none.

    Examples
    --------
    >>> equal_mass_buckets(np.array([0.4, 0.3, 0.2, 0.1]), buckets=2).labels
    array([0, 1, 1, 0])
    """
    exact = check_law(law)
    possible = int(np.count_nonzero(exact))
    if not 1 <= buckets <= possible:
        raise ValueError(f"{buckets} buckets can't be filled from {possible} possible cells")
    labels = np.zeros(len(exact), dtype=np.int64)
    lightest = [(0.0, bucket) for bucket in range(buckets)]
    for cell in np.argsort(-exact, kind="stable")[:possible].tolist():
        mass, labels[cell] = lightest[0]
        heapq.heapreplace(lightest, (mass + exact[cell], int(labels[cell])))
    return group_by(labels, exact)


def independence_log_e(counts: Int[np.ndarray, "first second"], first: Law, second: Law) -> float:
    """Natural logarithm of the e-value against "the two draws of a pair are independent".

    By universal inference (Wasserman, Ramdas and Balakrishnan, PNAS 117, 2020): the likelihood of the gate's
    mixture of laws of pairs, around the product of the given laws, over the largest likelihood that any
    product of two laws can have. So the claim is independence alone: two laws that are wrong by themselves
    don't refute it. Pairs must be independent of each other.

    Parameters
    ----------
    counts : ``[first, second]``, how often each pair was drawn.
    first, second : the laws that the draws should have, above 0.

    Raises
    ------
    ValueError
        As `check_law` and `check_counts`, or there isn't one count for each pair.

    Examples
    --------
    >>> fair = np.array([0.5, 0.5])
    >>> independence_log_e(np.array([[70, 30], [70, 30]]), fair, fair) < 0
    True
    >>> independence_log_e(np.array([[80, 20], [20, 80]]), fair, fair) > 20
    True
    """
    law = np.outer(check_law(first, "first law"), check_law(second, "second law"))
    if counts.shape != law.shape:
        raise ValueError(f"counts of pairs have the shape {counts.shape}, their laws {law.shape}")
    if not counts.any():
        return 0.0
    fitted = np.outer(counts.sum(1), counts.sum(0)) / counts.sum() ** 2
    seen = counts > 0
    gain = float((counts[seen] * np.log(fitted[seen] / law[seen])).sum())
    return dirichlet_log_e(counts.ravel(), law.ravel() / law.sum()) - gain
