"""The joint law of block verification, from the tables of a kind, by enumeration over the drafts."""

from itertools import product

import numpy as np
from jaxtyping import Bool

from tokenlaw.spec.block_verification import block_verification
from tokenlaw.stats.chain_laws import ROUNDING, Array, KindLaws


def block_joint(laws: KindLaws) -> Array:
    """Joint law of the emitted tokens, in the cells of `tokenlaw.stats.chain_laws`."""
    joint = np.zeros((laws.vocabulary + 1,) * (laws.length + 1))
    for drafts in product(range(laws.vocabulary), repeat=laws.length):
        rows = [_row(laws.draft, drafts, position) for position in range(laws.length)]
        weight = float(np.prod([row[token] for row, token in zip(rows, drafts, strict=True)]))
        if weight == 0:
            continue
        target = [_row(laws.target, drafts, position) for position in range(laws.length + 1)]
        for outcome, probability in block_verification(drafts, target=target, draft=rows).items():
            cell = [token + 1 for token in outcome.tokens]
            joint[(*cell, *(0,) * (laws.length + 1 - len(cell)))] += weight * probability
    return joint


def block_impossible(laws: KindLaws) -> Bool[np.ndarray, "*positions"]:
    """Cells that are impossible by more than rounding.

    All probabilities of the rule grow with the ratios p / q. So what stays impossible while a token that the
    target never gives takes a little from every draft is impossible with any rounding as large.
    """
    nothing = np.zeros((*laws.target.shape[:-1], 1))
    little = np.full((*laws.draft.shape[:-1], 1), 2 * ROUNDING)
    target = np.concatenate([laws.target, nothing], -1)
    draft = np.concatenate([laws.draft * (1 - little), little], -1)
    joint = block_joint(KindLaws(target, draft))
    return np.asarray(joint[(slice(laws.vocabulary + 1),) * joint.ndim] == 0)


def _row(table: np.ndarray, drafts: tuple[int, ...], position: int) -> tuple[float, ...]:
    context = drafts[position - 1] % table.shape[1] if position else 0
    return tuple(table[position, context].tolist())
