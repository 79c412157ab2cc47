"""Faults of block managers that no trace showed when they were thought up; none distils a known report."""

from typing import Any

from tokenlaw.impl.faults.kv_base import FaultyManager
from tokenlaw.impl.paged.blocks import PhysicalBlocks
from tokenlaw.impl.paged.copies import CopyQueue
from tokenlaw.impl.paged.pool import BlockPool
from tokenlaw.impl.paged.prefix_cache import BlockKey, PrefixCache
from tokenlaw.spec.contracts import DEVICE, HOST


class _Digits(PrefixCache):
    def _child(self, parent: BlockKey, tokens: Any, index: int) -> BlockKey:
        own = tokens[index * self._block_size : (index + 1) * self._block_size]
        return BlockKey(parent, "".join(map(str, own)), self._hash_function)


class KeyOfDigits(FaultyManager):
    """A key joins the ids of its tokens in decimal, with nothing between them."""

    prefix_cache = _Digits


class _EighteenBits(PrefixCache):
    def _child(self, parent: BlockKey, tokens: Any, index: int) -> BlockKey:
        own = tokens[index * self._block_size : (index + 1) * self._block_size]
        return BlockKey(parent, tuple(token % 2**18 for token in own), self._hash_function)


class KeyOfEighteenBits(FaultyManager):
    """A key keeps 18 bits of a token."""

    prefix_cache = _EighteenBits


class _ShortRoot(PrefixCache):
    def root(self, namespace: str, epoch: int) -> BlockKey:
        return super().root(namespace[:8], epoch)


class NamespaceOfEightCharacters(FaultyManager):
    """A key keeps eight characters of the namespace."""

    prefix_cache = _ShortRoot


class _ForgetsWaiting(PhysicalBlocks):
    def move_out(self, blocks: Any) -> list[int]:
        for place in [place for place in self.copies._source_of if place[0] == HOST]:
            self.copies.cancel(place)
        return super().move_out(blocks)


class SecondSwapOutForgetsTheFirst(FaultyManager):
    """Each preemption begins the list of copies to the host anew."""

    physical = _ForgetsWaiting


class _KeepsHost(PhysicalBlocks):
    def move_out(self, blocks: Any) -> list[int]:
        if len(blocks) > self.host.available():
            while self.host.available():
                self.host.take()
        return super().move_out(blocks)


class RefusedSwapOutKeepsTheHost(FaultyManager):
    """A sequence that doesn't fit on the host keeps what it took there."""

    physical = _KeepsHost


class HostReleasedTwice(FaultyManager):
    """A second release of a sequence that was aborted on the host gives its blocks there back again."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._gone: dict[int, list[int]] = {}

    def free(self, sequence: int) -> None:
        record = self._sequences.get(sequence)
        if record is None and sequence in self._gone:
            self._blocks.host._empty.extend(self._gone.pop(sequence))
            return
        if record is not None and record.host:
            self._gone[sequence] = list(record.host)
        super().free(sequence)


class _ForgetsIdleAndLive(PhysicalBlocks):
    def reset_cache(self) -> None:
        while (block := self.device.pop_evictable()) is not None:
            self.cache.forget(block)
        for block in range(self.num_blocks):
            if self.device.references(block) > 0:
                self.cache.forget(block)


class ResetSkipsWaiting(FaultyManager):
    """A reset forgets idle and live blocks, but not those that wait to be copied to the host."""

    physical = _ForgetsIdleAndLive

    def new_epoch(self) -> None:
        self._epoch += 1
        PhysicalBlocks.reset_cache(self._blocks)


class _EvictsWaiting(PhysicalBlocks):
    def evict(self, count: int) -> int:
        dropped = super().evict(count)
        for block in list(self.cache.blocks):
            if dropped < count and not self.device.references(block) and not self.device.is_evictable(block):
                self.cache.forget(block)
                self.device._empty.append(block)
                dropped += 1
        return dropped


class EvictTakesWaiting(FaultyManager):
    """An eviction looks at reference counts, not at the copies that will still read a block."""

    physical = _EvictsWaiting


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


class KeepsKeysOfNothing(FaultyManager):
    """A rollback to nothing forgets the tokens and keeps their keys."""

    def rollback(self, sequence: int, count: int) -> None:
        record = self._usable(sequence)
        keys = record.keys.copy()
        super().rollback(sequence, count)
        if not record.tokens:
            record.keys = keys


class ForkRenewsTheEpoch(FaultyManager):
    """A fork belongs to the weights of now, whatever its parent was written with."""

    def fork(self, sequence: int) -> int:
        child = super().fork(sequence)
        self._record(child).epoch = self._epoch
        return child


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


HUNTED = [
    ("speculate in a batch", FreeWithDraftsLeaks, "kv/partition"),
    ("speculate in a batch", DraftsOfTheLast, "kv/accept"),
    ("batch of sharers", ReleasedDivergenceStillCopies, "kv/write-shared"),
    ("churn", KeyOfDigits, "kv/hit"),
    ("cross two prefixes", KeyOfEighteenBits, "kv/hit"),
    ("two namespaces", NamespaceOfEightCharacters, "kv/hit"),
    ("preempt several", SecondSwapOutForgetsTheFirst, "kv/content"),
    ("host too small", RefusedSwapOutKeepsTheHost, "kv/partition"),
    ("preempt several", HostReleasedTwice, "kv/content"),
    ("reset", ResetSkipsWaiting, "kv/hit"),
    ("evict", EvictTakesWaiting, "kv/partition"),
    ("abort", ReleasedOnceMore, "kv/release"),
    ("batch of sharers", CopiesKeyedBySource, "kv/content"),
    ("fork and diverge", LongDivergenceInPlace, "kv/write-shared"),
    ("fork many", ReferencesInFourBits, "kv/refcount"),
    ("fork many", HandlesOfARing, "kv/bystanders"),
    ("write late", StepFreesWhatWasHit, "kv/partition"),
    ("replace a cached block", KeepsKeysOfNothing, "kv/hit"),
    ("change weights", ForkRenewsTheEpoch, "kv/epoch"),
]
"""The phrase that was made for a fault, the fault, and a check that it breaks."""
