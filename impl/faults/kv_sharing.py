"""Faults of copy-on-write, forks and copies: who owns a block, and what a diverging sequence gets."""

from collections.abc import Sequence

from tokenlaw.impl.faults.kv_base import FaultyManager
from tokenlaw.impl.paged.blocks import PhysicalBlocks
from tokenlaw.impl.paged.prefix_cache import HashFunction
from tokenlaw.spec.contracts import NO_BLOCK, CacheConfig


class _NeverShared(PhysicalBlocks):
    def is_shared(self, block: int) -> bool:
        return False


class NoCopyOnWrite(FaultyManager):
    """A shared tail is written where it is.

    Classes: C1.
    Report: Avarok-Cybersecurity/atlas 692, 1193.
    Effect: the other sequence reads foreign KV; invisible while both write equal tokens.
    Weakest check: kv/write-shared.
    """

    physical = _NeverShared


class _SharedByThree(PhysicalBlocks):
    def is_shared(self, block: int) -> bool:
        return self.device.references(block) > 2


class CopyOnWriteFromThree(FaultyManager):
    """A block of two sequences counts as private.

    Classes: C1.
    Report: jjang-ai/vmlx 198.
    Effect: the other of two sequences reads foreign KV.
    Weakest check: kv/write-shared.
    """

    physical = _SharedByThree


class _KeepsSource(PhysicalBlocks):
    def copy_on_write(self, block: int) -> int:
        private = super().copy_on_write(block)
        self.device.share(block)
        return private


class CopyOnWriteLeaks(FaultyManager):
    """After a divergence the old block keeps the reference of the sequence that left it.

    Classes: C5.
    Report: sgl-project/sglang 31616.
    Effect: the block never comes back.
    Weakest check: kv/refcount.
    """

    physical = _KeepsSource


class ForkWithoutReferences(FaultyManager):
    """A fork takes the blocks and counts nothing.

    Classes: C3.
    Report: apache/tvm 16666.
    Effect: blocks are freed under the sequence that is left.
    Weakest check: kv/refcount.
    """

    def fork(self, sequence: int) -> int:
        """An equal sequence, without references of its own."""
        return self._admit(self._usable(sequence).copy())


class ForkForgetsTail(FaultyManager):
    """A fork counts every block but the last.

    Classes: C3.
    Report: none known of this form; nearest is apache/tvm 16666 (a fork counts nothing).
    Effect: the tail is freed under the sequence that is left.
    Weakest check: kv/refcount.
    """

    def fork(self, sequence: int) -> int:
        """An equal sequence whose last block isn't counted."""
        child = super().fork(sequence)
        if blocks := self._record(child).blocks:
            self._blocks.device.release(blocks[-1])
        return child


class ForkSharesLookahead(FaultyManager):
    """A fork takes the blocks of the declared look-ahead over, and both sides write their next tokens there.

    Classes: C1.
    Report: none known of this form; nearest are Avarok-Cybersecurity/atlas 692, 1193 (a second writer gets a
    tail block).
    Effect: the other sequence reads foreign KV.
    Weakest check: kv/write-shared.
    """

    def __init__(self, config: CacheConfig, hash_function: HashFunction = hash, lookahead: int = 4) -> None:
        super().__init__(config, hash_function, lookahead)

    def fork(self, sequence: int) -> int:
        """An equal sequence on all blocks, those behind the length included."""
        child = self._usable(sequence).copy()
        for block in child.blocks:
            self._blocks.device.share(block)
        return self._admit(child)


class ForkLosesNamespace(FaultyManager):
    """A fork publishes under the default namespace.

    Classes: C9, C3.
    Report: vllm-project/vllm 30931.
    Effect: another adapter's KV is hit.
    Weakest check: kv/hit.
    """

    def fork(self, sequence: int) -> int:
        """An equal sequence with the root of no namespace."""
        child = super().fork(sequence)
        self._record(child).root = self._blocks.cache.root("", self._epoch)
        self._record(child).keys.clear()
        return child


class ReversesNeighbour(FaultyManager):
    """An append turns the table of another sequence round.

    Classes: C16.
    Report: tenstorrent/vllm-tt-plugin 104.
    Effect: a bystander reads its blocks in the wrong order.
    Weakest check: kv/bystanders.
    """

    def append(self, sequence: int, tokens: Sequence[int]) -> None:
        """Append, and disturb the sequence that was admitted first."""
        super().append(sequence, tokens)
        first = next(iter(self._sequences.values()))
        first.table = first.table[::-1]


class NamesOneBlock(FaultyManager):
    """The table names its first block for every position.

    Classes: C16.
    Report: alibaba/rtp-llm 1321.
    Effect: tokens of all blocks are written into one.
    Weakest check: kv/waste.
    """

    def block_table(self, sequence: int) -> list[int]:
        """The first block, as often as there are blocks."""
        table = super().block_table(sequence)
        return [next((block for block in table if block != NO_BLOCK), NO_BLOCK)] * len(table)


class NamesForeignBlocks(FaultyManager):
    """The table names blocks beyond the pool.

    Classes: C16, C18.
    Report: vllm-project/vllm-metal 526, 527.
    Effect: writes outside of the cache.
    Weakest check: kv/waste.
    """

    def block_table(self, sequence: int) -> list[int]:
        """Numbers that are a hundred too large."""
        return [block + 100 for block in super().block_table(sequence)]


class NamesBlocksInSevenBits(FaultyManager):
    """The table keeps seven bits of each id: those from 128 on wrap.

    Classes: C18.
    Report: none known of this form; nearest is vllm-project/vllm-xpu-kernels 445 (an integer too narrow at
    block 2066).
    Effect: once so many blocks are held, tokens are written into blocks that hold others.
    Weakest check: kv/refcount.
    """

    def block_table(self, sequence: int) -> list[int]:
        """Ids that have lost their high bits."""
        return [block if block == NO_BLOCK else block % 128 for block in super().block_table(sequence)]


SHARING_FAULTS = (
    ("no_copy_on_write", NoCopyOnWrite),
    ("copy_on_write_from_three", CopyOnWriteFromThree),
    ("copy_on_write_leaks", CopyOnWriteLeaks),
    ("fork_without_references", ForkWithoutReferences),
    ("fork_forgets_tail", ForkForgetsTail),
    ("fork_shares_lookahead", ForkSharesLookahead),
    ("fork_loses_namespace", ForkLosesNamespace),
    ("reverses_neighbour", ReversesNeighbour),
    ("names_one_block", NamesOneBlock),
    ("names_foreign_blocks", NamesForeignBlocks),
    ("names_blocks_in_seven_bits", NamesBlocksInSevenBits),
)
