"""The calls of a block manager that concern the pool and no single sequence."""

from tokenlaw.impl.paged.blocks import PhysicalBlocks
from tokenlaw.impl.paged.prefix_cache import BlockKey
from tokenlaw.spec.contracts import BlockCopy


class PoolCalls:
    """What `PagedBlockManager` passes on to its blocks."""

    def __init__(self, blocks: PhysicalBlocks) -> None:
        self._blocks = blocks

    def num_free_blocks(self) -> int:
        """Blocks that can be handed out now: neither in a table, nor held by a copy or a step in flight."""
        return self._blocks.device.available()

    def ref_count(self, block: int) -> int:
        """Number of tables that hold the block."""
        return self._blocks.references(block)

    def cached_key(self, block: int) -> BlockKey | None:
        """The key under which the block can be hit; keys of different namespaces and epochs differ."""
        return self._blocks.key_of(block)

    def pending_copies(self) -> list[BlockCopy]:
        """Copies to apply, in any order, before anything is written; the call drains them."""
        return self._blocks.copies.drain()

    def evict(self, count: int) -> int:
        """Drop up to ``count`` idle cached blocks, the least recently released first; returns how many."""
        return self._blocks.evict(count)

    def reset_cache(self) -> None:
        """Make every cached block unreachable; tables stay as they are."""
        self._blocks.reset_cache()

    def begin_step(self) -> None:
        """Kernels are in flight from here to `end_step`: what is released in between isn't handed out."""
        self._blocks.begin_step()

    def end_step(self) -> None:
        """The kernels are done."""
        self._blocks.end_step()
