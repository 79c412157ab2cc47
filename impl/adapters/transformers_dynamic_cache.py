"""Adapter to the ``DynamicCache`` of Hugging Face transformers 5: one dense cache for each sequence.

Importing this module needs no transformers; building a store does.
"""

from collections.abc import Sequence
from copy import deepcopy
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tokenlaw.spec.contracts import KV_STORE, CacheConfig, ContractError, Implementation, OutOfBlocks

NOT_INSTALLED = "not installed"


class CachedSequence:
    """Handle of a sequence: its cache, or None once it is freed."""

    def __init__(self, cache: Any) -> None:
        self.cache = cache


class DynamicCacheStore:
    """A `KVStore` of ``DynamicCache`` objects, used as ``generate`` and its callers use them.

    A dense cache has no pool and no limit. The only refusal is the adapter's own: no more than
    ``max_sequences`` live sequences, so ``num_blocks`` and ``block_size`` mean nothing here.

    Raises
    ------
    ContractError
        transformers isn't installed.
    """

    def __init__(self, config: CacheConfig) -> None:
        self._config = config
        self._cache_class = _dynamic_cache_class()
        self._live = 0

    def allocate(self) -> CachedSequence:
        """Start an empty sequence; raises `OutOfBlocks` beyond ``max_sequences`` live ones."""
        return self._admit(self._cache_class())

    def append(
        self,
        sequence: CachedSequence,
        keys: Float[Tensor, "layers kv_heads tokens head_size"],
        values: Float[Tensor, "layers kv_heads tokens head_size"],
    ) -> None:
        """``DynamicCache.update`` in every layer."""
        for layer in range(self._config.num_layers):
            self.append_layer(sequence, layer, keys[layer], values[layer])

    def append_layer(
        self,
        sequence: CachedSequence,
        layer: int,
        keys: Float[Tensor, "kv_heads tokens head_size"],
        values: Float[Tensor, "kv_heads tokens head_size"],
    ) -> None:
        """``DynamicCache.update``, as an attention layer calls it."""
        _cache(sequence).update(keys[None], values[None], layer)

    def read(
        self, sequence: CachedSequence, layer: int
    ) -> tuple[Float[Tensor, "kv_heads length head_size"], Float[Tensor, "kv_heads length head_size"]]:
        """Keys and values of one layer; a layer has tensors from its first update on."""
        cache, config = _cache(sequence), self._config
        if layer < len(cache.layers) and cache.layers[layer].is_initialized:
            return cache.layers[layer].keys[0], cache.layers[layer].values[0]
        dtype = getattr(torch, config.dtype)
        empty = torch.empty(config.num_kv_heads, 0, config.head_size, dtype=dtype, device=config.device)
        return empty, empty

    def free(self, sequence: CachedSequence) -> None:
        """Drop the cache; a second time raises `ValueError`."""
        _cache(sequence)
        sequence.cache = None
        self._live -= 1

    def fork(self, sequence: CachedSequence) -> CachedSequence:
        """``batch_repeat_interleave(2)``, then a row for each side by ``batch_select_indices``.

        Rows are split off deep copies: a plain copy of a ``DynamicCache`` shares its layers.
        """
        self._require_sequence()
        both = deepcopy(_cache(sequence))
        both.batch_repeat_interleave(2)
        sequence.cache = self._row(both, 0)
        return self._admit(self._row(both, 1))

    def rollback(self, sequence: CachedSequence, count: int) -> None:
        """``DynamicCache.crop(-count)``.

        The limits are checked here, as ``generate`` does by construction: ``crop`` itself takes more than the
        length without a word and leaves nothing. It isn't called for 0, which removed everything in versions
        in which a number that isn't negative was the final length.
        """
        cache = _cache(sequence)
        length = min(cache.get_seq_length(layer) for layer in range(self._config.num_layers))
        if not 0 <= count <= length:
            raise ValueError(f"there are {length} positions: can't roll back {count}")
        if count:
            cache.crop(-count)

    def reorder(self, sequences: Sequence[CachedSequence], parents: Sequence[int]) -> None:
        """Join equally long caches to one batch, ``reorder_cache(parents)``, split it into its rows.

        Empty caches stay as they are: transformers 5.24.0 skips batch operations on a layer without
        positions, so its batch size stays, and the next ``update`` with another one raises.
        """
        caches = [_cache(sequence) for sequence in sequences]
        if not caches[0].get_seq_length():
            return
        batch = self._cache_class()
        for layer in range(len(caches[0].layers)):
            keys = torch.cat([cache.layers[layer].keys for cache in caches])
            values = torch.cat([cache.layers[layer].values for cache in caches])
            batch.update(keys, values, layer)
        batch.reorder_cache(self._indices(*parents))
        for row, sequence in enumerate(sequences):
            sequence.cache = self._row(batch, row)

    def _row(self, batch: Any, row: int) -> Any:
        cache = deepcopy(batch)
        cache.batch_select_indices(self._indices(row))
        return cache

    def _require_sequence(self) -> None:
        if self._live >= self._config.max_sequences:
            raise OutOfBlocks(f"all {self._config.max_sequences} sequences (max_sequences) are in use")

    def _admit(self, cache: Any) -> CachedSequence:
        self._require_sequence()
        self._live += 1
        return CachedSequence(cache)

    def _indices(self, *rows: int) -> Tensor:
        return torch.tensor(rows, dtype=torch.int64, device=self._config.device)


def _cache(sequence: CachedSequence) -> Any:
    if sequence.cache is None:
        raise ValueError("this sequence was freed")
    return sequence.cache


def _dynamic_cache_class() -> Any:
    try:
        return import_module("transformers.cache_utils").DynamicCache
    except ModuleNotFoundError as error:
        raise ContractError(
            f"transformers-dynamic-cache: {error}; install it with: pip install 'tokenlaw[transformers]'"
        ) from error


def _version() -> str:
    try:
        return version("transformers")
    except PackageNotFoundError:
        return NOT_INSTALLED


IMPLEMENTATION = Implementation(
    name="transformers-dynamic-cache",
    version=_version(),
    factories={KV_STORE: DynamicCacheStore},
    capabilities={KV_STORE: frozenset({"fork", "rollback", "reorder", "layers"})},
    summary="transformers.DynamicCache: dense, one cache for each sequence, batched for forks and beams",
)
"""Contract ``kv-store``; needs the extra ``transformers``."""
