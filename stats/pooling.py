"""Cells of a law joined into groups, so that every group is heavy enough for a large-sample test.

A law of large samples holds group by group: at a false-alarm probability of 1e-9 a cell that is expected
five times makes the tail of a chi-square test wrong by factors of 30 and more. Light cells are therefore
joined with their neighbours in order of probability. What a fault moves inside one group is invisible then,
so a grouping also says how much probability lies in groups of more than one cell.
"""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from tokenlaw.stats.counts import Counts, Labels, Law, check_counts, check_law, check_samples

LEAST_EXPECTED = 20.0
"""The least expected count of a group, at which the p-values of `tokenlaw.stats.chi_square` are honest."""


@dataclass(frozen=True)
class Grouping:
    """A coarser law: each cell belongs to one group.

    Attributes
    ----------
    labels : ``[cells]``, the group of each cell.
    law : ``[groups]``, the probability of each group. Impossible cells are never joined with possible
        ones: if there are any, they are the last group, of probability 0.
    pooled_mass : how much probability lies in groups of more than one cell. A law at total variation x from
        the exact one is still at total variation x - pooled_mass or more from it after grouping.
    """

    labels: Labels
    law: Float64[np.ndarray, " groups"]
    pooled_mass: float

    def pool(self, counts: Counts) -> Float64[np.ndarray, " groups"]:
        """Sum the counts of each group.

        Raises
        ------
        ValueError
            As `check_counts`, or there isn't one count for each cell.
        """
        values = check_counts(counts)
        if len(values) != len(self.labels):
            raise ValueError(f"there are {len(values)} counts, but {len(self.labels)} cells were grouped")
        return np.bincount(self.labels, values, minlength=len(self.law))


def group_by(labels: Labels, law: Law) -> Grouping:
    """The coarser law of given groups; impossible cells get a group of their own, the last one.

    Parameters
    ----------
    labels : ``[cells]``, the group of each cell, numbers from 0 without gaps. Labels of impossible cells
        don't matter.
    law : ``[cells]``.

    Raises
    ------
    ValueError
        As `check_law`, or the lengths differ, or a label is negative.

    Examples
    --------
    >>> grouping = group_by(np.array([0, 1, 1, 0]), np.array([0.5, 0.25, 0.25, 0.0]))
    >>> grouping.labels, grouping.law, grouping.pooled_mass
    (array([0, 1, 1, 2]), array([0.5, 0.5, 0. ]), 0.5)
    """
    exact = check_law(law)
    if len(labels) != len(exact):
        raise ValueError(f"there are {len(labels)} labels, but the law has {len(exact)} cells")
    if labels.min() < 0:
        raise ValueError(f"labels of groups start at 0, but one is {labels.min()}")
    possible = exact > 0
    groups = labels[possible].max() + 1
    separate = np.where(possible, labels, groups).astype(np.int64)
    grouped = np.bincount(separate, exact)
    shared = np.bincount(separate, possible) > 1
    return Grouping(separate, grouped, float(grouped[shared].sum()))


def pool_cells(law: Law, samples: float, *, least: float = LEAST_EXPECTED) -> Grouping:
    """Join light cells until every group is expected at least `least` times.

    Cells that are heavy enough stay single. The others are joined in order of falling probability; a group
    is closed as soon as it is heavy enough, and what is left at the end joins the group before it. With
    fewer than `least` samples there is one group and nothing to test.

    Parameters
    ----------
    law : ``[cells]``.
    samples : size of the sample that will be counted.
    least : least expected count of a group.

    Raises
    ------
    ValueError
        As `check_law`, or samples or least isn't positive.

    Examples
    --------
    >>> grouping = pool_cells(np.array([0.5, 0.0, 0.04, 0.03, 0.03, 0.4]), samples=1000, least=50)
    >>> grouping.labels
    array([0, 3, 2, 2, 2, 1])
    >>> grouping.law
    array([0.5, 0.4, 0.1, 0. ])
    """
    exact = check_law(law)
    check_samples(samples)
    if not least > 0:
        raise ValueError(f"the least expected count must be positive, but is {least}")
    order = np.argsort(-exact, kind="stable")
    labels = np.empty(len(exact), dtype=np.int64)
    labels[order] = np.cumsum(_starts(samples * exact[order], least)) - 1
    return group_by(labels, exact)


def _starts(expected: Float64[np.ndarray, " cells"], least: float) -> Bool[np.ndarray, " cells"]:
    """Which cells open a group, given their expected counts in falling order."""
    single = int(np.count_nonzero(expected >= least))
    starts = np.arange(len(expected)) < max(single, 1)
    reached = np.cumsum(expected[single:]).tolist()
    begin, before = 0, 0.0
    while (end := bisect_left(reached, before + least, lo=begin)) < len(reached):
        starts[single + begin] = True
        begin, before = end + 1, reached[end]
    return starts
