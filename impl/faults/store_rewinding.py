"""Faults of KV stores in rollbacks, and in which rows and tokens attention is given."""

from collections.abc import Sequence
from dataclasses import replace

from jaxtyping import Float
from torch import Tensor

from tokenlaw.impl.faults.store_base import FaultyLayer, FaultyStore
from tokenlaw.impl.paged.layer import LayerSequence

Queries = Float[Tensor, "batch query_heads head_size"]


class StoreRollbackDoesNothing(FaultyStore):
    """A rollback succeeds and changes nothing.

    Classes: C12.
    Report: ml-explore/mlx-lm 846, 1109.
    Effect: rejected tokens stay.
    Weakest check: store/rollback.
    """

    def rollback(self, sequence: int, count: int) -> None:
        """Only check."""
        if not 0 <= count <= min(part.length for part in self._record(sequence)):
            raise ValueError("can't roll back")


class RollsBackOneLess(FaultyStore):
    """A rollback leaves one of the tokens that it must forget.

    Classes: C12.
    Report: huggingface/transformers 47433; ml-explore/mlx-lm 1528.
    Effect: a rejected token stays.
    Weakest check: store/rollback.
    """

    def rollback(self, sequence: int, count: int) -> None:
        """One fewer, if there is one."""
        super().rollback(sequence, count - (count > 0))


class RollsBackOneMore(FaultyStore):
    """A rollback takes one token too many.

    Classes: C12.
    Report: lablup/mlxcel 994.
    Effect: an accepted token is lost.
    Weakest check: store/rollback.
    """

    def rollback(self, sequence: int, count: int) -> None:
        """One more, where there is one."""
        shortest = min(part.length for part in self._record(sequence))
        super().rollback(sequence, count + (0 < count < shortest))


class StoreRollbackClips(FaultyStore):
    """A rollback by more than there is forgets everything.

    Classes: C12.
    Report: huggingface/transformers 47433.
    Effect: a caller's mistake goes unseen.
    Weakest check: store/rollback.
    """

    def rollback(self, sequence: int, count: int) -> None:
        """Whatever number fits."""
        shortest = min(part.length for part in self._record(sequence))
        super().rollback(sequence, min(max(count, 0), shortest))


class _NeverRewinds(FaultyLayer):
    def rollback(self, sequence: LayerSequence, count: int) -> None:
        """Nothing."""


class RollsBackFirstLayer(FaultyStore):
    """A rollback reaches the first layer only.

    Classes: C12, C14.
    Report: ml-explore/mlx-swift-lm 424.
    Effect: rejected tokens stay in all other layers.
    Weakest check: store/rollback.
    """

    others = _NeverRewinds


class _KeepsRoom(FaultyLayer):
    def rollback(self, sequence: LayerSequence, count: int) -> None:
        """Move the length, and keep the room, shared or not."""
        sequence.length -= count


class RollbackKeepsSharedRoom(FaultyStore):
    """A rollback moves the length alone; the next write goes to slots that a fork still reads.

    Classes: C12, C1.
    Report: waybarrios/vllm-mlx 385.
    Effect: the fork loses tokens.
    Weakest check: store/bystanders.
    """

    first = others = _KeepsRoom


class _LastTokenMissing(FaultyLayer):
    def attend(self, sequences: Sequence[LayerSequence], queries: Queries, scale: float) -> Queries:
        """Attention without the newest token, where there is an older one."""
        shorter = [replace(one, length=max(1, one.length - 1)) for one in sequences]
        return super().attend(shorter, queries, scale)


class AttendsOneShort(FaultyStore):
    """The newest token isn't attended to.

    Classes: C12, C17.
    Report: microsoft/onnxruntime-genai 1110.
    Effect: every output lacks a token.
    Weakest check: store/attention.
    """

    first = others = _LastTokenMissing


class _LongestForAll(FaultyLayer):
    def attend(self, sequences: Sequence[LayerSequence], queries: Queries, scale: float) -> Queries:
        """Attention of every row at the longest length that its blocks allow."""
        longest = max((one.length for one in sequences), default=0)
        longer = [replace(one, length=min(longest, self._slots_of(one))) for one in sequences]
        return super().attend(longer, queries, scale)

    def _slots_of(self, sequence: LayerSequence) -> int:
        return len(self._manager.block_table(sequence.blocks)) * self._block_size


class AttendsPadding(FaultyStore):
    """All rows of a batch have the length of the longest one.

    Classes: C13, C17.
    Report: GeeeekExplorer/nano-vllm 213.
    Effect: shorter rows attend to slots that were never written.
    Weakest check: store/attention.
    """

    first = others = _LongestForAll


class AttendsInItsOwnOrder(FaultyStore):
    """The rows of a batch are taken in the order of admission, whatever was asked for.

    Classes: C17.
    Report: meta-pytorch/attention-gym 189.
    Effect: rows attend to other sequences.
    Weakest check: store/batch.
    """

    def attend(self, sequences: Sequence[int], queries: Queries, layer: int, scale: float) -> Queries:
        """Attention of as many sequences, the oldest ones."""
        return super().attend(sorted(self._stored)[: len(sequences)], queries, layer, scale)


REWIND_FAULTS = (
    ("store_rollback_does_nothing", StoreRollbackDoesNothing),
    ("rolls_back_one_less", RollsBackOneLess),
    ("rolls_back_one_more", RollsBackOneMore),
    ("store_rollback_clips", StoreRollbackClips),
    ("rolls_back_first_layer", RollsBackFirstLayer),
    ("rollback_keeps_shared_room", RollbackKeepsSharedRoom),
    ("attends_one_short", AttendsOneShort),
    ("attends_padding", AttendsPadding),
    ("attends_in_its_own_order", AttendsInItsOwnOrder),
)
