"""Faults of KV stores in what is written where: slots, padding, layers, positions, late writes."""

from jaxtyping import Float, Int
from torch import Tensor, arange, bfloat16

from tokenlaw.impl.faults.store_base import FaultyLayer, FaultyStore
from tokenlaw.impl.paged.layer import LayerSequence
from tokenlaw.spec.contracts import CacheConfig

Slots = Int[Tensor, " tokens"]
Tokens = Float[Tensor, "kv_heads tokens head_size"]


class _PadsLastSlot(FaultyLayer):
    def _write(self, slots: Slots, keys: Tokens, values: Tokens) -> None:
        super()._write(slots, keys, values)
        self._keys[-1, -1] = 0


class PaddingToTheLastSlot(FaultyStore):
    """A padded row writes slot -1, which is the last slot of the pool.

    Classes: C16.
    Report: sgl-project/sglang 38997.
    Effect: whoever has the last block loses a token, once the pool is full.
    Weakest check: store/content.
    """

    first = others = _PadsLastSlot


class _PadsFirstSlot(FaultyLayer):
    def _write(self, slots: Slots, keys: Tokens, values: Tokens) -> None:
        super()._write(slots, keys, values)
        if 0 not in slots:
            self._values[0, 0] = 0


class PaddingToTheFirstSlot(FaultyStore):
    """A padded row writes slot 0, which isn't reserved.

    Classes: C16.
    Report: sgl-project/sglang 36207.
    Effect: whoever has block 0 loses a token.
    Weakest check: store/bystanders.
    """

    first = others = _PadsFirstSlot


class _KeepsRow(FaultyLayer):
    def __init__(self, config: CacheConfig) -> None:
        super().__init__(config)
        self._last: Tensor = arange(0)

    def _write(self, slots: Slots, keys: Tokens, values: Tokens) -> None:
        super()._write(self._last[:1], keys[:, :1], values[:, :1])
        super()._write(slots, keys, values)
        self._last = slots


class WritesTheRowBefore(FaultyStore):
    """A padded row still has the slots of the call before, and is written.

    Classes: C16.
    Report: alibaba/rtp-llm 1321; tenstorrent/vllm-tt-plugin 104.
    Effect: a bystander, or the sequence itself, loses the token that was written before.
    Weakest check: store/bystanders.
    """

    first = others = _KeepsRow


class _WritesLate(FaultyLayer):
    def __init__(self, config: CacheConfig) -> None:
        super().__init__(config)
        self._pending: Tensor = arange(0)

    def free(self, sequence: LayerSequence) -> None:
        """Release, with a write in flight."""
        self._pending = self._slots(sequence, max(0, sequence.length - 1), sequence.length)
        super().free(sequence)

    def _write(self, slots: Slots, keys: Tokens, values: Tokens) -> None:
        super()._write(slots, keys, values)
        self._keys.flatten(0, 1)[self._pending] = 0
        self._pending = self._pending[:0]


class LateWriteAfterRelease(FaultyStore):
    """The last write of a released sequence lands after its slots were handed out again.

    Classes: C22.
    Report: vllm-project/vllm 45357; vllm-project/tpu-inference 3449.
    Effect: the next sequence loses a token.
    Weakest check: store/content.
    """

    first = others = _WritesLate


class _ByPosition(FaultyLayer):
    def _slots(self, sequence: LayerSequence, start: int, end: int) -> Tensor:
        return arange(start, end)


class KeyedByPosition(FaultyStore):
    """The slot of a token is its position, whatever the sequence.

    Classes: C21.
    Report: ggml-org/llama.cpp 27994.
    Effect: all sequences share their slots; the last writer wins.
    Weakest check: store/bystanders.
    """

    first = others = _ByPosition


class _RunsOn(FaultyLayer):
    def require_room(self, sequence: LayerSequence, tokens: int) -> None:
        """Nothing is refused."""

    def _slots(self, sequence: LayerSequence, start: int, end: int) -> Tensor:
        table = self._manager.block_table(sequence.blocks)
        blocks, size = len(self._keys), self._block_size
        while len(table) * size < end:
            table.append((table[-1] + 1) % blocks if table else 0)
        slots = [table[position // size] * size + position % size for position in range(start, end)]
        return Tensor(slots).long()


class WritesPastTheRoom(FaultyStore):
    """What doesn't fit into the room is written into the block behind.

    Classes: C13, C18.
    Report: vllm-project/vllm 16370, 47056.
    Effect: another sequence loses its tokens.
    Weakest check: store/capacity.
    """

    first = others = _RunsOn


class FirstLayerForAll(FaultyStore):
    """Keys of the first layer are stored in every layer.

    Classes: C18.
    Report: vllm-project/vllm-xpu-kernels 445; tenstorrent/tt-metal 54742.
    Effect: the other layers hold wrong keys.
    Weakest check: store/content.
    """

    def append(
        self,
        sequence: int,
        keys: Float[Tensor, "layers kv_heads tokens head_size"],
        values: Float[Tensor, "layers kv_heads tokens head_size"],
    ) -> None:
        """Store the keys of layer 0 everywhere."""
        super().append(sequence, keys[:1].expand_as(keys), values)


class OneLengthForAllLayers(FaultyStore):
    """One length for the whole sequence, advanced by the last layer: other layers write over their end.

    Classes: C24, C14.
    Report: NVIDIA/TensorRT-LLM 5448.
    Effect: a layer that runs ahead loses tokens.
    Weakest check: store/layers.
    """

    def append_layer(self, sequence: int, layer: int, keys: Tokens, values: Tokens) -> None:
        """Extend the layer from where the last one ends."""
        stored = self._record(sequence)
        stored[layer].length = min(stored[layer].length, stored[-1].length)
        super().append_layer(sequence, layer, keys, values)


class LayersShareMemory(FaultyStore):
    """The keys of neighbouring layers lie in one tensor.

    Classes: C18.
    Report: ovg-project/kvcached 399.
    Effect: what one layer stores, the other holds.
    Weakest check: store/content.
    """

    def __init__(self, config: CacheConfig) -> None:
        super().__init__(config)
        for layer in self._layers[1:]:
            layer._keys = self._layers[0]._keys


class ScaleLostOnOnePath(FaultyStore):
    """Values are stored with a scale of 4, which one of two ways to append doesn't apply.

    Classes: C19.
    Report: sgl-project/sglang 18904, 20705; kekzl/imp 1189.
    Effect: values that took that way are read four times too large.
    Weakest check: store/layers.
    """

    def append_layer(self, sequence: int, layer: int, keys: Tokens, values: Tokens) -> None:
        """Extend one layer, as if its values were scaled already."""
        super().append_layer(sequence, layer, keys, 4 * values)


class _Rounds(FaultyLayer):
    def _write(self, slots: Slots, keys: Tokens, values: Tokens) -> None:
        super()._write(slots, keys.to(bfloat16).to(keys.dtype), values)


class RoundsKeys(FaultyStore):
    """Keys are stored in bfloat16, whatever the dtype of the store.

    Classes: C19.
    Report: none known of this form; nearest is vllm-project/vllm 47574 (leftovers of another dtype).
    Effect: keys differ by up to 0.4 %.
    Weakest check: store/content.
    """

    first = others = _Rounds


WRITE_FAULTS = (
    ("padding_to_the_last_slot", PaddingToTheLastSlot),
    ("padding_to_the_first_slot", PaddingToTheFirstSlot),
    ("writes_the_row_before", WritesTheRowBefore),
    ("late_write_after_release", LateWriteAfterRelease),
    ("keyed_by_position", KeyedByPosition),
    ("writes_past_the_room", WritesPastTheRoom),
    ("first_layer_for_all", FirstLayerForAll),
    ("one_length_for_all_layers", OneLengthForAllLayers),
    ("layers_share_memory", LayersShareMemory),
    ("scale_lost_on_one_path", ScaleLostOnOnePath),
    ("rounds_keys", RoundsKeys),
)
