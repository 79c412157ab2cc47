"""Faults of copy-on-write, forks and copies: who owns a block, and what a diverging sequence gets."""

from collections.abc import Sequence

from tokenlaw.impl.faults.kv_base import FaultyBlocks, FaultyManager
from tokenlaw.impl.paged.copies import CopyQueue, Place
from tokenlaw.spec.contracts import NO_BLOCK, BlockCopy, CacheConfig


class _NeverShared(FaultyBlocks):
    def is_shared(self, block: int) -> bool:
        return False


class NoCopyOnWrite(FaultyManager):
    """A shared tail is written where it is.

    Classes: C1.
    Report: Avarok atlas 692, 1193.
    Effect: the other sequence reads foreign KV; invisible while both write equal tokens.
    Weakest check: kv/write-shared.
    """

    physical = _NeverShared


class _SharedByThree(FaultyBlocks):
    def is_shared(self, block: int) -> bool:
        return self.device.references(block) > 2


class CopyOnWriteFromThree(FaultyManager):
    """A block of two sequences counts as private.

    Classes: C1.
    Report: vmlx 198.
    Effect: the other of two sequences reads foreign KV.
    Weakest check: kv/write-shared.
    """

    physical = _SharedByThree


class _EagerCopies(FaultyBlocks):
    def extend(self, table: list[int], wanted: int, *, tail: int | None, purpose: str) -> None:
        copied = table[-1] if table and tail is None and self.is_shared(table[-1]) else None
        super().extend(table, wanted, tail=tail, purpose=purpose)
        if copied is not None and self.device.available():
            index = table.index(copied)
            table[index] = self.copy_on_write(copied)


class CopiesFullBlocks(FaultyManager):
    """A divergence at a block boundary copies the full block before it.

    Classes: C2.
    Report: TensorRT-LLM 8813 (superfluous partial copies).
    Effect: none on content; a copy and a block are lost.
    Weakest check: kv/copy-budget.
    """

    physical = _EagerCopies


class LosesCopies(FaultyManager):
    """Copies are decided, and the list that the caller gets is empty.

    Classes: C2.
    Report: vllm-project/vllm 55112.
    Effect: the private block holds nothing of the shared one.
    Weakest check: kv/content.
    """

    def pending_copies(self) -> list[BlockCopy]:
        """Nothing, whatever waits."""
        super().pending_copies()
        return []


class CopiesOneStepLate(FaultyManager):
    """Copies come with the list of the next step, after the write.

    Classes: C2.
    Report: TensorRT-LLM 8813, 9056.
    Effect: the copy overwrites what was written meanwhile.
    Weakest check: kv/content.
    """

    def __init__(self, config: CacheConfig) -> None:
        super().__init__(config)
        self._late: list[BlockCopy] = []

    def pending_copies(self) -> list[BlockCopy]:
        """What was decided before the last call."""
        late, self._late = self._late, super().pending_copies()
        return late


class CopiesBothWays(FaultyManager):
    """The list of copies holds a cycle.

    Classes: C2.
    Report: TensorRT-LLM 9056.
    Effect: what is read depends on the order of the copies.
    Weakest check: kv/copy-order.
    """

    def pending_copies(self) -> list[BlockCopy]:
        """Every copy, and its reverse."""
        copies = super().pending_copies()
        return copies + [BlockCopy(copy.destination, copy.source) for copy in copies]


class _ForgetfulQueue(CopyQueue):
    def add(self, source: Place, destination: Place) -> None:
        self._source_of[destination] = source
        tier, block = source
        self._pools[tier].hold(block)


class _WithForgetfulQueue(FaultyBlocks):
    queue = _ForgetfulQueue


class CopiesFromWaitingBlocks(FaultyManager):
    """A copy out of a block that itself waits for its content reads that block, not the first source.

    Classes: C22.
    Report: ggml-org/llama.cpp 12253.
    Effect: the content depends on the order of the copies.
    Weakest check: kv/content.
    """

    physical = _WithForgetfulQueue


class _UnheldQueue(CopyQueue):
    def add(self, source: Place, destination: Place) -> None:
        self._source_of[destination] = self._source_of.get(source, source)

    def _unhold(self, place: Place) -> None:
        pass


class _WithUnheldQueue(FaultyBlocks):
    queue = _UnheldQueue


class ReusesSourcesOfCopies(FaultyManager):
    """The source of a waiting copy is handed out before the copy is made.

    Classes: C22.
    Report: TensorRT-LLM 15546.
    Effect: foreign KV is copied.
    Weakest check: kv/copy-order.
    """

    physical = _WithUnheldQueue


class _KeepsSource(FaultyBlocks):
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
    Report: TensorRT-LLM 15444.
    Effect: the tail is freed under the sequence that is left.
    Weakest check: kv/refcount.
    """

    def fork(self, sequence: int) -> int:
        """An equal sequence whose last block isn't counted."""
        child = super().fork(sequence)
        if blocks := self._record(child).blocks:
            self._blocks.device.release(blocks[-1])
        return child


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
    Report: tt-metal vLLM plugin 104.
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
    Report: rtp-llm 1321.
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
    Report: vllm-metal 526, 527.
    Effect: writes outside of the cache.
    Weakest check: kv/waste.
    """

    def block_table(self, sequence: int) -> list[int]:
        """Numbers that are a hundred too large."""
        return [block + 100 for block in super().block_table(sequence)]


SHARING_FAULTS = (
    ("no_copy_on_write", NoCopyOnWrite),
    ("copy_on_write_from_three", CopyOnWriteFromThree),
    ("copies_full_blocks", CopiesFullBlocks),
    ("loses_copies", LosesCopies),
    ("copies_one_step_late", CopiesOneStepLate),
    ("copies_both_ways", CopiesBothWays),
    ("copies_from_waiting_blocks", CopiesFromWaitingBlocks),
    ("reuses_sources_of_copies", ReusesSourcesOfCopies),
    ("copy_on_write_leaks", CopyOnWriteLeaks),
    ("fork_without_references", ForkWithoutReferences),
    ("fork_forgets_tail", ForkForgetsTail),
    ("fork_loses_namespace", ForkLosesNamespace),
    ("reverses_neighbour", ReversesNeighbour),
    ("names_one_block", NamesOneBlock),
    ("names_foreign_blocks", NamesForeignBlocks),
)
