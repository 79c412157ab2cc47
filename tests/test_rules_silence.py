"""No rule refutes a correct manager, whichever of the correct ways it goes."""

from collections.abc import Hashable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenlaw.impl.paged import REFERENCE, PagedBlockManager
from tokenlaw.impl.paged.sequence import SequenceRecord
from tokenlaw.properties.block_manager_run import run_trace
from tokenlaw.properties.rules import BLOCK_MANAGER_CHECKS
from tokenlaw.properties.strategies import traces
from tokenlaw.properties.trace import (
    Abort,
    Append,
    Chunked,
    Evict,
    Fork,
    Free,
    FreeAgain,
    LateWrite,
    New,
    Operation,
    Reset,
    Rollback,
    Speculate,
    SwapIn,
    SwapOut,
    Trace,
    Weights,
)
from tokenlaw.spec.contracts import BLOCK_MANAGER, NO_BLOCK, CacheConfig
from tokenlaw.spec.suites import PROFILES

ALL = REFERENCE.capabilities[BLOCK_MANAGER]

TOUR: tuple[Operation, ...] = (
    New((1, 2, 3, 4, 5)),
    New((1, 2, 3, 4, 6), "adapter"),
    New((1, 2, 3, 4, 6)),
    Fork(0),
    Append(0, (7,)),
    Append(3, (7,)),
    Speculate(1, (8, 9, 8, 9), 2),
    Speculate(1, (8,), 1),
    Rollback(0, 3),
    Append(0, (9, 9, 9, 9)),
    Rollback(0, 50),
    Rollback(0, -1),
    SwapOut(1),
    SwapIn(0),
    Abort((5,) * 9),
    Abort((5,), 2),
    Chunked((4,) * 6, 5),
    Chunked((4,) * 3, 1, 4),
    Chunked((4,), 0, 4, aborted=True),
    Chunked((5,) * 9, 7, aborted=True),
    New((6,) * 999),
    LateWrite(0, (1, 1), (2, 2, 2, 2, 2)),
    Weights(),
    Append(0, (3, 3, 3, 3)),
    New((1, 2, 3, 4, 5)),
    Free(0),
    FreeAgain(),
    Evict(2),
    Reset(),
)


def test_reference_passes_a_tour_of_all_operations() -> None:
    outcome = run_trace(PagedBlockManager, Trace(TOUR, CacheConfig(num_blocks=12)), ALL)
    assert outcome.violations == []
    assert outcome.crash is None
    assert outcome.operations == len(TOUR)
    named = {event for check in BLOCK_MANAGER_CHECKS for event in check.exercised_by}
    assert named - {event for event, count in outcome.exercised.items() if count} == {"window drop"}


@settings(max_examples=200)
@given(
    traces(ALL, PROFILES["dev"]),
    st.sampled_from([1, 5]),
    st.sets(st.sampled_from(sorted(ALL - {"copies", "window", "prefix-cache"}))),
)
def test_reference_is_never_refuted(trace: Trace, read_back_every: int, lacking: set[str]) -> None:
    outcome = run_trace(PagedBlockManager, trace, ALL - lacking, read_back_every=read_back_every)
    assert (outcome.violations, outcome.crash) == ([], None)


class WritesAtOnce(PagedBlockManager):
    """Takes tokens as written when they are scheduled, as managers without ``commit`` do."""

    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        handle = super().allocate(tokens, namespace)
        self.commit(handle, len(tokens))
        return handle

    def append(self, sequence: int, tokens: Sequence[int]) -> None:
        super().append(sequence, tokens)
        self.commit(sequence, self.num_tokens(sequence))

    def accept(self, sequence: int, count: int) -> None:
        super().accept(sequence, count)
        self.commit(sequence, self.num_tokens(sequence))


class MergesOnCommit(PagedBlockManager):
    """Replaces a block whose content is cached already by the cached one."""

    def commit(self, sequence: int, length: int) -> None:
        super().commit(sequence, length)
        record, device = self._record(sequence), self._blocks.device
        cached = {self.cached_key(block): block for block in range(self._blocks.num_blocks)}
        for i, key in enumerate(record.keys):
            found = cached.get(key)
            if found is not None and record.table[i] not in {NO_BLOCK, found} and device.can_share(found):
                device.share(found)
                self._blocks.release(record.table[i])
                record.table[i] = found


class PublishesOnFree(PagedBlockManager):
    """Makes blocks reachable only when their sequence is done."""

    def _publish(self, record: SequenceRecord) -> None:
        pass

    def free(self, sequence: int) -> None:
        record = self._record(sequence)
        if record.epoch == self._epoch and record.host is None:
            super()._publish(record)
        super().free(sequence)


class CopiesAtFork(PagedBlockManager):
    """Copies a partial tail when a sequence is forked, not when one of the two writes."""

    def fork(self, sequence: int) -> int:
        record = self._usable(sequence)
        partial = len(record.tokens) % self._block_size and record.table[-1] != NO_BLOCK
        self._blocks.require(int(bool(partial)), "a fork")
        handle = super().fork(sequence)
        if partial:
            child = self._record(handle)
            child.table[-1] = self._blocks.copy_on_write(child.table[-1])
        return handle


NOT_WITHOUT_COMMIT = frozenset({"commit", "window", "in-flight"})
VARIANTS = [
    (WritesAtOnce, ALL - NOT_WITHOUT_COMMIT),
    (MergesOnCommit, ALL),
    (PublishesOnFree, ALL - {"window"}),
    (CopiesAtFork, ALL),
]


@pytest.mark.parametrize(("manager", "capabilities"), VARIANTS)
@settings(max_examples=40)
@given(data=st.data())
def test_other_correct_managers_are_not_refuted(
    manager: type[PagedBlockManager], capabilities: frozenset[str], data: st.DataObject
) -> None:
    trace = data.draw(traces(capabilities, PROFILES["dev"]))
    outcome = run_trace(manager, trace, capabilities)
    assert (outcome.violations, outcome.crash) == ([], None)
