"""Faults of steps, copies and counters of block managers, unseen by traces when they were thought up."""

from typing import Any

from tokenlaw.impl.faults.kv_base import FaultyManager
from tokenlaw.impl.paged.blocks import PhysicalBlocks
from tokenlaw.impl.paged.copies import CopyQueue
from tokenlaw.impl.paged.pool import BlockPool
from tokenlaw.spec.contracts import DEVICE, HOST


class ReleasedOnceMore(FaultyManager):
    """A request that was never written is cleaned up by a second path, which counts a block more."""

    more = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unwritten: set[int] = set()

    def free(self, sequence: int) -> None:
        record = self._sequences.get(sequence)
        if record is None:
            self.more += sequence in self._unwritten
            self._unwritten.discard(sequence)
            raise KeyError(sequence)
        if record.committed < len(record.tokens):
            self._unwritten.add(sequence)
        super().free(sequence)

    def num_free_blocks(self) -> int:
        return super().num_free_blocks() + self.more


class _OneCopyASource(CopyQueue):
    def add(self, source: Any, destination: Any) -> None:
        for known, other in list(self._source_of.items()):
            if known[0] == destination[0] == DEVICE and other == source:
                self.cancel(known)
        super().add(source, destination)


class CopiesKeyedBySource(FaultyManager):
    """The copies of a step map a source to one destination."""

    queue = _OneCopyASource


class _LongInPlace(PhysicalBlocks):
    def extend(self, table: list[int], wanted: int, *, tail: int | None, purpose: str) -> None:
        new = wanted - len(table)
        if tail is not None and new >= 3 and self.is_shared(table[tail]):
            self.require(new, purpose)
            table += self.take(new)
            return
        super().extend(table, wanted, tail=tail, purpose=purpose)


class LongDivergenceInPlace(FaultyManager):
    """What needs three further blocks doesn't copy the shared tail."""

    physical = _LongInPlace


class _FourBits(BlockPool):
    def share(self, block: int) -> None:
        if self._references[block] < 15:
            super().share(block)


class ReferencesInFourBits(FaultyManager):
    """A reference count ends at 15."""

    pool = _FourBits


class HandlesOfARing(FaultyManager):
    """The handles of requests are 0 to 31, round and round."""

    def allocate(self, tokens: Any, namespace: str = "") -> int:
        self._next_handle %= 32
        return super().allocate(tokens, namespace)

    def fork(self, sequence: int) -> int:
        self._next_handle %= 32
        return super().fork(sequence)


class _FreesWhatWasHit(PhysicalBlocks):
    def end_step(self) -> None:
        released, self._released_in_step = self._released_in_step or [], None
        for block in released:
            self.device._holds[block] -= 1
            if block in self.cache.blocks:
                self.device._evictable[block] = None
            elif not self.device._references[block] and not self.device._holds[block]:
                self.device._empty.append(block)


class _SharesHeld(BlockPool):
    def can_share(self, block: int) -> bool:
        return True

    def share(self, block: int) -> None:
        self._evictable.pop(block, None)
        self._references[block] += 1


class StepFreesWhatWasHit(FaultyManager):
    """A block that was released in a step and hit in it goes to the idle ones at the end of the step."""

    physical, pool = _FreesWhatWasHit, _SharesHeld


class FreeWithDraftsLeaks(FaultyManager):
    """A release forgets the drafts first, and with them the blocks that they took."""

    def free(self, sequence: int) -> None:
        record = self._record(sequence)
        if record.drafts:
            record.truncate(record.settled, self._blocks_for(record.settled), self._block_size)
        super().free(sequence)


class DraftsOfTheLast(FaultyManager):
    """How many drafts there are is kept once for all sequences."""

    last = 0

    def speculate(self, sequence: int, drafts: Any) -> None:
        super().speculate(sequence, drafts)
        self.last = len(drafts)

    def accept(self, sequence: int, count: int) -> None:
        record = self._record(sequence)
        record.drafts = min(self.last, len(record.tokens))
        super().accept(sequence, min(count, record.drafts))


class _NeverCancels(CopyQueue):
    def cancel(self, destination: Any) -> None:
        if destination[0] == HOST:
            super().cancel(destination)


class ReleasedDivergenceStillCopies(FaultyManager):
    """The copy of a sequence that is released before it was made is made into somebody else's block."""

    queue = _NeverCancels
