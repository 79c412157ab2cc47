"""What the block manager knows of one sequence."""

from dataclasses import dataclass, replace

from tokenlaw.impl.paged.prefix_cache import BlockKey
from tokenlaw.spec.contracts import NO_BLOCK


class UnknownSequence(KeyError):
    """A handle that was never given out, or whose sequence was freed."""

    # KeyError quotes its message as if it were a key; this is a sentence.
    __str__ = Exception.__str__


@dataclass(slots=True)
class SequenceRecord:
    """State of a live sequence.

    ``tokens`` are all scheduled tokens; the last ``drafts`` of them are not accepted yet; the KV of the first
    ``committed`` is written and final. ``table`` maps logical blocks to device blocks; its first ``dropped``
    entries were given back below the window. ``keys`` are the cache keys of its leading full committed
    blocks, also where another sequence's block is the one that can be hit. ``host`` are the host blocks of a
    swapped-out sequence, in the order of what its table held.
    """

    tokens: list[int]
    table: list[int]
    keys: list[BlockKey]
    root: BlockKey
    epoch: int
    cached_tokens: int
    committed: int
    drafts: int = 0
    dropped: int = 0
    host: list[int] | None = None

    def copy(self) -> "SequenceRecord":
        """An equal record that shares no list with this one."""
        return replace(self, tokens=self.tokens.copy(), table=self.table.copy(), keys=self.keys.copy())

    @property
    def settled(self) -> int:
        """Number of tokens that are not drafts."""
        return len(self.tokens) - self.drafts

    @property
    def last_key(self) -> BlockKey:
        """The key that the next block to be published continues."""
        return self.keys[-1] if self.keys else self.root

    @property
    def blocks(self) -> list[int]:
        """The device blocks that the sequence holds, in logical order."""
        return [block for block in self.table if block != NO_BLOCK]

    def truncate(self, length: int, blocks: int, block_size: int) -> list[int]:
        """Keep so many tokens, and so many blocks of the table; returns the other blocks."""
        surplus = [block for block in self.table[blocks:] if block != NO_BLOCK]
        del self.tokens[length:]
        del self.table[blocks:]
        del self.keys[length // block_size :]
        self.committed = min(self.committed, length)
        self.dropped = min(self.dropped, blocks)
        return surplus

    def drop_before(self, position: int, block_size: int) -> list[int]:
        """Take the blocks wholly below ``position`` out of the table; returns those that still were in it."""
        droppable = position // block_size
        surplus = self.table[self.dropped : droppable]
        self.table[self.dropped : droppable] = [NO_BLOCK] * len(surplus)
        self.dropped = max(self.dropped, droppable)
        return surplus
