"""Faults of rollbacks, of accepted drafts and of the sliding window."""

from collections.abc import Sequence

from tokenlaw.impl.faults.kv_base import FaultyManager
from tokenlaw.impl.paged.sequence import SequenceRecord


class RollbackDoesNothing(FaultyManager):
    """A rollback succeeds and changes nothing.

    Classes: C12.
    Report: ml-explore/mlx-lm 846, 1109; ml-explore/mlx-swift-lm 424.
    Effect: rejected tokens stay.
    Weakest check: kv/rollback.
    """

    def rollback(self, sequence: int, count: int) -> None:
        """Only check."""
        if not 0 <= count <= self.num_tokens(sequence):
            raise ValueError("can't roll back")


class RollbackClips(FaultyManager):
    """A rollback by more than there is forgets everything.

    Classes: C12.
    Report: huggingface/transformers 47433.
    Effect: a caller's mistake goes unseen.
    Weakest check: kv/rollback.
    """

    def rollback(self, sequence: int, count: int) -> None:
        """Whatever number fits."""
        super().rollback(sequence, min(max(count, 0), self.num_tokens(sequence)))


class RollbackForgetsOneMore(FaultyManager):
    """A rollback takes one token too many.

    Classes: C12.
    Report: lablup/mlxcel 994.
    Effect: an accepted token is lost.
    Weakest check: kv/rollback.
    """

    def rollback(self, sequence: int, count: int) -> None:
        """One more, where there is one."""
        super().rollback(sequence, count + (0 < count < self.num_tokens(sequence)))


class RollbackKeepsBlocks(FaultyManager):
    """A rollback gives no block back.

    Classes: C12.
    Report: sgl-project/sglang 13826.
    Effect: blocks without tokens are held.
    Weakest check: kv/waste.
    """

    def _truncate(self, record: SequenceRecord, length: int, blocks: int) -> None:
        super()._truncate(record, length, max(blocks, len(record.table)))


class RollbackDropsPartialBlock(FaultyManager):
    """A rollback into a block gives the whole block back.

    Classes: C12, C13.
    Report: NVIDIA/TensorRT-LLM 16448.
    Effect: tokens that stay have no slot.
    Weakest check: kv/waste.
    """

    def _truncate(self, record: SequenceRecord, length: int, blocks: int) -> None:
        super()._truncate(record, length, min(blocks, length // self._block_size))


class RollbackLeaks(FaultyManager):
    """A rollback takes blocks out of the table and never releases them.

    Classes: C12, C5.
    Report: NVIDIA/TensorRT-LLM 16455.
    Effect: blocks are lost.
    Weakest check: kv/refcount.
    """

    def _truncate(self, record: SequenceRecord, length: int, blocks: int) -> None:
        record.truncate(length, blocks, self._block_size)


class AcceptsOneMore(FaultyManager):
    """One rejected draft stays.

    Classes: C12.
    Report: ml-explore/mlx-lm 1528.
    Effect: a rejected token is attended to.
    Weakest check: kv/accept.
    """

    def accept(self, sequence: int, count: int) -> None:
        """One more, where there is one."""
        super().accept(sequence, min(count + 1, self._record(sequence).drafts))


class AcceptForgetsOneMore(FaultyManager):
    """A rejection takes the last accepted draft with it.

    Classes: C12.
    Report: lablup/mlxcel 994; microsoft/onnxruntime-genai 1110.
    Effect: an accepted token is lost.
    Weakest check: kv/accept.
    """

    def accept(self, sequence: int, count: int) -> None:
        """One fewer, if some were rejected."""
        super().accept(sequence, count - (0 < count < self._record(sequence).drafts))


class DropsOptimistically(FaultyManager):
    """The window moves with tokens that may be rejected.

    Classes: C14.
    Report: vllm-project/vllm 47728, 47282.
    Effect: after a rejection the window holds a block that is gone.
    Weakest check: kv/window.
    """

    def _extend(self, record: SequenceRecord, tokens: Sequence[int]) -> None:
        super()._extend(record, tokens)
        record.committed = len(record.tokens)
        self._drop_below_window(record)


class WindowOneShort(FaultyManager):
    """The window drops a block one position too early.

    Classes: C14.
    Report: huggingface/transformers 37574.
    Effect: the oldest visible position is gone.
    Weakest check: kv/window.
    """

    def _first_visible(self, length: int) -> int:
        return 0 if self.window is None else max(0, length - self.window + 2)


REWINDING_FAULTS = (
    ("rollback_does_nothing", RollbackDoesNothing),
    ("rollback_clips", RollbackClips),
    ("rollback_forgets_one_more", RollbackForgetsOneMore),
    ("rollback_keeps_blocks", RollbackKeepsBlocks),
    ("rollback_drops_partial_block", RollbackDropsPartialBlock),
    ("rollback_leaks", RollbackLeaks),
    ("accepts_one_more", AcceptsOneMore),
    ("accept_forgets_one_more", AcceptForgetsOneMore),
    ("drops_optimistically", DropsOptimistically),
    ("window_one_short", WindowOneShort),
)
