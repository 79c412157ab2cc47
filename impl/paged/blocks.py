"""The physical side of the block manager: two tiers of blocks, the prefix cache, copies, steps in flight."""

from collections.abc import Sequence

from tokenlaw.impl.paged.copies import CopyQueue
from tokenlaw.impl.paged.pool import BlockPool
from tokenlaw.impl.paged.prefix_cache import BlockKey, HashFunction, PrefixCache
from tokenlaw.spec.contracts import DEVICE, HOST, OutOfBlocks


class PhysicalBlocks:
    """Device and host blocks with the prefix cache and the copy queue on top of them.

    Parameters
    ----------
    num_blocks
        Blocks of the device tier, and of the host tier.
    block_size
        Tokens in a block.
    hash_function
        Hash of the prefix cache.

    Raises
    ------
    ValueError
        There are fewer than 0 blocks, or fewer than 1 token in a block.
    """

    def __init__(self, num_blocks: int, block_size: int, hash_function: HashFunction) -> None:
        if num_blocks < 0 or block_size < 1:
            raise ValueError(
                f"num_blocks is {num_blocks}, block_size is {block_size}; they must be at least 0 and 1"
            )
        self.cache = PrefixCache(block_size, hash_function)
        self.device = BlockPool(num_blocks, self.cache.blocks)
        self.host = BlockPool(num_blocks)
        self.copies = CopyQueue({DEVICE: self.device, HOST: self.host})
        self.num_blocks = num_blocks
        self._released_in_step: list[int] | None = None

    def references(self, block: int) -> int:
        """Number of tables that hold a device block; `ValueError` if there is no such block."""
        return self.device.references(self._in_pool(block))

    def key_of(self, block: int) -> BlockKey | None:
        """Key under which a device block can be hit; `ValueError` if there is no such block."""
        return self.cache.key_of(self._in_pool(block))

    def require(self, needed: int, purpose: str, spoken_for: int = 0) -> None:
        """Raise `OutOfBlocks` unless ``needed`` device blocks can be taken besides those ``spoken_for``."""
        available = self.device.available() - spoken_for
        if needed > available:
            raise OutOfBlocks(f"{purpose} needs {needed} more device blocks; {available} are available")

    def take(self, count: int) -> list[int]:
        """Device blocks with one reference each and without a key; the caller has called `require`."""
        blocks = [self.device.take() for _ in range(count)]
        for block in blocks:
            self.cache.forget(block)
        return blocks

    def share_and_take(self, hits: list[int], count: int, purpose: str) -> list[int]:
        """A table of cached blocks, shared from now on, and ``count`` new ones.

        Raises
        ------
        OutOfBlocks
            The new blocks don't fit. The message says ``purpose``; nothing has changed.
        """
        # An idle block that is hit is available before, and not after.
        idle_hits = sum(self.device.is_evictable(block) for block in hits)
        self.require(count, purpose, spoken_for=idle_hits)
        for block in hits:  # before anything is taken, since taking evicts
            self.device.share(block)
        return hits + self.take(count)

    def extend(self, table: list[int], wanted: int, *, tail: int | None, purpose: str) -> None:
        """Lengthen a table to ``wanted`` blocks; afterwards it is the only owner of what will be written.

        ``tail`` is the index in the table of a partly filled block, or None. It will be written too: it is
        copied if it is shared, else it loses its key.

        Raises
        ------
        OutOfBlocks
            The new blocks, the copy included, don't fit. The message says ``purpose``; nothing has changed.
        """
        copies_tail = tail is not None and self.is_shared(table[tail])
        new = max(0, wanted - len(table))
        self.require(new + copies_tail, purpose)
        if tail is not None and copies_tail:
            table[tail] = self.copy_on_write(table[tail])
        elif tail is not None:
            # After a rollback the tail may be a full cached block, which is about to be overwritten.
            self.cache.forget(table[tail])
        table += self.take(new)

    def is_shared(self, block: int) -> bool:
        """Whether more than one table holds the device block."""
        return self.device.references(block) > 1

    def private_part(self, table: Sequence[int], start: int) -> int:
        """Length of the table up to the first block from ``start`` on that other tables hold as well."""
        shared = (index for index in range(start, len(table)) if self.is_shared(table[index]))
        return next(shared, len(table))

    def copy_on_write(self, block: int) -> int:
        """A private block that will hold the content of a shared one, and takes its reference."""
        (private,) = self.take(1)
        self.copies.add((DEVICE, block), (DEVICE, private))
        self.release(block)
        return private

    def release(self, block: int) -> None:
        """Remove one reference from a device block."""
        if self.device.references(block) == 1:
            self.copies.cancel((DEVICE, block))
            if self._released_in_step is not None:
                self.device.hold(block)
                self._released_in_step.append(block)
        self.device.release(block)

    def release_all(self, blocks: Sequence[int]) -> None:
        """Remove one reference from each device block of a part of a table.

        Tails first: what is released first is evicted first, and a head without its tail can still be hit
        (report: LMCache #443).
        """
        for block in reversed(blocks):
            self.release(block)

    def release_host(self, blocks: Sequence[int]) -> None:
        """Give host blocks back."""
        for block in blocks:
            self.copies.cancel((HOST, block))
            self.host.release(block)

    def move_out(self, blocks: Sequence[int]) -> list[int]:
        """Decide copies of device blocks to the host, release them there, and return the host blocks.

        Raises
        ------
        OutOfBlocks
            The host tier is too full.
        """
        if len(blocks) > self.host.available():
            available = self.host.available()
            raise OutOfBlocks(f"swapping out needs {len(blocks)} host blocks; {available} are available")
        moved = [self.host.take() for _ in blocks]
        for source, destination in zip(blocks, moved, strict=True):
            self.copies.add((DEVICE, source), (HOST, destination))
        self.release_all(blocks)
        return moved

    def move_in(self, blocks: Sequence[int]) -> list[int]:
        """Decide copies of host blocks into new device blocks, release them, and return the new blocks.

        Raises
        ------
        OutOfBlocks
            The device tier is too full.
        """
        self.require(len(blocks), "swapping in")
        moved = self.take(len(blocks))
        for source, destination in zip(blocks, moved, strict=True):
            self.copies.add((HOST, source), (DEVICE, destination))
        self.release_host(blocks)
        return moved

    def evict(self, count: int) -> int:
        """Drop up to ``count`` idle cached blocks; returns how many there were.

        Raises
        ------
        ValueError
            The number is negative.
        """
        if count < 0:
            raise ValueError(f"can't evict {count} blocks: the number must not be negative")
        for evicted in range(count):
            block = self.device.pop_evictable()
            if block is None:
                return evicted
            self.cache.forget(block)
        return count

    def reset_cache(self) -> None:
        """Make every cached block unreachable; references stay as they are."""
        while self.device.pop_evictable() is not None:
            pass
        self.cache.clear()

    def begin_step(self) -> None:
        """From now on a block that loses its last reference is held until `end_step`.

        Kernels in flight may still write it (reports: vLLM #45357, SGLang #35049).
        """
        if self._released_in_step is not None:
            raise RuntimeError("a step is in flight already: call end_step() first")
        self._released_in_step = []

    def end_step(self) -> None:
        """The kernels are done."""
        if self._released_in_step is None:
            raise RuntimeError("no step is in flight: call begin_step() first")
        released, self._released_in_step = self._released_in_step, None
        for block in released:
            self.device.unhold(block)

    def _in_pool(self, block: int) -> int:
        if not 0 <= block < self.num_blocks:
            raise ValueError(f"block {block} is not in the pool: ids are 0 .. {self.num_blocks - 1}")
        return block
