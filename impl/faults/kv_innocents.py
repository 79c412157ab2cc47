"""Correct block managers, stores and kernels that are taken for faulty: a suite must stay silent on each."""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tokenlaw.impl.faults.attention_base import SteppedAttention
from tokenlaw.impl.faults.innocents import Innocent
from tokenlaw.impl.faults.kv_base import FaultyManager, HeadsGoFirst
from tokenlaw.impl.faults.store_base import FaultyLayer, FaultyStore
from tokenlaw.impl.paged.attention import GatherAttention
from tokenlaw.impl.paged.blocks import PhysicalBlocks
from tokenlaw.impl.paged.layer import LayerSequence
from tokenlaw.impl.paged.manager import PagedBlockManager
from tokenlaw.impl.paged.pool import BlockPool
from tokenlaw.impl.paged.sequence import SequenceRecord
from tokenlaw.impl.paged.store import PagedKVStore
from tokenlaw.spec.contracts import CacheConfig, OutOfBlocks


class BlockForTheNextToken(FaultyManager):
    """Takes the block of the token to come with the last token before it: a declared look-ahead of one."""

    def __init__(self, config: CacheConfig) -> None:
        super().__init__(config, lookahead=1)

    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        """Admit, and look ahead."""
        handle = super().allocate(tokens, namespace)
        self._look_ahead(self._record(handle))
        return handle

    def _extend(self, record: SequenceRecord, tokens: Sequence[int]) -> None:
        super()._extend(record, tokens)
        self._look_ahead(record)

    def _look_ahead(self, record: SequenceRecord) -> None:
        full = len(record.table) * self._block_size == len(record.tokens)
        if full and self.num_free_blocks():
            record.table += self._blocks.take(1)


class NoPrefixCache(FaultyManager):
    """Publishes nothing, so that nothing is ever hit."""

    def _publish(self, record: SequenceRecord) -> None:
        pass


class DropsTheLastUnit(FaultyManager):
    """Hits one block less than is cached, because its drafter computes the last block anew."""

    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        """Look at fewer tokens, then append the others."""
        shorter = tokens[: max(0, len(tokens) - self._block_size)]
        if self._blocks_for(len(tokens)) > self.num_free_blocks():
            return super().allocate(tokens, namespace)
        handle = super().allocate(shorter, namespace)
        self.append(handle, tokens[len(shorter) :])
        return handle


class EvictsHeadsFirst(FaultyManager):
    """Evicts the first block of a prefix before those that need it, and stops hits at the hole.

    Catalogues of reports list it as a fault, a head that is freed first (C23). It costs hits and no content,
    so here it counts as efficiency (K14 of the design), and it is an innocent.
    """

    physical = HeadsGoFirst


class _NewestGoesFirst(BlockPool):
    def pop_evictable(self) -> int | None:
        if self._evictable:
            self._evictable.move_to_end(next(reversed(self._evictable)), last=False)
        return super().pop_evictable()

    def take(self) -> int:
        if not self._empty and self._evictable:
            self._evictable.move_to_end(next(reversed(self._evictable)), last=False)
        return super().take()


class EvictsNewestFirst(FaultyManager):
    """Evicts what was used last."""

    pool = _NewestGoesFirst


class _OneForgetsAll(PhysicalBlocks):
    def take(self, count: int) -> list[int]:
        if count > self.device.available() - sum(map(self.device.is_evictable, range(self.num_blocks))):
            self.reset_cache()
        return super().take(count)


class ForgetsEverything(FaultyManager):
    """Drops the whole cache as soon as one cached block is needed."""

    physical = _OneForgetsAll


class _OwnBlocks(FaultyLayer):
    def fork(self, sequence: LayerSequence) -> LayerSequence:
        """Blocks of its own with the same content."""
        keys, values = self.read(sequence)
        copy = LayerSequence(self._manager.allocate([0] * sequence.length))
        self.append(copy, keys, values)
        return copy


class CopiesWholeForks(FaultyStore):
    """A fork shares nothing: everything is copied at once."""

    first = others = _OwnBlocks

    def _fork(self, stored: list[LayerSequence]) -> list[LayerSequence]:
        forked: list[LayerSequence] = []
        try:
            for layer, part in zip(self._layers, stored, strict=True):
                forked.append(layer.fork(part))
        except OutOfBlocks:
            for layer, part in zip(self._layers, forked, strict=False):
                layer.free(part)
            raise
        return forked

    def reorder(self, sequences: Sequence[int], parents: Sequence[int]) -> None:
        """Copy every parent, then replace the beams; what was copied goes if not everything fits."""
        heirs: list[list[LayerSequence]] = []
        try:
            for parent in parents:
                heirs.append(self._fork(self._record(sequences[parent])))
        except OutOfBlocks:
            for heir in heirs:
                self._release(heir)
            raise
        for sequence, heir in zip(sequences, heirs, strict=True):
            self._release(self._record(sequence))
            self._stored[sequence] = heir


class SplitsByBatch(SteppedAttention):
    """Sums each row in as many parts as the batch has rows: bits depend on the batch, values don't."""

    parts = 1

    def attend(self, query: Tensor, *arguments: Any, **options: Any) -> Any:
        """Take down how many rows there are."""
        self.parts = len(query)
        return super().attend(query, *arguments, **options)

    def combine(self, scores: Tensor, values: Tensor, sinks: Tensor | None) -> tuple[Tensor, Tensor]:
        """Partial sums, one after the other."""
        lse = self.log_denominator(scores, sinks)
        weights = self.weights(scores, lse)
        output = torch.zeros(scores.shape[1], scores.shape[0], values.shape[-1])
        for part, others in zip(weights.chunk(self.parts, -1), values.chunk(self.parts), strict=True):
            output = output + torch.einsum("hqk,khd->qhd", part, others)
        return output, lse.T


class RoundsWeights(SteppedAttention):
    """Rounds probabilities to the dtype of the query before they meet the values, as fused kernels do."""

    dtype = torch.float32

    def attend(self, query: Tensor, *arguments: Any, **options: Any) -> Any:
        """Take the dtype down."""
        self.dtype = query.dtype
        return super().attend(query, *arguments, **options)

    def weights(self, scores: Tensor, lse: Tensor) -> Tensor:
        """Rounded."""
        return super().weights(scores, lse).to(self.dtype).float()


_SECTION = "the length that is observed counts every scheduled token, and the look-ahead is declared"
_EFFICIENCY = "what is cached, and for how long, changes the hit rate and never the content"
_ORPHANS = (
    "which block goes first changes the hit rate and never the content: hits stop at the hole, and what lies "
    "behind it is out of reach until its head is cached again"
)
_ROUNDING = "sums in another order differ within the bound; equal bits aren't claimed"
_ROWS: tuple[tuple[str, str, str, Any], ...] = (
    ("manager", "vllm-project/vllm 55092", "identical blocks needn't be merged", FaultyManager),
    ("declared_lookahead", "vllm-project/vllm 55092",
     "blocks that a rejection leaves for the next drafts are declared",
     partial(PagedBlockManager, lookahead=4)),
    ("block_for_the_next_token", "GeeeekExplorer/nano-vllm 30, 66, 71, 150, 240", _SECTION,
     BlockForTheNextToken),
    ("no_prefix_cache", "llm-d/llm-d-inference-sim 704, 705", _EFFICIENCY, NoPrefixCache),
    ("drops_the_last_unit", "vllm-project/vllm 54360, 51771", _EFFICIENCY, DropsTheLastUnit),
    ("evicts_heads_first", "LMCache/LMCache 443; llm-d/llm-d-inference-sim 704", _ORPHANS, EvictsHeadsFirst),
    ("evicts_newest_first", "sgl-project/sglang 32459", _EFFICIENCY, EvictsNewestFirst),
    ("forgets_everything", "vllm-project/vllm 11186, 18668", _EFFICIENCY, ForgetsEverything),
    ("store", "vllm-project/vllm 55092", "room is made in whole blocks", PagedKVStore),
    ("copies_whole_forks", "vllm-project/vllm 55092", "forks needn't share", CopiesWholeForks),
    ("kernel", "vllm-project/vllm 5543, 7845", _ROUNDING, SteppedAttention),
    ("gathering_kernel", "vllm-project/vllm 42699", _ROUNDING, GatherAttention),
    ("splits_by_batch", "vllm-project/vllm 39146; kekzl/imp 1492; openvinotoolkit/openvino.genai 4367",
     _ROUNDING, SplitsByBatch),
    ("rounds_weights", "vllm-project/vllm 5543", "the bound counts this rounding", RoundsWeights),
)  # fmt: skip

KV_INNOCENTS: Mapping[str, Innocent] = {row[0]: Innocent(*row) for row in _ROWS}
"""Exact block managers, stores and kernels by their names."""
