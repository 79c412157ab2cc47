"""A small block manager of the kind that one writes on a Friday, with one fault: forks tear.

``tokenlaw audit torn_manager:BlockManager`` (from this folder) refutes it. The fault: a fork shares the
partly filled last block, and nobody copies it before the next write (Avarok atlas #692 is a public example).
Both sides then write into one block, and while they happen to write equal tokens no output shows it.
"""

from collections.abc import Sequence

from tokenlaw import CacheConfig, OutOfBlocks


class BlockManager:
    """Block tables with reference counts; no prefix cache."""

    def __init__(self, config: CacheConfig) -> None:
        self._block_size = config.block_size
        self._free = list(range(config.num_blocks))
        self._references = [0] * config.num_blocks
        self._tables: dict[int, list[int]] = {}
        self._lengths: dict[int, int] = {}
        self._next = 0

    def allocate(self, tokens: Sequence[int]) -> int:
        """Admit a sequence and make slots for its tokens."""
        sequence, self._next = self._next, self._next + 1
        self._tables[sequence], self._lengths[sequence] = [], 0
        try:
            self.append(sequence, tokens)
        except OutOfBlocks:
            del self._tables[sequence], self._lengths[sequence]
            raise
        return sequence

    def append(self, sequence: int, tokens: Sequence[int]) -> None:
        """Make slots for further tokens."""
        length = self._lengths[sequence] + len(tokens)
        table = self._tables[sequence]
        missing = -(-length // self._block_size) - len(table)
        if missing > len(self._free):
            raise OutOfBlocks(f"{missing} blocks needed, {len(self._free)} free")
        for _ in range(missing):
            block = self._free.pop()
            self._references[block] = 1
            table.append(block)
        self._lengths[sequence] = length

    def fork(self, sequence: int) -> int:
        """An equal sequence; here the last block should have been copied, or marked for a copy."""
        child, self._next = self._next, self._next + 1
        self._tables[child] = list(self._tables[sequence])
        self._lengths[child] = self._lengths[sequence]
        for block in self._tables[child]:
            self._references[block] += 1
        return child

    def free(self, sequence: int) -> None:
        """Release the sequence; a second release raises KeyError."""
        del self._lengths[sequence]
        for block in self._tables.pop(sequence):
            self._references[block] -= 1
            if self._references[block] == 0:
                self._free.append(block)

    def block_table(self, sequence: int) -> list[int]:
        """Physical block ids in logical order."""
        return list(self._tables[sequence])

    def num_free_blocks(self) -> int:
        """Blocks that nobody holds."""
        return len(self._free)

    def ref_count(self, block: int) -> int:
        """How many tables hold the block."""
        return self._references[block]
