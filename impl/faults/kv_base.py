"""What faulty block managers are made from: the reference on other blocks, another pool, cache or queue."""

from tokenlaw.impl.paged.blocks import PhysicalBlocks
from tokenlaw.impl.paged.copies import CopyQueue
from tokenlaw.impl.paged.manager import PagedBlockManager
from tokenlaw.impl.paged.pool import BlockPool
from tokenlaw.impl.paged.prefix_cache import HashFunction, PrefixCache
from tokenlaw.spec.contracts import DEVICE, HOST, CacheConfig


class FaultyBlocks(PhysicalBlocks):
    """The blocks of the reference, from parts that a fault replaces.

    Attributes
    ----------
    pool, queue, prefix_cache : classes of the device pool, of the copy queue and of the prefix cache.
    """

    pool: type[BlockPool] = BlockPool
    queue: type[CopyQueue] = CopyQueue
    prefix_cache: type[PrefixCache] = PrefixCache

    def __init__(self, num_blocks: int, block_size: int, hash_function: HashFunction) -> None:
        super().__init__(num_blocks, block_size, hash_function)
        self.cache = self.prefix_cache(block_size, hash_function)
        self.device = self.pool(num_blocks, self.cache.blocks)
        self.copies = self.queue({DEVICE: self.device, HOST: self.host})


class FaultyManager(PagedBlockManager):
    """The reference manager on `FaultyBlocks`.

    Attributes
    ----------
    physical : class of its blocks.
    """

    physical: type[PhysicalBlocks] = FaultyBlocks

    def __init__(self, config: CacheConfig, hash_function: HashFunction = hash, lookahead: int = 0) -> None:
        super().__init__(config, hash_function, lookahead)
        self._blocks = self.physical(config.num_blocks, config.block_size, hash_function)
