"""Faults of attention kernels in merging the states of parts."""

import torch
from torch import Tensor

from tokenlaw.impl.faults.attention_base import SteppedAttention

Merged = tuple[Tensor, Tensor]


class MergeEmptyIsNaN(SteppedAttention):
    """Merging subtracts minus infinity from itself.

    Classes: C20.
    Report: flashinfer-ai/flashinfer 440, 363.
    Effect: NaN where a part is empty.
    Weakest check: attention/merge.
    """

    def merge(self, outputs: Tensor, lses: Tensor) -> Merged:
        """Weights from the smallest state."""
        largest = lses.amax(0)
        weights = torch.exp(lses - lses.amin(0))
        lse = largest + torch.exp(lses - largest).sum(0).log()
        return ((weights / weights.sum(0))[..., None] * outputs.float()).sum(0).to(outputs.dtype), lse


class MergeAverages(SteppedAttention):
    """Every part has the same weight.

    Classes: C20.
    Report: flashinfer-ai/flashinfer 728.
    Effect: short parts count too much.
    Weakest check: attention/merge.
    """

    def merge(self, outputs: Tensor, lses: Tensor) -> Merged:
        """The mean of the parts."""
        return outputs.float().mean(0).to(outputs.dtype), super().merge(outputs, lses)[1]


class MergeSlightlyOff(SteppedAttention):
    """The first part is taken for a thousandth more than it is.

    Classes: C20.
    Report: flashinfer-ai/flashinfer 3838 (hidden by i.i.d. data and loose thresholds).
    Effect: outputs differ by up to 0.1 %.
    Weakest check: attention/merge.
    """

    def merge(self, outputs: Tensor, lses: Tensor) -> Merged:
        """With a first log-sum-exp that is .001 too large."""
        first = (torch.arange(len(lses)) == 0).reshape(-1, *[1] * (lses.dim() - 1))
        output, _ = super().merge(outputs, lses + 1e-3 * first)
        return output, super().merge(outputs, lses)[1]


class MergeKeepsLastLse(SteppedAttention):
    """Outputs are merged, log-sum-exps are not.

    Classes: C20.
    Report: vllm-project/vllm 22003.
    Effect: a further merge gets wrong weights.
    Weakest check: attention/merge.
    """

    def merge(self, outputs: Tensor, lses: Tensor) -> Merged:
        """With the log-sum-exp of the last part."""
        return super().merge(outputs, lses)[0], lses[-1]


MERGE_FAULTS = (
    ("merge_empty_is_nan", MergeEmptyIsNaN),
    ("merge_averages", MergeAverages),
    ("merge_slightly_off", MergeSlightlyOff),
    ("merge_keeps_last_lse", MergeKeepsLastLse),
)
