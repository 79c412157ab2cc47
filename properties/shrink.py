"""Shrinking a failing trace or session to a small one that still fails.

Own code, not hypothesis' shrinker, for two reasons: hypothesis keeps whatever fails, so it may slip from one
fault to another while it shrinks, and it can shrink only what it drew itself, while recorded traces (engine
logs, saved counterexamples) must shrink too. Here the predicate says which failure is meant and the input is
any trace.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import msgspec

from tokenlaw.properties.history import History, LiveSequence, batch_of, verified
from tokenlaw.properties.running import Example
from tokenlaw.properties.simpler import simpler_arguments, simpler_configurations, simpler_vocabularies, size
from tokenlaw.properties.trace import Attend, Batch, Operation, Reorder, SpeculateBatch, Trace
from tokenlaw.spec.stopwatch import Stopwatch

Fails = Callable[[Example], bool]

Candidates = Callable[[Any], Iterable[Any]]
"""Examples that may be simpler than the given one."""

_FEW = 16  # operations; beyond that, pairs are too many to try

_FEWER_BLOCKS = 4
"""Blocks at most by which a pool becomes smaller together with the operations that filled it."""


@dataclass(frozen=True)
class Simplifier:
    """How examples of one kind are shrunk: what counts as smaller, and what is tried, in order."""

    size: Callable[[Any], tuple[int, ...]]
    passes: tuple[Candidates, ...]


def shrink(
    trace: Example,
    fails: Fails,
    max_runs: int = 4_000,
    seconds: float = 30.0,
    simplifier: Simplifier | None = None,
) -> Example:
    """A small trace for which ``fails`` is true: minimal in operations, then with simple arguments.

    Leaving out any one operation of the result makes it pass, and any two of a short result, unless the
    budget ran out first. The result depends on the trace and the predicate only (and on the clock, when
    ``seconds`` runs out).

    Parameters
    ----------
    trace : a trace that fails.
    fails : true for traces that show the failure in question; must be deterministic.
    max_runs : calls of ``fails`` at most.
    seconds : limit, of a `tokenlaw.spec.stopwatch.Stopwatch`.
    simplifier : of sessions, or whatever else; `TRACES` if None.
    """
    chosen = simplifier or TRACES
    search = _Search(trace, fails, chosen.size, max_runs, seconds)
    before = None
    while before != search.best:
        before = search.best
        for candidates in chosen.passes:
            search.descend(candidates)
    return search.best


@dataclass
class _Search:
    """The best trace so far, and what is left of the budget."""

    best: Example
    fails: Fails
    size: Callable[[Any], tuple[int, ...]]
    runs_left: int
    seconds: float
    spent: Stopwatch = field(default_factory=Stopwatch)
    passed: set[bytes] = field(default_factory=set)

    def descend(self, candidates: Candidates) -> None:
        """Take the first smaller failing candidate, until there is none."""
        improved = True
        while improved:
            improved = any(self._try(candidate) for candidate in candidates(self.best))

    def _try(self, candidate: Example) -> bool:
        if self.size(candidate) >= self.size(self.best):
            return False
        key = msgspec.msgpack.encode(candidate)
        if key in self.passed:
            return False
        if self.runs_left <= 0 or self.spent() > self.seconds:
            return False
        self.runs_left -= 1
        if self.fails(candidate):
            self.best = candidate
            return True
        self.passed.add(key)
        return False


def _with_fewer_operations(trace: Trace) -> Iterator[Trace]:
    """Leave out chunks, large ones first and late ones first, down to single operations.

    Each chunk is left out in two ways: the remaining operations keep pointing at the same sequences (and go
    with the sequence that they need), or they keep their indices.
    """
    count = len(trace.operations)
    length = count
    while length:
        for start in range(count - length, -1, -length):
            removed = range(start, start + length)
            yield _without(trace, removed)
            kept = (*trace.operations[:start], *trace.operations[start + length :])
            yield msgspec.structs.replace(trace, operations=kept)
        if length > 1 and count % length:
            # The chunks are counted from the end; this is the incomplete one at the start.
            yield _without(trace, range(count % length))
        length //= 2


def _with_two_fewer(trace: Trace) -> Iterator[Trace]:
    """Leave out any two operations, which may need each other: a fork and what its child does."""
    if len(trace.operations) <= _FEW:
        for pair in combinations(range(len(trace.operations)), 2):
            yield _without(trace, pair)


def _with_a_smaller_pool(trace: Trace) -> Iterator[Trace]:
    """Leave out blocks together with one or two operations, which only filled them."""
    count, blocks = len(trace.operations), trace.config.num_blocks
    if count <= _FEW:
        for fewer in range(max(1, blocks - _FEWER_BLOCKS), blocks):
            small = msgspec.structs.replace(trace, config=replace(trace.config, num_blocks=fewer))
            for filling in (*combinations(range(count), 1), *combinations(range(count), 2)):
                yield _without(small, filling)


def _without(trace: Trace, removed: Container[int]) -> Trace:
    """The trace without these operations, every other operation still on the sequence that it was on."""
    old, new = History(), History()
    renumbered: dict[int, int] = {}
    kept = []
    for place, operation in enumerate(trace.operations):
        created = old.created
        pointed = None if place in removed else _pointed(operation, old, new, renumbered)
        old.apply(operation)
        if pointed is None:
            continue
        if old.created > created:
            renumbered[created] = new.created
        new.apply(pointed)
        kept.append(pointed)
    return msgspec.structs.replace(trace, operations=tuple(kept))


def _pointed(
    operation: Operation, old: History, new: History, renumbered: dict[int, int]
) -> Operation | None:
    """The operation with its index in the new history, or None when its sequence doesn't exist there."""
    if isinstance(operation, Batch | SpeculateBatch):
        return _pointed_batch(operation, old, new, renumbered)
    if isinstance(operation, Reorder | Attend) or getattr(operation, "sequence", None) is None:
        return operation
    target = old.target(operation)
    numbers = [sequence.number for sequence in new.candidates(operation)]
    if target is None or renumbered.get(target.number) not in numbers:
        return None
    return msgspec.structs.replace(operation, sequence=numbers.index(renumbered[target.number]))


def _pointed_batch(
    operation: Batch | SpeculateBatch, old: History, new: History, renumbered: dict[int, int]
) -> Operation | None:
    """The batch with its indices in the new history, without the sequences that don't exist there."""
    places = {sequence.number: place for place, sequence in enumerate(new.live)}

    def place(sequence: LiveSequence | None) -> int | None:
        return None if sequence is None else places.get(renumbered.get(sequence.number, -1))

    if isinstance(operation, Batch):
        appended, released = batch_of(operation, old.live)
        found = [(there, token) for one, token in appended if (there := place(one)) is not None]
        indices, tokens = tuple(there for there, _ in found), tuple(token for _, token in found)
        return Batch(indices, tokens, place(released)) if found else None
    kept = [
        (there, len(d), k) for one, d, k in verified(operation, old.live) if (there := place(one)) is not None
    ]
    if not kept:
        return None
    sequences, lengths, accepted = zip(*kept, strict=True)
    return SpeculateBatch(sequences, operation.drafts, lengths, accepted)


TRACES = Simplifier(
    size,
    (
        _with_fewer_operations,
        simpler_vocabularies,
        simpler_arguments,
        simpler_configurations,
        _with_two_fewer,
        _with_a_smaller_pool,
    ),
)
"""How traces are shrunk."""
