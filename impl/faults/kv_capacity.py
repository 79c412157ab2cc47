"""Faults of capacity: how many blocks there are, and how many a sequence takes."""

from collections.abc import Hashable, Sequence

from tokenlaw.impl.faults.kv_base import FaultyManager
from tokenlaw.impl.paged.sequence import SequenceRecord
from tokenlaw.spec.contracts import OutOfBlocks


class RefusesTheLastBlock(FaultyManager):
    """A prompt that fills the pool exactly is refused.

    Classes: C6.
    Report: none known of this form; nearest is NVIDIA/Megatron-LM 5822 (a pool that is just full).
    Effect: one block is never used.
    Weakest check: kv/partition.
    """

    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        """Refuse what needs every free block."""
        if 0 < self._blocks_for(len(tokens)) == self.num_free_blocks():
            raise OutOfBlocks("exactly full")
        return super().allocate(tokens, namespace)


class CountsCachedTwice(FaultyManager):
    """Blocks that are cached and idle count as free twice.

    Classes: C6.
    Report: sgl-project/sglang 35270; NVIDIA/Megatron-LM 5822.
    Effect: admission promises blocks that aren't there.
    Weakest check: kv/partition.
    """

    def num_free_blocks(self) -> int:
        """Free blocks, and the cached ones once more."""
        idle = sum(self._blocks.device.is_evictable(block) for block in range(self._blocks.num_blocks))
        return super().num_free_blocks() + idle


class TakesABlockEarly(FaultyManager):
    """A full last block already brings the next one.

    Classes: C13.
    Report: pegainfer-project/pegainfer 291, 350.
    Effect: a page without a token stands in the table.
    Weakest check: kv/waste.
    """

    def _blocks_for(self, length: int) -> int:
        return length // self._block_size + 1


class TakesABlockLate(FaultyManager):
    """The block comes one token too late.

    Classes: C13.
    Report: vllm-project/vllm 16370.
    Effect: a token has no slot.
    Weakest check: kv/waste.
    """

    def _blocks_for(self, length: int) -> int:
        return -(-max(length - 1, 0) // self._block_size) or int(length > 0)


class TakesOneBlockAtMost(FaultyManager):
    """However many tokens are appended, one block is added.

    Classes: C6, C13.
    Report: ROCm/ATOM 250.
    Effect: the last tokens have no slots.
    Weakest check: kv/waste.
    """

    def _extend(self, record: SequenceRecord, tokens: Sequence[int]) -> None:
        before = len(record.table)
        super()._extend(record, tokens)
        surplus = record.table[before + 1 :]
        if surplus:
            del record.table[before + 1 :]
            self._blocks.release_all(surplus)


class KeepsMoreThanItDeclares(FaultyManager):
    """A rejection keeps blocks for eight more tokens, and nobody is told.

    Classes: C12.
    Report: none known of this form; nearest is sgl-project/sglang 13826 (blocks of drafts stay held).
    Effect: blocks that nobody may need are held.
    Weakest check: kv/waste.
    """

    def accept(self, sequence: int, count: int) -> None:
        """Accept with a look-ahead that isn't declared."""
        self.lookahead = 8
        super().accept(sequence, count)
        self.lookahead = 0


CAPACITY_FAULTS = (
    ("refuses_the_last_block", RefusesTheLastBlock),
    ("counts_cached_twice", CountsCachedTwice),
    ("takes_a_block_early", TakesABlockEarly),
    ("takes_a_block_late", TakesABlockLate),
    ("takes_one_block_at_most", TakesOneBlockAtMost),
    ("keeps_more_than_it_declares", KeepsMoreThanItDeclares),
)
