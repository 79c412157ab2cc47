"""Every rule of block managers refutes a manager that breaks it: one negative control each at least."""

from collections.abc import Hashable, Sequence

import pytest

from tokenlaw.impl.paged import REFERENCE, PagedBlockManager
from tokenlaw.impl.paged.sequence import SequenceRecord
from tokenlaw.properties.block_manager_run import run_trace
from tokenlaw.properties.rules import BLOCK_MANAGER_CHECKS
from tokenlaw.properties.running import Outcome
from tokenlaw.properties.trace import (
    Abort,
    Append,
    Fork,
    Free,
    FreeAgain,
    LateWrite,
    New,
    Operation,
    Reset,
    Rollback,
    Speculate,
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


class PublishesPartialBlocks(PagedBlockManager):
    def _publish(self, record: SequenceRecord) -> None:
        for index in range(len(record.keys), self._blocks_for(record.committed)):
            parent = record.keys[-1] if record.keys else record.root
            key = self._blocks.cache.publish(parent, record.tokens, index, record.table[index])
            record.keys.append(key)


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
    ("kv/publish", PublishesPartialBlocks, (New((1, 2)),), CacheConfig()),
    # The reused block still holds 3 and 4, so content alone looks full and right.
    (
        "kv/publish",
        PublishesPartialBlocks,
        (New((1, 2, 3, 4)), Free(0), New((1, 2))),
        CacheConfig(num_blocks=1),
    ),
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


def test_declared_order_of_copies_is_respected() -> None:
    outcome = run(CopiesInADeclaredOrder, SHARED_TAIL, CacheConfig())
    assert "kv/copy-order" not in {violation.check for violation in outcome.violations}
