"""Exact laws of what one step emits, from the tables of a kind.

An outcome is the tuple of emitted tokens; its cell is its place in an array with one axis for each of the
K + 1 positions, index 0 for no token and t + 1 for token t. With p and q the laws of target and draft after a
prefix, chain rejection sampling emits an accepted prefix x_1 .. x_a and then y with probability

    min(p, q)(x_1) ... min(p, q)(x_a) * (p - q)+(y)     for a < K,
    min(p, q)(x_1) ... min(p, q)(x_K) * p(y)            for a = K,

since a draft x is drawn and accepted with min(p, q)(x), and drawn and rejected with (q - p)+(x), which sum to
the same as (p - q)+, the unnormalised residual. The definition is `tokenlaw.spec.steps.step_law`.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

ROUNDING = 2.0**-17
"""Relative difference of p and q below which an engine in float32 may see a residual where there is none.

A logit 32 below the largest, divided by a temperature and shifted, is off by up to 2^-19 in float32, and its
probability by as much relatively; p and q may be off in opposite directions, and both are normalised.
"""

Array = Float64[np.ndarray, "*positions"]


@dataclass(frozen=True)
class KindLaws:
    """Target and draft laws of one kind.

    Attributes
    ----------
    target : float64 ``[length + 1, contexts, V]``.
    draft : float64 ``[length, contexts, V]``.
    """

    target: Float64[np.ndarray, "positions contexts vocabulary"]
    draft: Float64[np.ndarray, "drafts contexts vocabulary"]

    @property
    def vocabulary(self) -> int:
        """V."""
        return int(self.target.shape[-1])

    @property
    def length(self) -> int:
        """Number of drafts."""
        return len(self.draft)

    def contexts(self, position: int) -> np.ndarray:
        """The context at a position for each token before it; context 0 at position 0."""
        tokens = np.arange(self.vocabulary) if position else np.zeros(1, dtype=np.int64)
        return np.asarray(tokens % self.target.shape[1])

    def at(self, position: int) -> Float64[np.ndarray, "before vocabulary"]:
        """The target's law at a position for each token before it (one row at position 0)."""
        return np.asarray(self.target[position][self.contexts(position)])

    def drafted(self, position: int) -> Float64[np.ndarray, "before vocabulary"]:
        """The draft's law, likewise."""
        return np.asarray(self.draft[position][self.contexts(position)])


def completed(laws: KindLaws) -> Array:
    """Law of ``length + 1`` target-only tokens, shape ``[V] * (length + 1)``."""
    law = np.ones(())
    for position in range(laws.length + 1):
        law = _extended(law, laws.at(position))
    return law


def chain_joint(laws: KindLaws) -> tuple[Array, Array]:
    """Joint law of the emitted tokens under the chain rule, and how much rounding may add to each cell.

    Both have the shape ``[V + 1] * (length + 1)``. The second is positive in cells that are impossible, or
    all but impossible, because p and q agree there up to rounding.
    """
    shape = (laws.vocabulary + 1,) * (laws.length + 1)
    joint, rounding = np.zeros(shape), np.zeros(shape)
    accepted = np.ones(())
    for position in range(laws.length):
        target, draft = laws.at(position), laws.drafted(position)
        residual, larger = np.maximum(target - draft, 0.0), np.maximum(target, draft)
        close = np.abs(target - draft) <= ROUNDING * larger
        place = _ended(position, laws.length)
        joint[place] = _extended(accepted, np.where(close, 0.0, residual))
        rounding[place] = _extended(accepted, np.where(close, ROUNDING * larger, 0.0))
        accepted = _extended(accepted, np.minimum(target, draft))
    joint[_ended(laws.length, laws.length)] = _extended(accepted, laws.at(laws.length))
    return joint, rounding


def _extended(prefixes: Array, rows: Float64[np.ndarray, "before vocabulary"]) -> Array:
    """Masses of prefixes, one token longer."""
    return np.asarray(prefixes[..., None] * (rows if prefixes.ndim else rows[0]))


def _ended(position: int, length: int) -> tuple[slice | int, ...]:
    """Cells of the outcomes whose last token stands at the position."""
    return (slice(1, None),) * (position + 1) + (0,) * (length - position)


def emitted_lengths(length: int, vocabulary: int) -> np.ndarray:
    """For each cell the number of tokens it stands for, and 0 for cells that are no outcome (holes).

    >>> emitted_lengths(1, 1)
    array([[0, 0],
           [1, 2]])
    """
    lengths = np.zeros((vocabulary + 1,) * (length + 1), dtype=np.int64)
    for position in range(length + 1):
        lengths[_ended(position, length)] = position + 1
    return lengths


def rejected_pairs(laws: KindLaws) -> tuple[Array, Array]:
    """Mass of (position of the rejection, rejected draft x, recovered token y) under the chain rule.

    Given the prefix, x has the law (q - p)+ and y, drawn independently, (p - q)+, both normalised.

    Returns
    -------
    The masses, ``[drafts, V, V]``, and how much rounding may add to each of them, as for `chain_joint`.
    """
    shape = (laws.length, laws.vocabulary, laws.vocabulary)
    masses, rounding = np.zeros(shape), np.zeros(shape)
    prefixes = np.ones(1)  # accepted mass by the token before
    for position in range(laws.length):
        target, draft = laws.at(position), laws.drafted(position)
        larger = np.maximum(target, draft)
        doubt = np.where(np.abs(target - draft) <= ROUNDING * larger, ROUNDING * larger, 0.0)
        lost = np.where(doubt > 0, 0.0, np.maximum(draft - target, 0.0))
        residual = np.where(doubt > 0, 0.0, np.maximum(target - draft, 0.0))
        total = residual.sum(-1)
        scale = np.divide(prefixes, total, out=np.zeros_like(total), where=total > 0)
        masses[position] = np.einsum("c,cx,cy->xy", scale, lost, residual)
        replaced = ((residual > 0) | (doubt > 0)).astype(np.float64)
        rounding[position] = np.einsum("c,cx,cy->xy", prefixes, doubt, replaced)
        rounding[position] += np.einsum("c,cx,cy->xy", scale, lost, doubt)
        prefixes = (prefixes[:, None] * np.minimum(target, draft)).sum(0)
    return masses, rounding


def impossible_tokens(laws: KindLaws) -> Bool[np.ndarray, "*positions"]:
    """Cells that no extension can make possible: some token has probability zero after its prefix.

    Cells that are no outcome count as impossible.
    """
    impossible = np.ones((laws.vocabulary + 1,) * (laws.length + 1), dtype=bool)
    possible = np.ones((), dtype=bool)
    for position in range(laws.length + 1):
        rows = laws.at(position) > 0
        possible = possible[..., None] & (rows if possible.ndim else rows[0])
        impossible[_ended(position, laws.length)] = ~possible
    return impossible


def draft_law(laws: KindLaws) -> Array:
    """Joint law of all drafts, shape ``[V] * length``; of length 0, the number one."""
    law = np.ones(())
    for position in range(laws.length):
        law = _extended(law, laws.drafted(position))
    return law
