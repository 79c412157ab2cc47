"""Faults of KV stores in copy-on-write: what is copied, when, and whether it is."""

from jaxtyping import Float
from torch import Tensor

from tokenlaw.impl.faults.kv_sharing import NoCopyOnWrite
from tokenlaw.impl.faults.store_base import FaultyLayer, FaultyStore
from tokenlaw.impl.paged.layer import LayerSequence
from tokenlaw.spec.contracts import CacheConfig


class _CopiesKeys(FaultyLayer):
    def _copy(self, source: int, destination: int) -> None:
        self._keys[destination] = self._keys[source]


class CopiesKeysOnly(FaultyStore):
    """A divergence copies the keys of the shared block, and not its values.

    Classes: C2.
    Report: vllm-project/vllm 55112.
    Effect: the values of the shared part are those of whoever had the new block before.
    Weakest check: store/content.
    """

    first = others = _CopiesKeys


class _CopiesNothing(FaultyLayer):
    def _copy(self, source: int, destination: int) -> None:
        pass


class CopiesFirstLayerOnly(FaultyStore):
    """A divergence copies the shared block in the first layer, and in no other.

    Classes: C2.
    Report: vllm-project/vllm 55112.
    Effect: all layers but one hold foreign KV in the shared part.
    Weakest check: store/content.
    """

    others = _CopiesNothing


class _CopiesHalf(FaultyLayer):
    def _copy(self, source: int, destination: int) -> None:
        half = self._block_size // 2
        for cache in (self._keys, self._values):
            cache[destination, :half] = cache[source, :half]


class CopiesHalfTheSlots(FaultyStore):
    """A divergence copies the first half of the slots of the shared block.

    Classes: C2.
    Report: mlc-ai/mlc-llm 2644.
    Effect: the other slots hold foreign KV.
    Weakest check: store/content.
    """

    first = others = _CopiesHalf


class _CopiesLate(FaultyLayer):
    def __init__(self, config: CacheConfig) -> None:
        super().__init__(config)
        self._late: list[tuple[int, int]] = []

    def _copy(self, source: int, destination: int) -> None:
        self._late.append((source, destination))

    def append(
        self,
        sequence: LayerSequence,
        keys: Float[Tensor, "kv_heads tokens head_size"],
        values: Float[Tensor, "kv_heads tokens head_size"],
    ) -> None:
        """Write first, copy then."""
        super().append(sequence, keys, values)
        for source, destination in self._late:
            super()._copy(source, destination)
        self._late.clear()


class CopiesAfterTheWrite(FaultyStore):
    """The copy of a divergence is made after the write that it was made for.

    Classes: C2, C22.
    Report: NVIDIA/TensorRT-LLM 8813, 9056.
    Effect: the copy overwrites the token that diverges.
    Weakest check: store/content.
    """

    first = others = _CopiesLate


class _OnSharedBlocks(FaultyLayer):
    manager = NoCopyOnWrite


class WritesSharedBlocks(FaultyStore):
    """A shared tail is written where it is.

    Classes: C1.
    Report: Avarok-Cybersecurity/atlas 692, 1193.
    Effect: the other sequence reads foreign KV.
    Weakest check: store/bystanders.
    """

    first = others = _OnSharedBlocks


class _KeepsRoom(FaultyLayer):
    def fork(self, sequence: LayerSequence) -> LayerSequence:
        """An equal sequence with the same unused room."""
        return LayerSequence(self._manager.fork(sequence.blocks), sequence.length)


class ForkSharesRoom(FaultyStore):
    """A fork takes over the unused slots of its parent's last block.

    Classes: C1.
    Report: jjang-ai/vmlx 198.
    Effect: both write the same slots, as long as no further room is made.
    Weakest check: store/bystanders.
    """

    first = others = _KeepsRoom


COPY_FAULTS = (
    ("copies_keys_only", CopiesKeysOnly),
    ("copies_first_layer_only", CopiesFirstLayerOnly),
    ("copies_half_the_slots", CopiesHalfTheSlots),
    ("copies_after_the_write", CopiesAfterTheWrite),
    ("writes_shared_blocks", WritesSharedBlocks),
    ("fork_shares_room", ForkSharesRoom),
)
