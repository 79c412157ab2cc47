"""A pool of physical blocks: reference counts, holds, and the order in which idle blocks are handed out.

Blocks that carry nothing are taken first, then cached blocks that no table holds, the least recently released
one first. vLLM's free queue has that order too (``FreeKVCacheBlockQueue``), but for one thing: it is a single
queue, so that there a cached block may go although a block that carries nothing waits behind it.
"""

from collections import OrderedDict
from collections.abc import Container


class BlockPool:
    """Who holds which block.

    A block is *live* while a table holds it, *held* while something else still reads or writes it (a copy
    that waits, a kernel in flight), and *idle* otherwise. Only idle blocks are handed out.

    Parameters
    ----------
    num_blocks
        Number of blocks; ids are 0 .. num_blocks - 1.
    cached
        The blocks whose content can be hit, kept by somebody else. An idle block that is among them waits at
        the end of the line, because its content is worth something.
    """

    def __init__(self, num_blocks: int, cached: Container[int] = ()) -> None:
        self._cached = cached
        self._references = [0] * num_blocks
        self._holds = [0] * num_blocks
        self._empty = list(range(num_blocks - 1, -1, -1))
        self._evictable: OrderedDict[int, None] = OrderedDict()

    def available(self) -> int:
        """Number of idle blocks, cached ones included."""
        return len(self._empty) + len(self._evictable)

    def references(self, block: int) -> int:
        """Number of tables that hold the block."""
        return self._references[block]

    def is_evictable(self, block: int) -> bool:
        """Whether the block is cached and idle."""
        return block in self._evictable

    def can_share(self, block: int) -> bool:
        """Whether a table may join the block: it is live, or cached and idle (but not held)."""
        return self._references[block] > 0 or block in self._evictable

    def take(self) -> int:
        """Hand out an idle block with one reference; the caller makes sure that one is `available`.

        It may be a cached block: the caller drops its key before it uses the block.
        """
        block = self._empty.pop() if self._empty else self._evictable.popitem(last=False)[0]
        self._references[block] = 1
        return block

    def share(self, block: int) -> None:
        """Add a reference to a block for which `can_share` is true."""
        if self._references[block] == 0:
            del self._evictable[block]
        self._references[block] += 1

    def release(self, block: int) -> None:
        """Remove one reference; without any and without holds the block is idle."""
        self._references[block] -= 1
        self._settle(block)

    def hold(self, block: int) -> None:
        """Keep a live or held block from being handed out until `unhold`, whoever releases it."""
        self._holds[block] += 1

    def unhold(self, block: int) -> None:
        """Take one hold back."""
        self._holds[block] -= 1
        self._settle(block)

    def pop_evictable(self) -> int | None:
        """The next cached block to lose its content, now counted as empty; None if there is none."""
        if not self._evictable:
            return None
        block, _ = self._evictable.popitem(last=False)
        self._empty.append(block)
        return block

    def _settle(self, block: int) -> None:
        if self._references[block] or self._holds[block]:
            return
        if block in self._cached:
            self._evictable[block] = None
        else:
            self._empty.append(block)
