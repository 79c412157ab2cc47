"""Faults of attention kernels that read, keep or write what they must not."""

from typing import Any

import torch
from torch import Tensor

from tokenlaw.impl.faults.attention_base import SteppedAttention


class TailByProduct(SteppedAttention):
    """Weights are masked, and the whole last page is multiplied: 0 * NaN is NaN.

    Classes: C15.
    Report: Dao-AILab/flash-attention 1745, 2374; vllm-project/vllm 53856.
    Effect: NaN in a slot that was never written reaches the output.
    Weakest check: attention/poison.
    """

    slots = 0

    def gather(self, cache: Tensor, table: Tensor, length: int) -> Tensor:
        """All slots of the row's pages."""
        return cache[table[: -(-length // cache.shape[1])]].reshape(-1, *cache.shape[2:])

    def scores(self, query: Tensor, keys: Tensor, scale: float, softcap: float | None) -> Tensor:
        """Scores of all slots."""
        self.slots = len(keys)
        return super().scores(query, keys, scale, softcap)

    def masked(self, scores: Tensor, visible: Tensor, softcap: float | None) -> Tensor:
        """With the rest of the last page hidden."""
        tail = torch.zeros(visible.shape[0], self.slots - visible.shape[1], dtype=torch.bool)
        return super().masked(scores, torch.cat((visible, tail), 1), softcap)

    def alibi(self, slopes: Tensor, distance: Tensor) -> Tensor:
        """Nothing behind the row."""
        return torch.nn.functional.pad(slopes * distance, (0, self.slots - distance.shape[1]))


class AdditiveMask(TailByProduct):
    """Keys that aren't seen get minus infinity added, which NaN survives.

    Classes: C15.
    Report: deepbeepmeep/Wan2GP 1628; Dao-AILab/flash-attention 1395.
    Effect: NaN in a key behind the row reaches the output.
    Weakest check: attention/poison.
    """

    def masked(self, scores: Tensor, visible: Tensor, softcap: float | None) -> Tensor:
        """Scores plus a mask."""
        return scores + super().masked(torch.zeros_like(scores), visible, softcap)


class KeepsLengths(SteppedAttention):
    """The plan of the longest row so far is kept.

    Classes: C16.
    Report: alibaba/rtp-llm 1321; flashinfer-ai/flashinfer 1028.
    Effect: after a big batch, short rows lose their first token.
    Weakest check: attention/independence.
    """

    def __init__(self) -> None:
        self.longest = 0

    def distance(self, num_queries: int, length: int) -> Tensor:
        """Remember the longest row."""
        self.longest = max(self.longest, length)
        return super().distance(num_queries, length)

    def visible(self, distance: Tensor, window: int | None) -> Tensor:
        """Without the first token of rows that are much shorter."""
        visible = super().visible(distance, window)
        if self.longest > distance.shape[1] + 16:
            visible[:, :1] = distance.shape[1] == 1
        return visible


class RightOnce(SteppedAttention):
    """The first call leaves something behind that spoils every other.

    Classes: C16.
    Report: tenstorrent/vllm-tt-plugin 104; rasbt/LLMs-from-scratch 925.
    Effect: only the first call is right.
    Weakest check: attention/independence.
    """

    calls = 0

    def scores(self, query: Tensor, keys: Tensor, scale: float, softcap: float | None) -> Tensor:
        """Twice the scale from the second call on."""
        return super().scores(query, keys, scale if self.calls == 1 else 2 * scale, softcap)

    def attend(self, *arguments: Any, **options: Any) -> Any:
        """Count the call."""
        self.calls += 1
        return super().attend(*arguments, **options)


class KeepsScale(SteppedAttention):
    """A graph is kept by the shapes of a call, without its scale.

    Classes: C16.
    Report: flashinfer-ai/flashinfer 4014.
    Effect: an equal shape with another scale gets the old one.
    Weakest check: attention/independence.
    """

    def __init__(self) -> None:
        self.graphs: dict[Any, float] = {}

    def attend(self, query: Tensor, key_cache: Tensor, value_cache: Tensor, block_tables: Tensor,
               lengths: Tensor, scale: float, **options: Any) -> Any:  # fmt: skip
        """Attend with the scale of the first such call."""
        scale = self.graphs.setdefault((query.shape, tuple(lengths.tolist())), scale)
        return super().attend(query, key_cache, value_cache, block_tables, lengths, scale, **options)


class IgnoresStrides(SteppedAttention):
    """A view is read as if it were contiguous.

    Classes: C18.
    Report: flashinfer-ai/flashinfer 527; vllm-project/vllm 22003.
    Effect: keys of other slots are read.
    Weakest check: attention/layout.
    """

    def gather(self, cache: Tensor, table: Tensor, length: int) -> Tensor:
        """With the strides of a contiguous cache."""
        flat = torch.as_strided(cache, cache.shape, torch.empty(cache.shape).stride())
        return super().gather(flat, table, length)


class LogicalIsPhysical(SteppedAttention):
    """The page table is taken, and nothing is done with it.

    Classes: C17.
    Report: golang-design/accel 10; tanishqkumar/ssd 23.
    Effect: rows read the pages of whoever is there.
    Weakest check: attention/placement.
    """

    def gather(self, cache: Tensor, table: Tensor, length: int) -> Tensor:
        """Pages 0, 1, 2, ..."""
        return super().gather(cache, torch.arange(len(table)) % len(cache), length)


class RowOrder(SteppedAttention):
    """The first row has the page table of the second.

    Classes: C17, C18.
    Report: meta-pytorch/attention-gym 189; sgl-project/sglang-jax 1545.
    Effect: a row reads another sequence.
    Weakest check: attention/placement.
    """

    def attend(self, query: Tensor, key_cache: Tensor, value_cache: Tensor, block_tables: Tensor,
               lengths: Tensor, scale: float, **options: Any) -> Any:  # fmt: skip
        """Attend with the wrong table, where that is long enough."""
        if len(lengths) > 1 and lengths[0] < lengths[1]:
            block_tables = block_tables.clone()
            block_tables[0] = block_tables[1]
        return super().attend(query, key_cache, value_cache, block_tables, lengths, scale, **options)


class UnusedEntries(SteppedAttention):
    """What stands in the table behind the last block reaches the output.

    Classes: C16.
    Report: tenstorrent/vllm-tt-plugin 104; vllm-project/vllm 39064.
    Effect: a relative error of 1e-6 for each id behind the row.
    Weakest check: attention/placement.
    """

    tilt = 0.0

    def scores(self, query: Tensor, keys: Tensor, scale: float, softcap: float | None) -> Tensor:
        """With a scale that depends on them."""
        return super().scores(query, keys, scale * (1 + self.tilt), softcap)

    def gather(self, cache: Tensor, table: Tensor, length: int) -> Tensor:
        """Look behind the row."""
        used = -(-length // cache.shape[1])
        self.tilt = 1e-6 * float(table[used:].clamp(min=0).sum())
        return super().gather(cache, table, length)


class NarrowAddresses(SteppedAttention):
    """Slot numbers have too few bits.

    Classes: C18.
    Report: vllm-project/vllm 1486, 1514; flashinfer-ai/flashinfer 3130.
    Effect: pages with large ids are read at the wrong place.
    Weakest check: attention/placement.
    """

    def gather(self, cache: Tensor, table: Tensor, length: int) -> Tensor:
        """Pages whose first slot is taken modulo 64."""
        last = max(1, 64 // cache.shape[1])
        return super().gather(cache, table % last, length)


class ScalesQueryInPlace(SteppedAttention):
    """The query is scaled where it stands.

    Classes: C16, C21.
    Report: ml-explore/mlx-lm 1097 (a value that the caller holds is changed).
    Effect: the caller's query is another one after the call.
    Weakest check: attention/inputs.
    """

    def attend(self, query: Tensor, key_cache: Tensor, value_cache: Tensor, block_tables: Tensor,
               lengths: Tensor, scale: float, **options: Any) -> Any:  # fmt: skip
        """Scale, then attend."""
        query *= scale
        return super().attend(query, key_cache, value_cache, block_tables, lengths, 1.0, **options)


class ZeroesTail(SteppedAttention):
    """The rest of the last page is cleared in the caller's cache.

    Classes: C16.
    Report: none known of this form; nearest is ml-explore/mlx-lm 1097 (a value that the caller
    holds is changed).
    Effect: what another step wrote there is lost.
    Weakest check: attention/inputs.
    """

    def gather(self, cache: Tensor, table: Tensor, length: int) -> Tensor:
        """Clear, then gather."""
        if length % cache.shape[1]:
            cache[table[length // cache.shape[1]], length % cache.shape[1] :] = 0
        return super().gather(cache, table, length)


MEMORY_FAULTS = (
    ("tail_by_product", TailByProduct),
    ("additive_mask", AdditiveMask),
    ("keeps_lengths", KeepsLengths),
    ("right_once", RightOnce),
    ("keeps_scale", KeepsScale),
    ("ignores_strides", IgnoresStrides),
    ("logical_is_physical", LogicalIsPhysical),
    ("row_order", RowOrder),
    ("unused_entries", UnusedEntries),
    ("narrow_addresses", NarrowAddresses),
    ("scales_query_in_place", ScalesQueryInPlace),
    ("zeroes_tail", ZeroesTail),
)
