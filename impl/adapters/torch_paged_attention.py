"""Adapter to torch's experimental `PagedAttention` with `flex_attention` (torch.nn.attention.experimental).

torch keeps the page table; like every caller, the adapter keeps lengths, caches and which slots are in use.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.attention.experimental._paged_attention import PagedAttention
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from tokenlaw.spec.contracts import KV_STORE, CacheConfig, Implementation, OutOfBlocks


@dataclass(eq=False)
class PagedSequence:
    """Handle of a live sequence: its row of the page table, and its length in tokens."""

    slot: int
    length: int = 0


class TorchPagedStore:
    """A `KVStore` over one `PagedAttention` and one pair of caches for each layer.

    A page is a block. New sequences take the lowest free slot (row of the page table).

    Parameters
    ----------
    config
        Shape of the store; ``window`` isn't supported.
    paging
        The class that manages pages: torch's, or one that repairs it.
    """

    # Eager flex_attention multiplies queries and keys in their own dtype, and only then goes to float32.
    scores_in_input_dtype = True

    def __init__(self, config: CacheConfig, paging: type[PagedAttention] = PagedAttention) -> None:
        if config.window is not None:
            raise ValueError("torch-paged-attention has no sliding window; use window=None")
        self._config = config
        self._paging = paging(config.num_blocks, config.block_size, config.max_sequences, config.device)
        rows = config.num_blocks * config.block_size
        shape = (config.num_layers, 1, config.num_kv_heads, rows, config.head_size)
        self._keys = torch.zeros(shape, dtype=getattr(torch, config.dtype), device=config.device)
        self._values = torch.zeros_like(self._keys)
        self._live: list[PagedSequence] = []

    def allocate(self) -> PagedSequence:
        """Start an empty sequence; raises `OutOfBlocks` when all ``max_sequences`` slots are taken."""
        used = {sequence.slot for sequence in self._live}
        free = [slot for slot in range(self._config.max_sequences) if slot not in used]
        if not free:
            raise OutOfBlocks(f"all {self._config.max_sequences} slots of the page table are taken")
        self._live.append(PagedSequence(free[0]))
        return self._live[-1]

    def reserve(self, sequence: PagedSequence, length: int) -> None:
        """Make room for ``length`` tokens; raises `OutOfBlocks` for torch's `AssertionError`."""
        try:
            self._paging.reserve(self._indices(sequence.slot), self._indices(length))
        except AssertionError as error:
            raise OutOfBlocks(str(error)) from error

    def append(
        self,
        sequence: PagedSequence,
        keys: Float[Tensor, "layers kv_heads tokens head_size"],
        values: Float[Tensor, "layers kv_heads tokens head_size"],
    ) -> None:
        """Store the KV of further tokens where ``reserve`` made room."""
        end = sequence.length + keys.shape[2]
        positions = torch.arange(sequence.length, end, device=self._config.device)[None]
        slot = self._indices(sequence.slot)
        for layer in range(self._config.num_layers):
            caches = self._keys[layer], self._values[layer]
            self._paging.assign(slot, positions, keys[layer][None], values[layer][None], *caches)
        sequence.length = end

    def read(
        self, sequence: PagedSequence, layer: int
    ) -> tuple[Float[Tensor, "kv_heads length head_size"], Float[Tensor, "kv_heads length head_size"]]:
        """Keys and values through the page table."""
        positions = torch.arange(sequence.length, device=self._config.device)
        size = self._config.block_size
        pages = self._paging.page_table[sequence.slot, positions // size]
        rows = pages * size + positions % size
        return self._keys[layer, 0][:, rows], self._values[layer, 0][:, rows]

    def block_table(self, sequence: PagedSequence, layer: int) -> list[int]:
        """The row of the page table, which all layers share, as far as it has pages."""
        pages: list[int] = self._paging.page_table[sequence.slot].tolist()
        return [page for page in pages if page >= 0]

    def free(self, sequence: PagedSequence) -> None:
        """Erase the sequence; a second time raises `ValueError`."""
        self._live.remove(sequence)
        self._paging.erase(self._indices(sequence.slot))

    def attend(
        self,
        sequences: Sequence[PagedSequence],
        queries: Float[Tensor, "batch query_heads head_size"],
        layer: int,
        scale: float,
    ) -> Float[Tensor, "batch query_heads head_size"]:
        """Attention of one query each, in one call of `flex_attention` (eager).

        All live sequences in order of creation go as a batch with one row for each slot of the page table,
        free slots with length 0. Any other batch goes with its ``batch_idx``, as the documentation of
        ``convert_logical_block_mask`` describes it.
        """
        slots = self._indices(*(sequence.slot for sequence in sequences))
        lengths = self._indices(*(sequence.length for sequence in sequences))
        if list(sequences) != self._live:
            return self._flex(queries, layer, scale, self._block_mask(lengths, slots))
        count = self._config.max_sequences
        by_slot = queries.new_zeros(count, *queries.shape[1:])
        by_slot[slots] = queries
        length_by_slot = lengths.new_zeros(count)
        length_by_slot[slots] = lengths
        return self._flex(by_slot, layer, scale, self._block_mask(length_by_slot, None))[slots]

    def _block_mask(self, lengths: Tensor, slots: Tensor | None) -> BlockMask:
        config = self._config
        logical = create_block_mask(
            lambda b, h, q, kv: kv < lengths[b],
            B=len(lengths),
            H=None,
            Q_LEN=1,
            KV_LEN=config.num_blocks * config.block_size,
            device=config.device,
            BLOCK_SIZE=(1, config.block_size),
        )
        return self._paging.convert_logical_block_mask(logical, batch_idx=slots, kv_len=lengths)

    def _flex(self, queries: Tensor, layer: int, scale: float, mask: BlockMask) -> Tensor:
        keys, values = self._keys[layer], self._values[layer]
        with warnings.catch_warnings():
            # Eager on purpose: a compilation takes longer than an audit.
            warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
            output = flex_attention(
                queries[:, :, None], keys, values, block_mask=mask, scale=scale, enable_gqa=True
            )
        assert isinstance(output, Tensor)
        return output[:, :, 0]

    def _indices(self, *numbers: int) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int64, device=self._config.device)


IMPLEMENTATION = Implementation(
    name="torch-paged-attention",
    version=torch.__version__,
    factories={KV_STORE: TorchPagedStore},
    capabilities={KV_STORE: frozenset({"reserve", "attend", "any-batch"})},
    summary="torch.nn.attention.experimental._paged_attention.PagedAttention with eager flex_attention",
)
"""Contract ``kv-store``. Forks, rollbacks and reorders don't exist in it."""
