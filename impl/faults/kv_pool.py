"""Faults of the pool: releases, leaks, capacity, what a refused call leaves behind."""

from collections.abc import Hashable, Sequence

from tokenlaw.impl.faults.kv_base import FaultyManager
from tokenlaw.impl.paged.pool import BlockPool
from tokenlaw.impl.paged.sequence import SequenceRecord
from tokenlaw.spec.contracts import OutOfBlocks


class _FreesAnyway(BlockPool):
    def release(self, block: int) -> None:
        self._references[block] -= 1
        if block not in self._empty and block not in self._evictable:
            self._empty.append(block)


class FreesSharedBlocks(FaultyManager):
    """A block is free as soon as one of its sequences goes.

    Classes: C4.
    Report: vllm-project/vllm 1556, 1584, 3347.
    Effect: the block of a live sequence is handed out.
    Weakest check: kv/partition.
    """

    pool = _FreesAnyway


class FreeForgetsTail(FaultyManager):
    """Freeing a sequence forgets its last block.

    Classes: C5.
    Report: sgl-project/sglang 13826.
    Effect: a block is lost each time.
    Weakest check: kv/refcount.
    """

    def free(self, sequence: int) -> None:
        """Release all blocks but the last."""
        if blocks := self._record(sequence).blocks:
            self._blocks.device.share(blocks[-1])
        super().free(sequence)


class LeaksOnRefusal(FaultyManager):
    """A prompt that doesn't fit takes a block with it.

    Classes: C5.
    Report: huggingface/transformers 46117; ggml-org/llama.cpp 12695.
    Effect: a block is lost with each refusal.
    Weakest check: kv/atomic.
    """

    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        """Refuse, and keep a block."""
        try:
            return super().allocate(tokens, namespace)
        except OutOfBlocks:
            if self.num_free_blocks():
                self._blocks.take(1)
            raise


class AppendsBeforeItRefuses(FaultyManager):
    """An append that doesn't fit has changed the length.

    Classes: C5.
    Report: ml-explore/mlx-lm 405.
    Effect: later tokens are written one position off.
    Weakest check: kv/atomic.
    """

    def _extend(self, record: SequenceRecord, tokens: Sequence[int]) -> None:
        length = len(record.tokens)
        try:
            super()._extend(record, tokens)
        except OutOfBlocks:
            record.tokens = record.tokens[:length] + list(tokens)
            raise


class CountsEveryRelease(FaultyManager):
    """Freeing a sequence twice adds a block to the counter of free ones.

    Classes: C4.
    Report: vllm-project/vllm 42571; UbiquitousLearning/mllm 688.
    Effect: blocks that don't exist are promised.
    Weakest check: kv/release.
    """

    extra = 0

    def free(self, sequence: int) -> None:
        """Release, or count."""
        if sequence in self._sequences:
            super().free(sequence)
        else:
            self.extra += 1

    def num_free_blocks(self) -> int:
        """With what was counted twice."""
        return super().num_free_blocks() + self.extra


class SwapLeaksHost(FaultyManager):
    """A sequence that is freed while it is swapped out keeps its host blocks.

    Classes: C24, C5.
    Report: vllm-project/vllm 46283.
    Effect: the host tier fills up.
    Weakest check: kv/partition.
    """

    def free(self, sequence: int) -> None:
        """Release the device only."""
        self._record(sequence).host = None
        super().free(sequence)


class SwapMixesBlocks(FaultyManager):
    """What comes back from the host comes back in reverse.

    Classes: C24, C22.
    Report: NVIDIA/TensorRT-LLM 8813.
    Effect: the blocks of a sequence stand in the wrong order.
    Weakest check: kv/content.
    """

    def swap_in(self, sequence: int) -> None:
        """Bring the blocks back, last one first."""
        record = self._record(sequence)
        super().swap_in(sequence)
        record.table[record.dropped :] = record.table[record.dropped :][::-1]


class NoStepFence(FaultyManager):
    """What is released is handed out while a step in flight still writes it.

    Classes: C22.
    Report: vllm-project/vllm 45357; sgl-project/sglang 35049.
    Effect: a late write lands in another sequence.
    Weakest check: kv/in-flight.
    """

    def begin_step(self) -> None:
        """Nothing."""

    def end_step(self) -> None:
        """Nothing."""


POOL_FAULTS = (
    ("frees_shared_blocks", FreesSharedBlocks),
    ("free_forgets_tail", FreeForgetsTail),
    ("leaks_on_refusal", LeaksOnRefusal),
    ("appends_before_it_refuses", AppendsBeforeItRefuses),
    ("counts_every_release", CountsEveryRelease),
    ("swap_leaks_host", SwapLeaksHost),
    ("swap_mixes_blocks", SwapMixesBlocks),
    ("no_step_fence", NoStepFence),
)
