"""Pairs of small models on which a decoder's faults show: zeros, unlike drafts, residuals of two tokens."""

import numpy as np

from tokenlaw.spec.models import contexts
from tokenlaw.spec.session_models import Hashed, Table

ORDER = 2
"""The next token depends on the last two, so that one that isn't the last matters too."""

PAIRS = {
    3: (
        ((6, 4, 2), (0, 3, 9)),
        ((3, 0, 9), (8, 4, 0)),
        ((6, 2, 4), (3, 9, 0)),
        ((2, 7, 3), (6, 0, 6)),
        ((0, 5, 7), (9, 3, 0)),
        ((4, 3, 5), (0, 2, 10)),
        ((1, 8, 3), (10, 0, 2)),
    ),
    2: (((3, 9), (6, 6)), ((10, 2), (4, 8)), ((5, 7), (12, 0)), ((8, 4), (3, 9))),
}
"""For each number of tokens: law of the target and of the draft, in twelfths. At most one token of three is
impossible for either, so that a mask that leaves two tokens leaves a law."""

TWELFTHS = 12


def table_models(vocabulary_size: int, seed: int) -> tuple[Table, Table]:
    """Target and draft, whose rows are those of `PAIRS`, their tokens in any order; every pair occurs.

    Parameters
    ----------
    vocabulary_size : 2 or 3.
    seed : the same seed gives the same models.

    Examples
    --------
    >>> target, draft = table_models(2, seed=0)
    >>> len(target.rows), [round(12 * weight) for weight in target.rows[0]]
    (7, [5, 7])
    """
    generator = np.random.default_rng(seed)
    pairs, places = PAIRS[vocabulary_size], len(contexts(vocabulary_size, ORDER))
    rows = []
    for number in generator.permutation(places):
        tokens = generator.permutation(vocabulary_size)
        laws = pairs[number % len(pairs)]
        rows.append([tuple(weights[token] / TWELFTHS for token in tokens) for weights in laws])
    return Table(ORDER, tuple(target for target, _ in rows)), Table(ORDER, tuple(draft for _, draft in rows))


def hashed_models(vocabulary_size: int, seed: int) -> tuple[Hashed, Hashed]:
    """Target and draft that look at every token; the same seed gives the same ones."""
    return Hashed(vocabulary_size, seed), Hashed(vocabulary_size, seed + 1_000)
