"""Faults of attention kernels that compute another formula."""

import math

import torch
from torch import Tensor

from tokenlaw.impl.faults.attention_base import Scores, State, SteppedAttention


class BoundaryMask(SteppedAttention):
    """The token that starts a new block is forgotten.

    Classes: C17, C13.
    Report: pytorch/pytorch 159247, 160861.
    Effect: rows with one token in their last block lack it.
    Weakest check: attention/numerics.
    """

    def visible(self, distance: Tensor, window: int | None) -> Tensor:
        """All but a token behind a block of four."""
        visible = super().visible(distance, window)
        if distance.shape[1] % 4 == 1 and distance.shape[1] > 1:
            visible[:, -1] = False
        return visible


class GroupModulo(SteppedAttention):
    """Query head h reads KV head h % kv_heads.

    Classes: C17.
    Report: flashinfer-ai/flashinfer 1148.
    Effect: grouped heads read each other's keys.
    Weakest check: attention/gqa.
    """

    def kv_heads(self, query_heads: int, kv_heads: int) -> Tensor:
        """Heads dealt out in turn."""
        return torch.arange(query_heads) % kv_heads


class NotCausal(SteppedAttention):
    """Every query of a chunk sees the whole row.

    Classes: C17, C14.
    Report: Lightning-AI/litgpt 2182.
    Effect: earlier tokens see later ones.
    Weakest check: attention/chunked-prefill.
    """

    def visible(self, distance: Tensor, window: int | None) -> Tensor:
        """The window alone."""
        return distance > -(window or math.inf)


class CachedPrefixIgnored(SteppedAttention):
    """The queries of a chunk stand at the head of the row, as if nothing was cached.

    Classes: C17.
    Report: tanishqkumar/ssd 23; sgl-project/sgl-kernel-xpu 196.
    Effect: a prefill behind a hit misses most of its keys.
    Weakest check: attention/chunked-prefill.
    """

    def distance(self, num_queries: int, length: int) -> Tensor:
        """Distances from the first positions, if there is more than one query."""
        return super().distance(num_queries, length) + (length - num_queries if num_queries > 1 else 0)


class WindowOffByOne(SteppedAttention):
    """The window is one position too wide.

    Classes: C14.
    Report: huggingface/transformers 48280.
    Effect: a token that must be gone takes part.
    Weakest check: attention/window.
    """

    def visible(self, distance: Tensor, window: int | None) -> Tensor:
        """One more."""
        return super().visible(distance, window + 1 if window else None)


class WindowIgnored(SteppedAttention):
    """The window is taken, and nothing is done with it.

    Classes: C14.
    Report: EricLBuehler/mistral.rs 246.
    Effect: long rows see everything.
    Weakest check: attention/window.
    """

    def visible(self, distance: Tensor, window: int | None) -> Tensor:
        """Causal, no more."""
        return super().visible(distance, None)


class SoftcapIgnored(SteppedAttention):
    """The softcap is taken, and nothing is done with it.

    Classes: C17.
    Report: none known of this form; nearest is flashinfer-ai/flashinfer 4014 (a stale scale).
    Effect: large scores count too much.
    Weakest check: attention/softcap.
    """

    def scores(self, query: Tensor, keys: Tensor, scale: float, softcap: float | None) -> Tensor:
        """Uncapped."""
        return super().scores(query, keys, scale, None)


class SoftcapAfterMask(SteppedAttention):
    """The cap comes after the mask, and caps minus infinity too.

    Classes: C17.
    Report: none known of this form; nearest is flashinfer-ai/flashinfer 3717 (masked keys count).
    Effect: keys that mustn't be seen take part.
    Weakest check: attention/softcap.
    """

    def scores(self, query: Tensor, keys: Tensor, scale: float, softcap: float | None) -> Tensor:
        """Uncapped."""
        return super().scores(query, keys, scale, None)

    def masked(self, scores: Tensor, visible: Tensor, softcap: float | None) -> Tensor:
        """Masked, then capped."""
        masked = super().masked(scores, visible, softcap)
        return masked if softcap is None else softcap * torch.tanh(masked / softcap)


class SinksIgnored(SteppedAttention):
    """Sinks are taken, and nothing is done with them.

    Classes: C17.
    Report: flashinfer-ai/flashinfer 1028 (an option that one path doesn't see).
    Effect: the denominator lacks the sinks.
    Weakest check: attention/sinks.
    """

    def log_denominator(self, scores: Tensor, sinks: Tensor | None) -> Tensor:
        """The scores alone."""
        return super().log_denominator(scores, None)


class AlibiSign(SteppedAttention):
    """ALiBi rewards distance.

    Classes: C21.
    Report: none known of this form; nearest is GeeeekExplorer/nano-vllm 67 (a position off by one).
    Effect: far keys count most.
    Weakest check: attention/alibi.
    """

    def alibi(self, slopes: Tensor, distance: Tensor) -> Tensor:
        """With the other sign."""
        return -slopes * distance


class PositionOffByOne(SteppedAttention):
    """The query stands one position too far.

    Classes: C21, C13.
    Report: GeeeekExplorer/nano-vllm 67.
    Effect: a chunk sees one token ahead, a window loses its oldest one.
    Weakest check: attention/window.
    """

    def distance(self, num_queries: int, length: int) -> Tensor:
        """Seen from the next position."""
        return super().distance(num_queries, length) - 1


class BinaryLse(SteppedAttention):
    """The log-sum-exp is in base 2.

    Classes: C20.
    Report: flashinfer-ai/flashinfer 3838.
    Effect: whoever merges with it gets wrong weights.
    Weakest check: attention/lse.
    """

    def reported(self, lse: Tensor) -> Tensor:
        """In base 2."""
        return lse / math.log(2)


class EmptyIsNaN(SteppedAttention):
    """A row without tokens is divided by the sum of no weights.

    Classes: C20, C15.
    Report: flashinfer-ai/flashinfer 440, 363.
    Effect: NaN in rows that hold nothing.
    Weakest check: attention/empty.
    """

    def combine(self, scores: Scores, values: Tensor, sinks: Tensor | None) -> State:
        """Divide once more."""
        output, lse = super().combine(scores, values, sinks)
        return output / (lse[..., None] > -math.inf).float(), lse


FORMULA_FAULTS = (
    ("boundary_mask", BoundaryMask),
    ("group_modulo", GroupModulo),
    ("not_causal", NotCausal),
    ("cached_prefix_ignored", CachedPrefixIgnored),
    ("window_off_by_one", WindowOffByOne),
    ("window_ignored", WindowIgnored),
    ("softcap_ignored", SoftcapIgnored),
    ("softcap_after_mask", SoftcapAfterMask),
    ("sinks_ignored", SinksIgnored),
    ("alibi_sign", AlibiSign),
    ("position_off_by_one", PositionOffByOne),
    ("binary_lse", BinaryLse),
    ("empty_is_nan", EmptyIsNaN),
)
