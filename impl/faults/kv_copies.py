"""Faults of copies: which are decided, in which order they are made, what they read."""

from tokenlaw.impl.faults.kv_base import FaultyManager
from tokenlaw.impl.paged.blocks import PhysicalBlocks
from tokenlaw.impl.paged.copies import CopyQueue, Place
from tokenlaw.spec.contracts import BlockCopy, CacheConfig


class _EagerCopies(PhysicalBlocks):
    def extend(self, table: list[int], wanted: int, *, tail: int | None, purpose: str) -> None:
        copied = table[-1] if table and tail is None and self.is_shared(table[-1]) else None
        super().extend(table, wanted, tail=tail, purpose=purpose)
        if copied is not None and self.device.available():
            index = table.index(copied)
            table[index] = self.copy_on_write(copied)


class CopiesFullBlocks(FaultyManager):
    """A divergence at a block boundary copies the full block before it.

    Classes: C2.
    Report: NVIDIA/TensorRT-LLM 8813 (superfluous partial copies).
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
    Report: NVIDIA/TensorRT-LLM 8813, 9056.
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
    Report: NVIDIA/TensorRT-LLM 9056.
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


class CopiesFromWaitingBlocks(FaultyManager):
    """A copy out of a block that itself waits for its content reads that block, not the first source.

    Classes: C22.
    Report: ggml-org/llama.cpp 12253.
    Effect: the content depends on the order of the copies.
    Weakest check: kv/content.
    """

    queue = _ForgetfulQueue


class UnheldQueue(CopyQueue):
    """Copies whose sources aren't held."""

    def add(self, source: Place, destination: Place) -> None:
        """Decide a copy out of where the content is now."""
        self._source_of[destination] = self._source_of.get(source, source)

    def _unhold(self, place: Place) -> None:
        pass


class ReusesSourcesOfCopies(FaultyManager):
    """The source of a waiting copy is handed out before the copy is made.

    Classes: C22.
    Report: NVIDIA/TensorRT-LLM 15546.
    Effect: foreign KV is copied.
    Weakest check: kv/copy-order.
    """

    queue = UnheldQueue


BLOCK_COPY_FAULTS = (
    ("copies_full_blocks", CopiesFullBlocks),
    ("loses_copies", LosesCopies),
    ("copies_one_step_late", CopiesOneStepLate),
    ("copies_both_ways", CopiesBothWays),
    ("copies_from_waiting_blocks", CopiesFromWaitingBlocks),
    ("reuses_sources_of_copies", ReusesSourcesOfCopies),
)
