"""Faults of attention kernels that show at sizes beyond the smallest: long rows, chunks, pages, heads."""

import torch
from torch import Tensor

from tokenlaw.impl.faults.attention_base import Scores, State, SteppedAttention


class LastTileOfOneKey(SteppedAttention):
    """Keys are worked through in tiles of 512, and a last tile of a single key is left out.

    Classes: C17.
    Report: flashinfer-ai/flashinfer 3717 (the mask at the boundary of a tile).
    Effect: a single query over 513, 1025, ... tokens misses the last key, its own.
    Weakest check: attention/numerics.
    """

    tile = 512

    def masked(self, scores: Scores, visible: Tensor, softcap: float | None) -> Scores:
        """Scores without the last key, where that stands alone."""
        length = visible.shape[1]
        if length > self.tile and length % self.tile == 1 and len(visible) == 1:
            visible = torch.nn.functional.pad(visible[:, :-1], (0, 1))
        return super().masked(scores, visible, softcap)


class LastSmallTileOfOneKey(LastTileOfOneKey):
    """Keys are worked through in tiles of 64, and a last tile of a single key is left out.

    Classes: C17.
    Report: flashinfer-ai/flashinfer 3717 (the mask at the boundary of a tile).
    Effect: a single query over 65, 129, ... tokens misses the last key, its own.
    Weakest check: attention/numerics.
    """

    tile = 64


class SecondQueryTile(SteppedAttention):
    """The queries of a chunk behind the first 16 stand one position too far.

    Classes: C17.
    Report: sgl-project/sgl-kernel-xpu 196 (several queries behind a cached prefix).
    Effect: tokens of longer chunks see the one behind them.
    Weakest check: attention/chunked-prefill.
    """

    def distance(self, num_queries: int, length: int) -> Tensor:
        """Seen from the next position in every tile but the first."""
        return super().distance(num_queries, length) - (torch.arange(num_queries) >= 16).long()[:, None]


class SixteenSlotsOfAPage(SteppedAttention):
    """A page is read in the kernel's own size of 16 slots; what is behind them repeats the last of them.

    Classes: C17, C18.
    Report: vllm-project/vllm 27547; flashinfer-ai/flashinfer 810.
    Effect: pages of 32 slots and more lose half of their tokens.
    Weakest check: attention/numerics.
    """

    def gather(self, cache: Tensor, table: Tensor, length: int) -> Tensor:
        """With slot 15 in place of those behind it."""
        slots = torch.arange(cache.shape[1]).clamp(max=15)
        return super().gather(cache[:, slots], table, length)


class RestOfHeadSize(SteppedAttention):
    """Heads are read in vectors of 32 numbers, and an incomplete last one is left out of the scores.

    Classes: C17, C18.
    Report: vllm-project/vllm 2622; flashinfer-ai/flashinfer 3022 (one head size is wrong, others aren't).
    Effect: head sizes such as 80 have other scores; powers of two are right.
    Weakest check: attention/numerics.
    """

    def scores(self, query: Tensor, keys: Tensor, scale: float, softcap: float | None) -> Scores:
        """From whole vectors, where there is one."""
        whole = query.shape[-1] // 32 * 32 or query.shape[-1]
        return super().scores(query[..., :whole], keys[..., :whole], scale, softcap)


class WideHeads(SteppedAttention):
    """Values of heads of more than 128 channels are read for the first 128 alone.

    Classes: C17.
    Report: flashinfer-ai/flashinfer 3022 (values of head size 256 come from the wrong page).
    Effect: the channels behind are zero.
    Weakest check: attention/numerics.
    """

    def combine(self, scores: Scores, values: Tensor, sinks: Tensor | None) -> State:
        """With zeros behind channel 128."""
        output, lse = super().combine(scores, values, sinks)
        return output * (torch.arange(output.shape[-1]) < 128), lse


class LseWithoutSinks(SteppedAttention):
    """Sinks join the denominator, and are missing in the log-sum-exp that is reported.

    Classes: C20.
    Report: flashinfer-ai/flashinfer 3838 (the log-sum-exp is wrong while outputs seem right).
    Effect: whoever merges with it gives the sink's share to the keys of other parts.
    Weakest check: attention/lse.
    """

    def combine(self, scores: Scores, values: Tensor, sinks: Tensor | None) -> State:
        """Report the scores alone."""
        output, _ = super().combine(scores, values, sinks)
        return output, torch.logsumexp(scores, -1).T


class WindowOfLastQuery(SteppedAttention):
    """The first page that is read is the first in the window of the chunk's last query.

    Classes: C14, C17.
    Report: Lightning-AI/litgpt 2182; ml-explore/mlx-lm 1914 (window and several queries at once).
    Effect: earlier queries of a chunk lose their oldest keys.
    Weakest check: attention/window.
    """

    slots = 1

    def gather(self, cache: Tensor, table: Tensor, length: int) -> Tensor:
        """Remember how large a page is."""
        self.slots = cache.shape[1]
        return super().gather(cache, table, length)

    def visible(self, distance: Tensor, window: int | None) -> Tensor:
        """Without the pages before that one."""
        length = distance.shape[1]
        first = 0 if window is None else max(0, length - window) // self.slots * self.slots
        return super().visible(distance, window) & (torch.arange(length) >= first)


SIZE_FAULTS = (
    ("last_tile_of_one_key", LastTileOfOneKey),
    ("last_small_tile_of_one_key", LastSmallTileOfOneKey),
    ("second_query_tile", SecondQueryTile),
    ("sixteen_slots_of_a_page", SixteenSlotsOfAPage),
    ("rest_of_head_size", RestOfHeadSize),
    ("wide_heads", WideHeads),
    ("lse_without_sinks", LseWithoutSinks),
    ("window_of_last_query", WindowOfLastQuery),
)
