"""Faults of KV stores in what sequences are: forks, beams, releases, refusals."""

from collections.abc import Sequence

import torch

from tokenlaw.impl.faults.kv_pool import FreeForgetsTail
from tokenlaw.impl.faults.kv_sharing import ForkWithoutReferences
from tokenlaw.impl.faults.store_base import FaultyLayer, FaultyStore
from tokenlaw.impl.paged.layer import LayerSequence
from tokenlaw.spec.contracts import OutOfBlocks


class ForkByReference(FaultyStore):
    """A fork is a second name of its parent.

    Classes: C2, C3.
    Report: raullenchai/Rapid-MLX 196.
    Effect: what one appends, the other holds too.
    Weakest check: store/bystanders.
    """

    def fork(self, sequence: int) -> int:
        """Another handle of the same record."""
        self._require_sequence()
        return self._admit(self._record(sequence))


class _Uncounted(FaultyLayer):
    manager = ForkWithoutReferences


class StoreForksUncounted(FaultyStore):
    """A fork takes the blocks of its parent and counts nothing.

    Classes: C3.
    Report: apache/tvm 16666.
    Effect: blocks are freed under the sequence that is left.
    Weakest check: store/bystanders.
    """

    first = others = _Uncounted


class _NeverFilled(FaultyLayer):
    def fork(self, sequence: LayerSequence) -> LayerSequence:
        """Blocks of its own, in which nobody writes."""
        return LayerSequence(self._manager.allocate([0] * sequence.length), sequence.length)


class ForkLeavesLayersEmpty(FaultyStore):
    """A fork gets blocks of its own in all layers but the first, and nobody fills them.

    Classes: C3.
    Report: NVIDIA/TensorRT-LLM 15444.
    Effect: beams but the first read memory that was never written.
    Weakest check: store/content.
    """

    others = _NeverFilled


class ReordersInPlace(FaultyStore):
    """Beams are replaced one after the other, so that a later one continues what was just put there.

    Classes: C3.
    Report: ggml-org/llama.cpp 3802.
    Effect: with parents [1, 0] both beams hold what the second one held.
    Weakest check: store/reorder.
    """

    def reorder(self, sequences: Sequence[int], parents: Sequence[int]) -> None:
        """Fork and release beam by beam."""
        for sequence, parent in zip(sequences, parents, strict=True):
            heir = self._fork(self._record(sequences[parent]))
            self._release(self._record(sequence))
            self._stored[sequence] = heir


class ReordersFirstLayer(FaultyStore):
    """A reorder of beams reaches the first layer only.

    Classes: C3.
    Report: huggingface/transformers 46612, 29730.
    Effect: the layers of a beam belong to different beams.
    Weakest check: store/reorder.
    """

    def reorder(self, sequences: Sequence[int], parents: Sequence[int]) -> None:
        """Reorder all, then put the other layers back."""
        before = [self._fork(self._record(sequence)) for sequence in sequences]
        super().reorder(sequences, parents)
        for sequence, old in zip(sequences, before, strict=True):
            new = self._record(sequence)
            self._release(old[:1] + new[1:])
            self._stored[sequence] = new[:1] + old[1:]


class ReordersByCandidate(FaultyStore):
    """The parent of a beam is the number of its candidate, divided by two.

    Classes: C3.
    Report: vllm-project/vllm 31081, 47126.
    Effect: beams continue the wrong parent.
    Weakest check: store/reorder.
    """

    def reorder(self, sequences: Sequence[int], parents: Sequence[int]) -> None:
        """Reorder with halved parents."""
        super().reorder(sequences, [parent // 2 for parent in parents])


class _ForgetsTail(FaultyLayer):
    manager = FreeForgetsTail


class StoreLeaksTail(FaultyStore):
    """A release forgets the last block in every layer.

    Classes: C5.
    Report: sgl-project/sglang 13826, 31616.
    Effect: a block is lost each time.
    Weakest check: store/release.
    """

    first = others = _ForgetsTail


class ReleasesTheNewest(FaultyStore):
    """A second release of a sequence ends the one that was admitted last.

    Classes: C4.
    Report: sgl-project/sglang-jax 982, 994; UbiquitousLearning/mllm 688.
    Effect: a sequence that nobody released loses a token.
    Weakest check: store/release.
    """

    def free(self, sequence: int) -> None:
        """Release the sequence, or take from another one."""
        if sequence in self._stored:
            super().free(sequence)
        elif self._stored and all(part.length for part in self._stored[max(self._stored)]):
            self.rollback(max(self._stored), 1)


class _Clears(FaultyLayer):
    def free(self, sequence: LayerSequence) -> None:
        """Clear, whoever else reads it, then release."""
        blocks = torch.tensor(self._manager.block_table(sequence.blocks), dtype=torch.int64)
        for cache in (self._keys, self._values):
            cache[blocks] = 0
        super().free(sequence)


class ClearsSharedBlocks(FaultyStore):
    """A release clears the blocks of the sequence, shared ones too.

    Classes: C7, C2.
    Report: raullenchai/Rapid-MLX 196; Avarok-Cybersecurity/atlas 373.
    Effect: a fork that lives on reads zeros.
    Weakest check: store/reorder.
    """

    first = others = _Clears


class RefusalForgetsAToken(FaultyStore):
    """A reservation that doesn't fit takes the last token of the sequence with it.

    Classes: C5.
    Report: ggml-org/llama.cpp 12695; ml-explore/mlx-lm 405.
    Effect: after the refusal the sequence is one token short.
    Weakest check: store/atomic.
    """

    def reserve(self, sequence: int, length: int) -> None:
        """Make room, or forget."""
        try:
            super().reserve(sequence, length)
        except OutOfBlocks:
            for part in self._record(sequence):
                part.length = max(0, part.length - 1)
            raise


SEQUENCE_FAULTS = (
    ("fork_by_reference", ForkByReference),
    ("store_forks_uncounted", StoreForksUncounted),
    ("fork_leaves_layers_empty", ForkLeavesLayersEmpty),
    ("reorders_in_place", ReordersInPlace),
    ("reorders_first_layer", ReordersFirstLayer),
    ("reorders_by_candidate", ReordersByCandidate),
    ("store_leaks_tail", StoreLeaksTail),
    ("releases_the_newest", ReleasesTheNewest),
    ("clears_shared_blocks", ClearsSharedBlocks),
    ("refusal_forgets_a_token", RefusalForgetsAToken),
)
