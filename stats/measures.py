"""What is asked of the counts of one kind: cells, their law, and the gate that judges them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from tokenlaw.spec.generation_contracts import BLOCK, TEXTBOOK
from tokenlaw.stats.block_laws import block_joint
from tokenlaw.stats.chain_laws import (
    Array,
    KindLaws,
    chain_joint,
    completed,
    emitted_lengths,
    rejected_pairs,
)
from tokenlaw.stats.e_values import DirichletGate, GammaPoissonGate
from tokenlaw.stats.tally import Counts

COMPLETED, JOINT, LENGTH = "law/completed", "law/joint", "law/length"
REJECTED, BONUS, DRAFTS, SUPPORT = "law/rejected", "law/bonus", "law/drafts", "law/support"

LEAST_MASS = 1e-7
"""A law given an event is asked for only where the event has at least this probability."""


@dataclass(frozen=True)
class Seen:
    """Cumulative counts of one kind.

    Attributes
    ----------
    outcomes : ``[V + 1] * (length + 1)``, tuples of emitted tokens.
    completed : ``[V] * (length + 1)``, the same extended by target-only sampling.
    pairs : ``[length, V, V]``, rejected draft and recovered token.
    drafts : ``[V] * length``, what the implementation's own drafter drew; empty without one.
    expected : mean of the Poisson law of the number of samples.
    """

    outcomes: Counts
    completed: Counts
    pairs: Counts
    drafts: Counts
    expected: float


class PoissonMeasure:
    """Cells of one law under independent Poisson counts.

    Parameters
    ----------
    law : masses of the cells; they may sum to less than one, since a part of independent cells is as good.
    """

    def __init__(self, law: Array) -> None:
        self.law = law
        flat = law.ravel()
        self._used = np.flatnonzero(flat)
        self._mass = float(flat.sum())
        self._gate = GammaPoissonGate(flat[self._used] / self._mass)

    @property
    def cells(self) -> int:
        """Number of possible cells."""
        return len(self._used)

    def log_e(self, counts: Counts, expected: float) -> float:
        """Log e-value of counts in the shape of the law; impossible cells are left to the support."""
        return self._gate.log_e(counts.ravel()[self._used], expected * self._mass)


class ConditionalMeasure:
    """Cells of a law given that one of them was hit, whatever the number of hits.

    Parameters
    ----------
    masses : of the cells, not normalised.
    """

    def __init__(self, masses: Array) -> None:
        flat = masses.ravel()
        self.mass = float(flat.sum())
        self.law = masses / self.mass
        self._used = np.flatnonzero(flat)
        self._gate = DirichletGate(flat[self._used] / self.mass)

    @property
    def cells(self) -> int:
        """Number of possible cells."""
        return len(self._used)

    def log_e(self, counts: Counts, expected: float) -> float:
        """Log e-value; the expected number of samples doesn't matter."""
        return self._gate.log_e(counts.ravel()[self._used])


Measure = PoissonMeasure | ConditionalMeasure


@dataclass(frozen=True)
class KindMeasures:
    """Everything that is asked of one kind.

    Attributes
    ----------
    measures : check id to what judges it.
    impossible : check id to the cells of outcomes that can't happen under its law.
    supported : the check whose impossible outcomes the claim rules out.
    doubtful : cells that rounding in float32 may reach under the claim.
    doubtful_mass : the mass that rounding may give them in all.
    """

    laws: KindLaws
    measures: Mapping[str, Measure]
    impossible: Mapping[str, Bool[np.ndarray, "*cells"]]
    supported: str
    doubtful: Bool[np.ndarray, "*cells"]
    doubtful_mass: float

    def counts(self, check: str, seen: Seen) -> Counts:
        """The counts that the measure of a check takes."""
        return _COUNTED[check](seen)

    def log_e(self, check: str, seen: Seen) -> float:
        """Log e-value of one check."""
        return self.measures[check].log_e(self.counts(check, seen), seen.expected)


def _lengths(seen: Seen) -> Counts:
    lengths = emitted_lengths(seen.outcomes.ndim - 1, seen.outcomes.shape[0] - 1)
    return np.bincount(lengths.ravel(), weights=seen.outcomes.ravel()).astype(np.int64)[1:]


def _bonus(seen: Seen) -> Counts:
    """Last accepted draft and bonus token, where every draft was accepted."""
    full = seen.outcomes[(slice(1, None),) * seen.outcomes.ndim]
    return full.sum(axis=tuple(range(full.ndim - 2)))


_COUNTED = {
    COMPLETED: lambda seen: seen.completed,
    JOINT: lambda seen: seen.outcomes,
    LENGTH: _lengths,
    REJECTED: lambda seen: seen.pairs,
    BONUS: _bonus,
    DRAFTS: lambda seen: seen.drafts,
}


def normalised(masses: Array) -> Array:
    """The masses over their sum."""
    return masses / masses.sum()


def measures_of(laws: KindLaws, claims: str, *, own_drafter: bool) -> KindMeasures:
    """All measures of a kind: what is claimed, and the textbook's law where less is claimed."""
    found: dict[str, Measure] = {COMPLETED: PoissonMeasure(completed(laws))}
    impossible = {COMPLETED: _impossible_tokens(laws)}
    doubtful, mass = np.zeros_like(impossible[COMPLETED]), 0.0
    if claims == BLOCK:
        if laws.vocabulary**laws.length <= _MOST_BLOCKS:
            found[JOINT] = PoissonMeasure(block_joint(laws))
    else:
        joint, rounding = chain_joint(laws)
        found |= _textbook(laws, joint)
        impossible[JOINT] = (joint == 0) & (rounding == 0)
        doubtful, mass = rounding > 0, float(rounding.sum())
    if own_drafter and laws.length:
        found[DRAFTS] = PoissonMeasure(_draft_law(laws))
    supported = JOINT if claims == TEXTBOOK else COMPLETED
    if supported == COMPLETED:
        doubtful, mass = np.zeros_like(doubtful), 0.0
    return KindMeasures(laws, found, impossible, supported, doubtful, mass)


_MOST_BLOCKS = 64
"""The joint law of block verification is enumerated draft by draft; larger kinds go without it."""


def _textbook(laws: KindLaws, joint: Array) -> dict[str, Measure]:
    found: dict[str, Measure] = {JOINT: PoissonMeasure(joint)}
    if not laws.length:
        return found
    lengths = emitted_lengths(laws.length, laws.vocabulary)
    masses = np.bincount(lengths.ravel(), weights=joint.ravel())[1:]
    found[LENGTH] = PoissonMeasure(masses / masses.sum())
    pairs = rejected_pairs(laws)
    if pairs.sum() >= LEAST_MASS:
        found[REJECTED] = ConditionalMeasure(pairs)
    full = joint[(slice(1, None),) * joint.ndim]
    if full.sum() >= LEAST_MASS:
        found[BONUS] = ConditionalMeasure(full.sum(axis=tuple(range(full.ndim - 2))))
    return found


def _impossible_tokens(laws: KindLaws) -> Bool[np.ndarray, "*cells"]:
    """Outcomes that no extension can make possible: some token has probability zero after its prefix."""
    shape = (laws.vocabulary + 1,) * (laws.length + 1)
    impossible = np.ones(shape, dtype=bool)
    possible = np.ones((), dtype=bool)
    for position in range(laws.length + 1):
        rows = laws.at(position) > 0
        possible = possible[..., None] & (rows if possible.ndim else rows[0])
        ended = (slice(1, None),) * (position + 1) + (0,) * (laws.length - position)
        impossible[ended] = ~possible
    return impossible


def _draft_law(laws: KindLaws) -> Float64[np.ndarray, "*drafts"]:
    law = laws.drafted(0)[0]
    for position in range(1, laws.length):
        law = law[..., None] * laws.drafted(position)
    return law
