"""The reference KV store: tensors in blocks, laid out by the reference block manager."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from tokenlaw.impl.paged.attention import GatherAttention
from tokenlaw.impl.paged.manager import PagedBlockManager
from tokenlaw.impl.paged.sequence import UnknownSequence
from tokenlaw.spec.contracts import CacheConfig, OutOfBlocks


@dataclass(slots=True)
class _Stored:
    """Handle of the block manager, and how many tokens are stored; the manager's length is the room."""

    blocks: int
    length: int


class PagedKVStore:
    """A `KVStore` with every optional capability. Handles are integers that are never used twice.

    Room is made by ``reserve`` only, and copy-on-write happens there. ``fork``, ``rollback`` and ``reorder``
    give unused room back. Every method that raises has changed nothing, and a freed handle raises
    `UnknownSequence`.

    Parameters
    ----------
    config
        ``window`` limits what ``attend`` sees; all positions stay readable.
    """

    def __init__(self, config: CacheConfig) -> None:
        self._config = config
        # A store knows no tokens: it never commits, so that nothing is found in a prefix cache.
        self._manager = PagedBlockManager(replace(config, window=None))
        self._attention = GatherAttention()
        shape = (
            config.num_layers,
            config.num_blocks,
            config.block_size,
            config.num_kv_heads,
            config.head_size,
        )
        # Not a number: a slot that is read before it is written shows at once.
        dtype = getattr(torch, config.dtype)
        self._keys = torch.full(shape, torch.nan, dtype=dtype, device=config.device)
        self._values = torch.full_like(self._keys, torch.nan)
        self._stored: dict[int, _Stored] = {}
        self._next_handle = 0

    def allocate(self) -> int:
        """Start an empty sequence; raises `OutOfBlocks` beyond ``max_sequences`` live ones."""
        self._require_sequence()
        return self._admit(self._manager.allocate(()), 0)

    def reserve(self, sequence: int, length: int) -> None:
        """Make room for ``length`` tokens in all; raises `OutOfBlocks` if the pool is too full."""
        stored = self._record(sequence)
        missing = length - self._manager.num_tokens(stored.blocks)
        if missing <= 0:
            return
        self._manager.append(stored.blocks, [0] * missing)
        for copy in self._manager.pending_copies():
            for cache in (self._keys, self._values):
                cache[:, copy.destination] = cache[:, copy.source]

    def append(
        self,
        sequence: int,
        keys: Float[Tensor, "layers kv_heads tokens head_size"],
        values: Float[Tensor, "layers kv_heads tokens head_size"],
    ) -> None:
        """Store the KV of further tokens; raises `OutOfBlocks` beyond the room that was reserved.

        Raises `ValueError` if shape or dtype differ from those of the store.
        """
        stored = self._record(sequence)
        self._check_new("keys", keys)
        self._check_new("values", values)
        if keys.shape != values.shape:
            raise ValueError(
                f"keys {tuple(keys.shape)} and values {tuple(values.shape)} differ in their tokens"
            )
        end = stored.length + keys.shape[2]
        room = self._manager.num_tokens(stored.blocks)
        if end > room:
            raise OutOfBlocks(
                f"sequence {sequence} holds {stored.length} tokens and has room for {room}: can't append "
                f"{keys.shape[2]}; call reserve(sequence, {end}) first"
            )
        slots = self._slots(stored, stored.length, end)
        for cache, new in ((self._keys, keys), (self._values, values)):
            cache.flatten(1, 2)[:, slots] = new.transpose(1, 2).to(cache.device)
        stored.length = end

    def read(
        self, sequence: int, layer: int
    ) -> tuple[Float[Tensor, "kv_heads length head_size"], Float[Tensor, "kv_heads length head_size"]]:
        """Keys and values of every position, in order; copies, not views of the store."""
        stored = self._record(sequence)
        slots = self._slots(stored, 0, stored.length)
        keys, values = (
            cache[layer].flatten(0, 1)[slots].transpose(0, 1) for cache in (self._keys, self._values)
        )
        return keys, values

    def free(self, sequence: int) -> None:
        """Release the sequence."""
        self._manager.free(self._record(sequence).blocks)
        del self._stored[sequence]

    def fork(self, sequence: int) -> int:
        """An equal sequence that may diverge; raises `OutOfBlocks` beyond ``max_sequences`` live ones."""
        stored = self._record(sequence)
        self._require_sequence()
        return self._admit(self._fork_blocks(stored), stored.length)

    def rollback(self, sequence: int, count: int) -> None:
        """Forget the last ``count`` tokens; `ValueError` if it is negative or more than there are."""
        stored = self._record(sequence)
        if not 0 <= count <= stored.length:
            raise ValueError(f"sequence {sequence} holds {stored.length} tokens: can't roll back {count}")
        stored.length -= count
        self._give_room_back(stored)

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
        heirs = [_Stored(self._fork_blocks(stored[parent]), stored[parent].length) for parent in parents]
        for sequence, old, heir in zip(sequences, stored, heirs, strict=True):
            self._manager.free(old.blocks)
            self._stored[sequence] = heir

    def attend(
        self,
        sequences: Sequence[int],
        queries: Float[Tensor, "batch query_heads head_size"],
        layer: int,
        scale: float,
    ) -> Float[Tensor, "batch query_heads head_size"]:
        """Attention of one query for each sequence, at its last position; any sequences in any order."""
        stored = [self._record(sequence) for sequence in sequences]
        tables = [self._manager.block_table(record.blocks) for record in stored]
        width = max(map(len, tables), default=0)
        padded = torch.tensor([table + [0] * (width - len(table)) for table in tables], dtype=torch.int64)
        output = self._attention.attend(
            queries[:, None],
            self._keys[layer],
            self._values[layer],
            padded,
            torch.tensor([record.length for record in stored], dtype=torch.int64),
            scale,
            window=self._config.window,
        )
        assert isinstance(output, Tensor)
        return output[:, 0]

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

    def _admit(self, blocks: int, length: int) -> int:
        handle = self._next_handle
        self._next_handle += 1
        self._stored[handle] = _Stored(blocks, length)
        return handle

    def _give_room_back(self, stored: _Stored) -> None:
        self._manager.rollback(stored.blocks, self._manager.num_tokens(stored.blocks) - stored.length)

    def _fork_blocks(self, stored: _Stored) -> int:
        # Room is private: a shared tail must be copied before either side writes, which `reserve` sees to.
        self._give_room_back(stored)
        return self._manager.fork(stored.blocks)

    def _slots(self, stored: _Stored, start: int, end: int) -> Tensor:
        """Slot numbers (block * block_size + offset) of positions ``start`` .. ``end`` - 1."""
        size = self._config.block_size
        table = torch.tensor(self._manager.block_table(stored.blocks), dtype=torch.int64)
        positions = torch.arange(start, end)
        return (table[positions // size] * size + positions % size).to(self._keys.device)

    def _check_new(self, name: str, new: Tensor) -> None:
        config = self._config
        expected = (config.num_layers, config.num_kv_heads, config.head_size)
        if new.dim() != 4 or (new.shape[0], new.shape[1], new.shape[3]) != expected:
            raise ValueError(
                f"{name} has shape {tuple(new.shape)}; it must be [layers={config.num_layers}, "
                f"kv_heads={config.num_kv_heads}, tokens, head_size={config.head_size}]"
            )
        if new.dtype != self._keys.dtype:
            raise ValueError(
                f"{name} is {new.dtype}, but the store holds {self._keys.dtype}: convert it first"
            )
