"""The reference KV store: one paged layer for each layer of the model, and the sequences across them."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from tokenlaw.impl.paged.layer import LayerSequence, PagedLayer
from tokenlaw.impl.paged.sequence import UnknownSequence
from tokenlaw.spec.contracts import CacheConfig, OutOfBlocks

_Stored = list[LayerSequence]
"""A sequence: what each layer holds of it."""


class PagedKVStore:
    """A `KVStore` with every optional capability. Handles are integers that are never used twice.

    Each layer owns the blocks and the lengths of its sequences (`PagedLayer`), so that a forward pass may
    fill them one after the other. Room is made by ``reserve`` only. ``fork``, ``rollback`` and ``reorder``
    give unused room back. A method that raises has changed neither content nor room, and a freed handle
    raises `UnknownSequence`.

    Parameters
    ----------
    config
        ``num_blocks`` are the blocks of each layer. ``window`` limits what ``attend`` sees; all positions
        stay readable.
    """

    def __init__(self, config: CacheConfig) -> None:
        self._config = config
        self._layers = [PagedLayer(config) for _ in range(config.num_layers)]
        self._stored: dict[int, _Stored] = {}
        self._next_handle = 0

    def allocate(self) -> int:
        """Start an empty sequence; raises `OutOfBlocks` beyond ``max_sequences`` live ones."""
        self._require_sequence()
        return self._admit([layer.allocate() for layer in self._layers])

    def reserve(self, sequence: int, length: int) -> None:
        """Make room for ``length`` tokens in every layer; raises `OutOfBlocks` if the pool is too full."""
        stored = self._record(sequence)
        rooms = [layer.room(part) for layer, part in zip(self._layers, stored, strict=True)]
        try:
            for layer, part in zip(self._layers, stored, strict=True):
                layer.reserve(part, length)
        except OutOfBlocks:
            for layer, part, room in zip(self._layers, stored, rooms, strict=True):
                layer.shrink_room(part, room)
            raise

    def append(
        self,
        sequence: int,
        keys: Float[Tensor, "layers kv_heads tokens head_size"],
        values: Float[Tensor, "layers kv_heads tokens head_size"],
    ) -> None:
        """Store the KV of further tokens at the end of every layer.

        Raises `OutOfBlocks` beyond the room that was reserved, `ValueError` if shape or dtype differ from
        those of the store.
        """
        stored, layers = self._record(sequence), self._config.num_layers
        self._check_new(keys, values, (layers,))
        for layer, part in zip(self._layers, stored, strict=True):
            layer.require_room(part, keys.shape[2])
        for layer, part, new_keys, new_values in zip(self._layers, stored, keys, values, strict=True):
            layer.append(part, new_keys, new_values)

    def append_layer(
        self,
        sequence: int,
        layer: int,
        keys: Float[Tensor, "kv_heads tokens head_size"],
        values: Float[Tensor, "kv_heads tokens head_size"],
    ) -> None:
        """Store the KV of further tokens at the end of one layer; raises as `append` does."""
        part = self._record(sequence)[layer]
        self._check_new(keys, values, ())
        self._layers[layer].require_room(part, keys.shape[1])
        self._layers[layer].append(part, keys, values)

    def read(
        self, sequence: int, layer: int
    ) -> tuple[Float[Tensor, "kv_heads length head_size"], Float[Tensor, "kv_heads length head_size"]]:
        """Keys and values of every position in a layer, in order; copies, not views of the store."""
        return self._layers[layer].read(self._record(sequence)[layer])

    def block_table(self, sequence: int, layer: int) -> list[int]:
        """Physical block ids of a layer in logical order, those of unused room included."""
        return self._layers[layer].block_table(self._record(sequence)[layer])

    def free(self, sequence: int) -> None:
        """Release the sequence."""
        self._release(self._record(sequence))
        del self._stored[sequence]

    def fork(self, sequence: int) -> int:
        """An equal sequence that may diverge; raises `OutOfBlocks` beyond ``max_sequences`` live ones."""
        stored = self._record(sequence)
        self._require_sequence()
        return self._admit(self._fork(stored))

    def rollback(self, sequence: int, count: int) -> None:
        """Forget the last ``count`` tokens of every layer.

        `ValueError` if it is negative, or more than some layer holds.
        """
        stored = self._record(sequence)
        shortest = min(part.length for part in stored)
        if not 0 <= count <= shortest:
            raise ValueError(f"sequence {sequence} holds {shortest} tokens: can't roll back {count}")
        for layer, part in zip(self._layers, stored, strict=True):
            layer.rollback(part, count)

    def reorder(self, sequences: Sequence[int], parents: Sequence[int]) -> None:
        """Sequence i continues what ``sequences[parents[i]]`` held; no KV is copied.

        Raises `ValueError` unless the sequences are distinct and there is one valid parent for each.
        """
        stored = [self._record(sequence) for sequence in sequences]
        if len(set(sequences)) != len(sequences):
            raise ValueError(f"sequences {list(sequences)} are not distinct")
        if len(parents) != len(sequences) or not all(0 <= parent < len(sequences) for parent in parents):
            raise ValueError(f"parents {list(parents)} must be {len(sequences)} indices into the sequences")
        # All forks before any release: a parent may be replaced itself.
        heirs = [self._fork(stored[parent]) for parent in parents]
        for sequence, old, heir in zip(sequences, stored, heirs, strict=True):
            self._release(old)
            self._stored[sequence] = heir

    def attend(
        self,
        sequences: Sequence[int],
        queries: Float[Tensor, "batch query_heads head_size"],
        layer: int,
        scale: float,
    ) -> Float[Tensor, "batch query_heads head_size"]:
        """Attention of one query for each sequence, at its last position; any sequences in any order."""
        parts = [self._record(sequence)[layer] for sequence in sequences]
        return self._layers[layer].attend(parts, queries, scale)

    def _record(self, sequence: int) -> _Stored:
        stored = self._stored.get(sequence)
        if stored is None:
            raise UnknownSequence(f"no live sequence {sequence!r}: it was freed, or is another store's")
        return stored

    def _require_sequence(self) -> None:
        if len(self._stored) >= self._config.max_sequences:
            raise OutOfBlocks(
                f"all {self._config.max_sequences} sequences (max_sequences) are in use: free one first"
            )

    def _admit(self, stored: _Stored) -> int:
        handle = self._next_handle
        self._next_handle += 1
        self._stored[handle] = stored
        return handle

    def _fork(self, stored: _Stored) -> _Stored:
        return [layer.fork(part) for layer, part in zip(self._layers, stored, strict=True)]

    def _release(self, stored: _Stored) -> None:
        for layer, part in zip(self._layers, stored, strict=True):
            layer.free(part)

    def _check_new(self, keys: Tensor, values: Tensor, layers: tuple[int, ...]) -> None:
        """Raise `ValueError` unless keys and values fit the store; ``layers`` is () for a single layer."""
        self._check_one("keys", keys, layers)
        self._check_one("values", values, layers)
        if keys.shape != values.shape:
            raise ValueError(
                f"keys {tuple(keys.shape)} and values {tuple(values.shape)} differ in their tokens"
            )

    def _check_one(self, name: str, new: Tensor, layers: tuple[int, ...]) -> None:
        config = self._config
        outer, inner = (*layers, config.num_kv_heads), config.head_size
        if new.dim() != len(outer) + 2 or (*new.shape[:-2], new.shape[-1]) != (*outer, inner):
            leading = f"layers={config.num_layers}, " if layers else ""
            raise ValueError(
                f"{name} has shape {tuple(new.shape)}; it must be [{leading}"
                f"kv_heads={config.num_kv_heads}, tokens, head_size={config.head_size}]"
            )
        if str(new.dtype) != f"torch.{config.dtype}":
            raise ValueError(
                f"{name} is {new.dtype}, but the store holds torch.{config.dtype}: convert it first"
            )
