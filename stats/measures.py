"""What is asked of the counts of one kind: cells, their law, and the gate that judges them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from tokenlaw.spec.generation_contracts import BLOCK, TEXTBOOK
from tokenlaw.stats.block_laws import block_impossible, block_joint
from tokenlaw.stats.chain_laws import (
    Array,
    KindLaws,
    chain_joint,
    completed,
    draft_law,
    emitted_lengths,
    impossible_tokens,
    rejected_pairs,
)
from tokenlaw.stats.gates import DirichletGate, GammaPoissonGate
from tokenlaw.stats.tally import Counts

COMPLETED, JOINT, LENGTH = "law/completed", "law/joint", "law/length"
REJECTED, BONUS, DRAFTS, SUPPORT = "law/rejected", "law/bonus", "law/drafts", "law/support"

LEAST_MASS = 1e-7
"""A law given an event is asked for only where the event has at least this probability."""

DOUBT = 1 / 100
"""A cell is left out where rounding may make up more than this part of it."""

MOST_BLOCKS = 64
"""The joint law of block verification is enumerated draft by draft; kinds with more go without it."""

Cells = Bool[np.ndarray, "*cells"]


@dataclass(frozen=True)
class Seen:
    """Cumulative counts of one kind.

    Attributes
    ----------
    outcomes : ``[V + 1] * (length + 1)``, tuples of emitted tokens.
    completed : ``[V] * (length + 1)``, the same extended by target-only sampling.
    pairs : ``[length, V, V]``, rejected draft and recovered token.
    drafts : ``[V] * length``, what the implementation's own drafter drew; empty without one.
    expected : mean of the Poisson number of samples.
    """

    outcomes: Counts
    completed: Counts
    pairs: Counts
    drafts: Counts
    expected: float


class _Measure:
    """A law: masses of cells, ``mass``, the sum of those that count, and which cells are ``left_out``."""

    def __init__(self, law: Array, left_out: Cells | None, *, strict: bool) -> None:
        self.law = law if left_out is None else np.where(left_out, 0.0, law)
        self.left_out = np.zeros(law.shape, dtype=bool) if left_out is None else left_out
        flat = self.law.ravel()
        self._used: Int64[np.ndarray, " used"] = np.flatnonzero(flat)
        self._masses = flat[self._used]
        self.mass = float(self._masses.sum())
        impossible = (flat == 0) if left_out is None else (flat == 0) & ~left_out.ravel()
        self._impossible = np.flatnonzero(impossible) if strict else self._used[:0]

    @property
    def cells(self) -> int:
        """Number of possible cells."""
        return len(self._used)

    def _counted(self, counts: Counts) -> Counts | None:
        """Counts of the possible cells; None after an impossible one."""
        flat = counts.ravel()
        return None if flat[self._impossible].any() else flat[self._used]

    def impossible(self, counts: Counts) -> list[tuple[int, ...]]:
        """The cells that were hit though the law rules them out."""
        flat = counts.ravel()
        hit = self._impossible[flat[self._impossible] > 0]
        return [tuple(int(index) for index in np.unravel_index(cell, self.law.shape)) for cell in hit]

    def surprise(self, counts: Counts, expected: float) -> float:
        """Roughly how many standard deviations the counts are off in all; not for a verdict."""
        found = self._counted(counts)
        if found is None:
            return math.inf
        # Freeman and Tukey's deviates: of variance one and less, however light the cells.
        deviates = np.sqrt(found) + np.sqrt(found + 1) - np.sqrt(4 * expected * self._masses + 1)
        return float((deviates @ deviates - len(found)) / math.sqrt(2 * len(found)))


class PoissonMeasure(_Measure):
    """Cells of one law under independent Poisson counts.

    Parameters
    ----------
    law : masses of the cells; they may sum to less than one, since a part of independent cells is as good.
    left_out : cells that don't count.
    strict : whether a count in a cell of mass zero, if it counts, refutes; else such cells don't count.
    """

    def __init__(self, law: Array, left_out: Cells | None = None, *, strict: bool = False) -> None:
        super().__init__(law, left_out, strict=strict)
        self._gate = GammaPoissonGate(self._masses / self.mass)

    def log_e(self, counts: Counts, expected: float) -> float:
        """Log e-value of counts in the shape of the law."""
        found = self._counted(counts)
        return math.inf if found is None else self._gate.log_e(found, expected * self.mass)

    def samples(self, expected: float) -> float:
        """How many of the expected samples the law is about."""
        return expected


class ConditionalMeasure(_Measure):
    """Cells of a law given that one of them was hit, whatever the number of hits.

    Given which samples hit the cells that count, the hits are independent draws from their law.

    Parameters
    ----------
    masses : of the cells, not normalised.
    left_out, strict : as for `PoissonMeasure`.
    """

    def __init__(self, masses: Array, left_out: Cells | None = None, *, strict: bool = False) -> None:
        super().__init__(masses, left_out, strict=strict)
        self.law = self.law / self.mass
        self._gate = DirichletGate(self._masses / self.mass)

    def log_e(self, counts: Counts, expected: float) -> float:
        """Log e-value; the expected number of samples doesn't matter."""
        found = self._counted(counts)
        return math.inf if found is None else self._gate.log_e(found)

    def samples(self, expected: float) -> float:
        """How many of the expected samples the law is about: the hits."""
        return expected * self.mass


Measure = PoissonMeasure | ConditionalMeasure


@dataclass(frozen=True)
class KindMeasures:
    """Everything that is asked of one kind.

    Attributes
    ----------
    measures : check id to what judges it.
    impossible : outcomes that the claim rules out, in the cells of `tokenlaw.stats.chain_laws`.
    doubtful, doubtful_mass : outcomes that only float32 may reach, and what rounding may give them in all.
    """

    laws: KindLaws
    measures: Mapping[str, Measure]
    impossible: Cells
    doubtful: Cells
    doubtful_mass: float

    def counts(self, check: str, seen: Seen) -> Counts:
        """The counts that the measure of a check takes."""
        return _COUNTED[check](seen)

    def log_e(self, check: str, seen: Seen) -> float:
        """Log e-value of one check."""
        return self.measures[check].log_e(self.counts(check, seen), seen.expected)

    def surprise(self, seen: Seen) -> float:
        """Roughly how far the counts are from the strongest law that is claimed."""
        check = JOINT if JOINT in self.measures else COMPLETED
        return self.measures[check].surprise(self.counts(check, seen), seen.expected)


def _lengths(seen: Seen) -> Counts:
    lengths = emitted_lengths(seen.outcomes.ndim - 1, len(seen.outcomes) - 1).ravel()
    return np.bincount(lengths, weights=seen.outcomes.ravel()).astype(np.int64)[1:]


def _bonus(seen: Seen) -> Counts:
    """Last accepted draft and bonus token, where every draft was accepted."""
    return _last_two(seen.outcomes[(slice(1, None),) * seen.outcomes.ndim])


_COUNTED: Mapping[str, Callable[[Seen], Counts]] = {
    COMPLETED: lambda seen: seen.completed,
    JOINT: lambda seen: seen.outcomes,
    LENGTH: _lengths,
    REJECTED: lambda seen: seen.pairs,
    BONUS: _bonus,
    DRAFTS: lambda seen: seen.drafts,
}


def measures_of(laws: KindLaws, claims: str, *, own_drafter: bool) -> KindMeasures:
    """All measures of a kind: what is claimed, and the textbook's law where less is claimed."""
    found: dict[str, Measure] = {COMPLETED: PoissonMeasure(completed(laws), strict=True)}
    impossible = impossible_tokens(laws)
    doubtful, mass = np.zeros_like(impossible), 0.0
    if claims == BLOCK:
        if laws.vocabulary**laws.length <= MOST_BLOCKS:
            joint = block_joint(laws)
            found[JOINT] = PoissonMeasure(joint, (joint == 0) & ~block_impossible(laws), strict=True)
    else:
        joint, rounding = chain_joint(laws)
        found |= _textbook(laws, joint, rounding)
        if claims == TEXTBOOK:
            impossible = (joint == 0) & (rounding == 0)
            doubtful, mass = rounding > 0, float(rounding.sum())
    if own_drafter and laws.length:
        found[DRAFTS] = PoissonMeasure(draft_law(laws), strict=True)
    return KindMeasures(laws, found, impossible, doubtful, mass)


def _textbook(laws: KindLaws, joint: Array, rounding: Array) -> dict[str, Measure]:
    found: dict[str, Measure] = {JOINT: PoissonMeasure(joint, _doubted(joint, rounding), strict=True)}
    if not laws.length:
        return found
    lengths = emitted_lengths(laws.length, laws.vocabulary).ravel()
    masses, doubt = (np.bincount(lengths, weights=law.ravel())[1:] for law in (joint, rounding))
    found[LENGTH] = PoissonMeasure(masses, _doubted(masses, doubt), strict=True)
    pairs, doubt = rejected_pairs(laws)
    left_out = _doubted(pairs, doubt)
    if pairs[~left_out].sum() >= LEAST_MASS:
        found[REJECTED] = ConditionalMeasure(pairs, left_out, strict=True)
    full = joint[(slice(1, None),) * joint.ndim]
    if full.sum() >= LEAST_MASS:
        found[BONUS] = ConditionalMeasure(_last_two(full), strict=True)
    return found


def _doubted(masses: Array, rounding: Array) -> Cells:
    return np.asarray(rounding > DOUBT * masses)


def _last_two(full: np.ndarray) -> np.ndarray:
    """Sums over all axes but the last two."""
    return np.asarray(full.sum(axis=tuple(range(full.ndim - 2))))
