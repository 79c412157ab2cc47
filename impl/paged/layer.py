"""One layer of the reference KV store: its tensors, and a block manager that lays them out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tokenlaw.impl.paged.attention import GatherAttention
from tokenlaw.impl.paged.manager import PagedBlockManager
from tokenlaw.spec.contracts import CacheConfig, OutOfBlocks


@dataclass(slots=True)
class LayerSequence:
    """What one layer holds of a sequence: a handle of its block manager, and how many tokens are stored.

    The length that the manager knows is the room.
    """

    blocks: int
    length: int = 0


class PagedLayer:
    """Keys and values of one layer. Layers share nothing, so each has its own tables and lengths.

    Room is made by ``reserve`` only, and copy-on-write happens there. ``fork`` and ``rollback`` give unused
    room back, because room is private: a shared tail must be copied before either side writes.
    """

    def __init__(self, config: CacheConfig) -> None:
        self._block_size = config.block_size
        self._window = config.window
        # A store knows no tokens: it never commits, so that nothing is found in a prefix cache.
        self._manager = PagedBlockManager(replace(config, window=None))
        self._attention = GatherAttention()
        shape = (config.num_blocks, config.block_size, config.num_kv_heads, config.head_size)
        # Not a number: a slot that is read before it is written shows at once.
        dtype = getattr(torch, config.dtype)
        self._keys = torch.full(shape, torch.nan, dtype=dtype, device=config.device)
        self._values = torch.full_like(self._keys, torch.nan)

    def allocate(self) -> LayerSequence:
        """An empty sequence."""
        return LayerSequence(self._manager.allocate(()))

    def room(self, sequence: LayerSequence) -> int:
        """Tokens for which there is room, the stored ones included."""
        return self._manager.num_tokens(sequence.blocks)

    def reserve(self, sequence: LayerSequence, length: int) -> None:
        """Make room for ``length`` tokens in all; raises `OutOfBlocks` if the pool is too full."""
        missing = length - self.room(sequence)
        if missing <= 0:
            return
        self._manager.append(sequence.blocks, [0] * missing)
        for copy in self._manager.pending_copies():
            self._copy(copy.source, copy.destination)

    def shrink_room(self, sequence: LayerSequence, room: int) -> None:
        """Give back the room beyond ``room`` tokens, but never that of a stored token."""
        self._manager.rollback(sequence.blocks, self.room(sequence) - max(room, sequence.length))

    def require_room(self, sequence: LayerSequence, tokens: int) -> None:
        """Raise `OutOfBlocks` unless so many further tokens fit into the room."""
        end, room = sequence.length + tokens, self.room(sequence)
        if end > room:
            raise OutOfBlocks(
                f"the sequence holds {sequence.length} tokens and has room for {room}: can't append "
                f"{tokens}; call reserve(sequence, {end}) first"
            )

    def append(
        self,
        sequence: LayerSequence,
        keys: Float[Tensor, "kv_heads tokens head_size"],
        values: Float[Tensor, "kv_heads tokens head_size"],
    ) -> None:
        """Store the KV of further tokens, for which `require_room` has found room."""
        end = sequence.length + keys.shape[1]
        self._write(self._slots(sequence, sequence.length, end), keys, values)
        sequence.length = end

    def read(
        self, sequence: LayerSequence
    ) -> tuple[Float[Tensor, "kv_heads length head_size"], Float[Tensor, "kv_heads length head_size"]]:
        """Keys and values of every position, in order; copies, not views of the layer."""
        slots = self._slots(sequence, 0, sequence.length)
        keys, values = (cache.flatten(0, 1)[slots].transpose(0, 1) for cache in (self._keys, self._values))
        return keys, values

    def block_table(self, sequence: LayerSequence) -> list[int]:
        """Physical block ids in logical order, those of unused room included."""
        return self._manager.block_table(sequence.blocks)

    def free(self, sequence: LayerSequence) -> None:
        """Release the sequence."""
        self._manager.free(sequence.blocks)

    def fork(self, sequence: LayerSequence) -> LayerSequence:
        """An equal sequence on the same blocks."""
        self.shrink_room(sequence, sequence.length)
        return LayerSequence(self._manager.fork(sequence.blocks), sequence.length)

    def rollback(self, sequence: LayerSequence, count: int) -> None:
        """Forget the last ``count`` tokens, of which there are as many."""
        sequence.length -= count
        self.shrink_room(sequence, sequence.length)

    def attend(
        self,
        sequences: Sequence[LayerSequence],
        queries: Float[Tensor, "batch query_heads head_size"],
        scale: float,
    ) -> Float[Tensor, "batch query_heads head_size"]:
        """Attention of one query for each sequence, at its last position in this layer."""
        tables = [self._manager.block_table(sequence.blocks) for sequence in sequences]
        width = max(map(len, tables), default=0)
        padded = torch.tensor([table + [0] * (width - len(table)) for table in tables], dtype=torch.int64)
        output = self._attention.attend(
            queries[:, None],
            self._keys,
            self._values,
            padded,
            torch.tensor([sequence.length for sequence in sequences], dtype=torch.int64),
            scale,
            window=self._window,
        )
        assert isinstance(output, Tensor)
        return output[:, 0]

    def _copy(self, source: int, destination: int) -> None:
        """Copy a block."""
        for cache in (self._keys, self._values):
            cache[destination] = cache[source]

    def _write(
        self,
        slots: Int[Tensor, " tokens"],
        keys: Float[Tensor, "kv_heads tokens head_size"],
        values: Float[Tensor, "kv_heads tokens head_size"],
    ) -> None:
        """Store the KV of tokens in these slots."""
        for cache, new in ((self._keys, keys), (self._values, values)):
            cache.flatten(0, 1)[slots] = new.transpose(0, 1).to(cache.device)

    def _slots(self, sequence: LayerSequence, start: int, end: int) -> Tensor:
        """Slot numbers (block * block_size + offset) of positions ``start`` .. ``end`` - 1."""
        size = self._block_size
        table = torch.tensor(self._manager.block_table(sequence.blocks), dtype=torch.int64)
        positions = torch.arange(start, end)
        return (table[positions // size] * size + positions % size).to(self._keys.device)
