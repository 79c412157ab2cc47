"""What faulty block managers are made from: the reference on other blocks, another pool, cache or queue."""

from collections.abc import Sequence

from tokenlaw.impl.paged.blocks import PhysicalBlocks
from tokenlaw.impl.paged.copies import CopyQueue
from tokenlaw.impl.paged.manager import PagedBlockManager
from tokenlaw.impl.paged.pool import BlockPool
from tokenlaw.impl.paged.prefix_cache import HashFunction, PrefixCache
from tokenlaw.spec.contracts import DEVICE, HOST, CacheConfig


class FaultyManager(PagedBlockManager):
    """The reference manager, from parts that a fault replaces.

    Attributes
    ----------
    physical, pool, queue, prefix_cache : classes of its blocks, of their device pool, of their copy queue and
        of their prefix cache.
    """

    physical: type[PhysicalBlocks] = PhysicalBlocks
    pool: type[BlockPool] = BlockPool
    queue: type[CopyQueue] = CopyQueue
    prefix_cache: type[PrefixCache] = PrefixCache

    def __init__(self, config: CacheConfig, hash_function: HashFunction = hash, lookahead: int = 0) -> None:
        super().__init__(config, hash_function, lookahead)
        self._blocks = blocks = self.physical(config.num_blocks, config.block_size, hash_function)
        blocks.cache = self.prefix_cache(config.block_size, hash_function)
        blocks.device = self.pool(config.num_blocks, blocks.cache.blocks)
        blocks.copies = self.queue({DEVICE: blocks.device, HOST: blocks.host})


class HeadsGoFirst(PhysicalBlocks):
    """The head of a table is released, and so evicted, before its tail."""

    def release_all(self, blocks: Sequence[int]) -> None:
        """Remove one reference from each device block, in order."""
        for block in blocks:
            self.release(block)
