"""The joint law of block verification, from the tables of a kind, by enumeration over the drafts."""

from itertools import product

import numpy as np

from tokenlaw.spec.block_verification import block_verification
from tokenlaw.stats.chain_laws import Array, KindLaws


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


def _row(table: np.ndarray, drafts: tuple[int, ...], position: int) -> tuple[float, ...]:
    context = drafts[position - 1] % table.shape[1] if position else 0
    return tuple(table[position, context].tolist())
