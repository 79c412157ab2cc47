"""Every rule of block managers refutes a manager that breaks it, and none refutes the reference."""

from collections.abc import Hashable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenlaw.impl.paged import REFERENCE, PagedBlockManager
from tokenlaw.impl.paged.sequence import SequenceRecord
from tokenlaw.properties.block_manager_run import needed_capabilities, run_trace
from tokenlaw.properties.rules import BLOCK_MANAGER_CHECKS
from tokenlaw.properties.running import PROFILES, Outcome
from tokenlaw.properties.strategies import traces
from tokenlaw.properties.trace import (
    Abort,
    Append,
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
from tokenlaw.spec.contracts import BLOCK_MANAGER, BlockCopy, CacheConfig, OutOfBlocks

ALL = REFERENCE.capabilities[BLOCK_MANAGER]


class LosesCopies(PagedBlockManager):
    def pending_copies(self) -> list[BlockCopy]:
        super().pending_copies()
        return []


class ForkWithoutReference(PagedBlockManager):
    def fork(self, sequence: int) -> int:
        return self._admit(self._usable(sequence).copy())


class LeaksOnFree(PagedBlockManager):
    def free(self, sequence: int) -> None:
        self._blocks.device.share(self._record(sequence).blocks[-1])
        super().free(sequence)


class RefusesTheLastBlock(PagedBlockManager):
    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        if self._blocks_for(len(tokens)) == self.num_free_blocks():
            raise OutOfBlocks("exactly full")
        return super().allocate(tokens, namespace)


class NoCopyOnWrite(PagedBlockManager):
    def _extend(self, record: SequenceRecord, tokens: Sequence[int]) -> None:
        new = self._blocks_for(len(record.tokens) + len(tokens)) - len(record.table)
        record.table += self._blocks.take(new)
        record.tokens += tokens


class CopiesTwice(PagedBlockManager):
    def pending_copies(self) -> list[BlockCopy]:
        return super().pending_copies() * 2


class CopiesInACycle(PagedBlockManager):
    def pending_copies(self) -> list[BlockCopy]:
        copies = super().pending_copies()
        return copies + [BlockCopy(copy.destination, copy.source) for copy in copies]


class CopiesInADeclaredOrder(CopiesInACycle):
    copies_in_order = True


class TakesABlockEarly(PagedBlockManager):
    def _blocks_for(self, length: int) -> int:
        return length // self._block_size + 1


class NamesABlockTwice(PagedBlockManager):
    def block_table(self, sequence: int) -> list[int]:
        return [super().block_table(sequence)[0]] * len(self._record(sequence).table)


class NamesForeignBlocks(PagedBlockManager):
    def block_table(self, sequence: int) -> list[int]:
        return [block + 100 for block in super().block_table(sequence)]


class HitsTheWholePrompt(PagedBlockManager):
    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        handle = super().allocate([*tokens, 0], namespace)
        self._truncate(self._record(handle), len(tokens))
        return handle


class IgnoresNamespaces(PagedBlockManager):
    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        return super().allocate(tokens)


class ResetDoesNothing(PagedBlockManager):
    def reset_cache(self) -> None:
        pass


class PublishesBeforeTheWrite(PagedBlockManager):
    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        handle = super().allocate(tokens, namespace)
        self.commit(handle, len(tokens))
        return handle


class PublishesDrafts(PagedBlockManager):
    def speculate(self, sequence: int, drafts: Sequence[int]) -> None:
        super().append(sequence, drafts)
        self._record(sequence).committed = len(self._record(sequence).tokens)
        self._publish(self._record(sequence))
        self._record(sequence).drafts = len(drafts)


class ForgetsEpochs(PagedBlockManager):
    def new_epoch(self) -> None:
        pass


class PublishesOldEpochs(PagedBlockManager):
    def new_epoch(self) -> None:
        super().new_epoch()
        for record in self._sequences.values():
            record.epoch = self._epoch


class CutsANeighbour(PagedBlockManager):
    def append(self, sequence: int, tokens: Sequence[int]) -> None:
        super().append(sequence, tokens)
        first = next(iter(self._sequences.values()))
        first.table = first.table[::-1]


class LeaksOnRefusal(PagedBlockManager):
    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        try:
            return super().allocate(tokens, namespace)
        except OutOfBlocks:
            self._blocks.take(1)
            raise


class CountsEveryRelease(PagedBlockManager):
    extra = 0

    def free(self, sequence: int) -> None:
        if sequence in self._sequences:
            super().free(sequence)
        else:
            self.extra += 1

    def num_free_blocks(self) -> int:
        return super().num_free_blocks() + self.extra


class RollbackDoesNothing(PagedBlockManager):
    def rollback(self, sequence: int, count: int) -> None:
        if not 0 <= count <= self.num_tokens(sequence):
            raise ValueError("can't roll back")


class RollbackClips(PagedBlockManager):
    def rollback(self, sequence: int, count: int) -> None:
        super().rollback(sequence, min(max(count, 0), self.num_tokens(sequence)))


class AcceptsOneMore(PagedBlockManager):
    def accept(self, sequence: int, count: int) -> None:
        super().accept(sequence, min(count + 1, self._record(sequence).drafts))


class DropsOptimistically(PagedBlockManager):
    def _extend(self, record: SequenceRecord, tokens: Sequence[int]) -> None:
        super()._extend(record, tokens)
        record.committed = len(record.tokens)
        self._drop_below_window(record)


class NoStepFence(PagedBlockManager):
    def begin_step(self) -> None:
        pass

    def end_step(self) -> None:
        pass


SHARED_TAIL = (New((1, 2)), Fork(0), Append(0, (9,)))
REWRITTEN_HALF = (New((1, 2, 3, 4)), Rollback(0, 2), Append(0, (9,)))
REWRITTEN_FULL_BLOCK = (New((1, 2, 3, 4)), Rollback(0, 1), Append(0, (9,)))

BROKEN: list[tuple[str, type[PagedBlockManager], tuple[Operation, ...], CacheConfig]] = [
    ("kv/content", LosesCopies, SHARED_TAIL, CacheConfig()),
    ("kv/content", ForgetsEpochs, (New((1, 2, 3, 4)), Weights(), New((1, 2, 3, 4, 5))), CacheConfig()),
    ("kv/refcount", ForkWithoutReference, (New((1, 2)), Fork(0)), CacheConfig()),
    ("kv/partition", LeaksOnFree, (New((1, 2)), Free(0)), CacheConfig()),
    ("kv/partition", RefusesTheLastBlock, (New((1,) * 8),), CacheConfig(num_blocks=2)),
    # Both forks append the same token: no content check can see the torn block.
    ("kv/write-shared", NoCopyOnWrite, (*SHARED_TAIL[:2], Append(0, (9,)), Append(1, (9,))), CacheConfig()),
    ("kv/write-shared", NoCopyOnWrite, REWRITTEN_FULL_BLOCK, CacheConfig()),
    ("kv/copy-budget", CopiesTwice, SHARED_TAIL, CacheConfig()),
    ("kv/copy-order", CopiesTwice, SHARED_TAIL, CacheConfig()),
    ("kv/copy-order", CopiesInACycle, SHARED_TAIL, CacheConfig()),
    ("kv/waste", TakesABlockEarly, (New((1, 2, 3)), Append(0, (4,))), CacheConfig()),
    ("kv/waste", NamesABlockTwice, (New((1, 2, 3, 4, 5)),), CacheConfig()),
    ("kv/waste", NamesForeignBlocks, (New((1,)),), CacheConfig()),
    ("kv/cached-immutable", NoCopyOnWrite, REWRITTEN_HALF, CacheConfig()),
    ("kv/hit", HitsTheWholePrompt, (New((1, 2, 3, 4)), New((1, 2, 3, 4))), CacheConfig()),
    ("kv/hit", IgnoresNamespaces, (New((1, 2, 3, 4), "a"), New((1, 2, 3, 4, 5), "b")), CacheConfig()),
    ("kv/hit", ResetDoesNothing, (New((1, 2, 3, 4)), Free(0), Reset(), New((1, 2, 3, 4, 5))), CacheConfig()),
    ("kv/hit", ResetDoesNothing, (New((1, 2, 3, 4)), Reset(), New((1, 2, 3, 4, 5))), CacheConfig()),
    ("kv/publish", PublishesBeforeTheWrite, (Abort((1, 2, 3, 4)),), CacheConfig()),
    ("kv/publish", PublishesDrafts, (New((1, 2)), Speculate(0, (7, 7), 0)), CacheConfig()),
    ("kv/epoch", ForgetsEpochs, (New((1, 2, 3, 4)), Weights(), New((1, 2, 3, 4, 5))), CacheConfig()),
    ("kv/epoch", PublishesOldEpochs, (New((1, 2, 3)), Weights(), Append(0, (4,))), CacheConfig()),
    ("kv/bystanders", CutsANeighbour, (New((1,) * 5), New((2,)), Append(1, (3,))), CacheConfig()),
    ("kv/atomic", LeaksOnRefusal, (New((1,) * 9),), CacheConfig(num_blocks=2)),
    ("kv/release", CountsEveryRelease, (New((1,)), Free(0), FreeAgain()), CacheConfig()),
    ("kv/rollback", RollbackDoesNothing, (New((1, 2, 3)), Rollback(0, 1)), CacheConfig()),
    ("kv/rollback", RollbackClips, (New((1, 2, 3)), Rollback(0, 4)), CacheConfig()),
    ("kv/rollback", RollbackClips, (New((1, 2, 3)), Rollback(0, -1)), CacheConfig()),
    ("kv/accept", AcceptsOneMore, (New((1,)), Speculate(0, (2, 3), 1)), CacheConfig()),
    ("kv/window", DropsOptimistically, (New((1,) * 6), Append(0, (2, 3))), CacheConfig(window=4)),
    ("kv/in-flight", NoStepFence, (New((1, 2)), LateWrite(0, (3,), (7, 8))), CacheConfig(num_blocks=1)),
]

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


def run(manager: type[PagedBlockManager], operations: tuple[Operation, ...], config: CacheConfig) -> Outcome:
    return run_trace(manager, Trace(operations, config), ALL)


@pytest.mark.parametrize(("check", "manager", "operations", "config"), BROKEN)
def test_broken_manager_is_refuted(
    check: str, manager: type[PagedBlockManager], operations: tuple[Operation, ...], config: CacheConfig
) -> None:
    outcome = run(manager, operations, config)
    assert outcome.crash is None
    assert check in {violation.check for violation in outcome.violations}
    assert run(PagedBlockManager, operations, config).violations == []
    alone = frozenset(other.id for other in BLOCK_MANAGER_CHECKS if other.id != check)
    muted = run_trace(manager, Trace(operations, config), ALL, muted=alone)
    assert {violation.check for violation in muted.violations} == {check}


def test_every_rule_has_a_negative_control() -> None:
    assert {check.id for check in BLOCK_MANAGER_CHECKS} == {check for check, *_ in BROKEN}


def test_reference_passes_a_tour_of_all_operations() -> None:
    outcome = run(PagedBlockManager, TOUR, CacheConfig(num_blocks=12))
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


@settings(max_examples=100)
@given(traces(ALL - {"commit", "window", "in-flight"}, PROFILES["dev"]))
def test_manager_without_commit_is_not_refuted(trace: Trace) -> None:
    outcome = run_trace(WritesAtOnce, trace, ALL - {"commit", "window", "in-flight"})
    assert (outcome.violations, outcome.crash) == ([], None)


def test_declared_order_of_copies_is_respected() -> None:
    outcome = run(CopiesInADeclaredOrder, SHARED_TAIL, CacheConfig())
    assert "kv/copy-order" not in {violation.check for violation in outcome.violations}


def test_muted_violations_do_not_stop_the_run() -> None:
    trace = Trace((New((1, 2)), Free(0), New((3,))))
    stopped = run_trace(LeaksOnFree, trace, ALL)
    assert {violation.operation for violation in stopped.violations} == {1}
    assert stopped.operations == 2
    muted = run_trace(LeaksOnFree, trace, ALL, muted=frozenset({"kv/partition", "kv/refcount"}))
    assert (muted.violations, muted.operations) == ([], 3)


def test_checks_without_their_capability_are_silent() -> None:
    trace = Trace((New((1, 2)), Fork(0)))
    assert run_trace(ForkWithoutReference, trace, ALL - {"ref-counts"}).violations == []


def test_message_names_tokens_and_writers() -> None:
    [violation] = run(LosesCopies, (New((1, 2)), Fork(0), Append(0, (9,))), CacheConfig()).violations
    assert violation.expected == "token 1 after [] (sequence 0)"
    assert violation.found == "nothing (the slot was never written), in slot 0 of block 1"
    assert (violation.sequence, violation.position, violation.operation) == (0, 0, 2)


def test_exception_of_a_legal_call_is_a_crash_with_its_traceback() -> None:
    class Fails(PagedBlockManager):
        def append(self, sequence: int, tokens: Sequence[int]) -> None:
            raise RuntimeError("the pool is on fire")

    outcome = run(Fails, (New((1,)), Append(0, (2,)), Free(0)), CacheConfig())
    assert outcome.violations == []
    assert outcome.crash is not None
    assert "in append" in outcome.crash
    assert outcome.crash.endswith("RuntimeError: the pool is on fire")
    assert outcome.operations == 1


def test_fault_that_only_a_read_back_sees_is_found_at_the_next_one() -> None:
    operations = (
        New((1,) * 5),
        New((2,)),
        Append(1, (3,)),
        Append(1, (3,)),
        Append(1, (3,)),
        Append(1, (3,)),
    )
    outcome = run_trace(CutsANeighbour, Trace(operations), ALL, read_back_every=5)
    assert {violation.operation for violation in outcome.violations} == {4}


def test_needed_capabilities_of_a_trace() -> None:
    assert needed_capabilities(Trace((New((1,)), Append(0, (1,)), Free(0)))) == frozenset()
    operations = (New((1,), "a"), Fork(0), LateWrite(0, (1,), (2,)))
    assert needed_capabilities(Trace(operations)) == {"namespaces", "fork", "in-flight", "commit"}
