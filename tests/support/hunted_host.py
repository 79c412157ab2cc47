"""Faults of the host tier, and of copies that wait for it, unseen by traces when they were thought up."""

from typing import Any

from tokenlaw.impl.faults.kv_base import FaultyManager
from tokenlaw.impl.paged.blocks import PhysicalBlocks
from tokenlaw.spec.contracts import DEVICE, HOST, OutOfBlocks


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


class _SharesHost(PhysicalBlocks):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.known: dict[int, int] = {}

    def move_out(self, blocks: Any) -> list[int]:
        if len(blocks) > self.host.available():
            raise OutOfBlocks("the host")
        moved = []
        for block in blocks:
            there = self.known.get(block)
            if there is None:
                there = self.host.take()
                self.copies.add((DEVICE, block), (HOST, there))
                if self.device.references(block) > 1:
                    self.known[block] = there
            moved.append(there)
        self.release_all(blocks)
        return moved

    def release(self, block: int) -> None:
        super().release(block)
        if not self.device.references(block):
            self.known.pop(block, None)

    def release_host(self, blocks: Any) -> None:
        for block in blocks:
            if self.host.references(block):
                self.copies.cancel((HOST, block))
                self.host.release(block)


class SharedHostBlocksUncounted(FaultyManager):
    """A block that went to the host with a sibling isn't copied again, and counted once for both."""

    physical = _SharesHost
