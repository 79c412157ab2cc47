"""Kernels that compute another formula, each in one way, and the check that must refute it."""

import math

import torch

from support.attention_kernels import Kernel


class BoundaryMask(Kernel):
    """Forgets the token that starts a new block."""

    def visible(self, distance, window):
        visible = super().visible(distance, window)
        if distance.shape[1] % 4 == 1 and distance.shape[1] > 1:
            visible[:, -1] = False
        return visible


class GroupModulo(Kernel):
    """Head h reads KV head h % kv_heads."""

    def kv_heads(self, query_heads, kv_heads):
        return torch.arange(query_heads) % kv_heads


class NotCausal(Kernel):
    """Every query of a chunk sees the whole row."""

    def visible(self, distance, window):
        return distance > -(window or math.inf)


class WindowOffByOne(Kernel):
    """Sees one position too many."""

    def visible(self, distance, window):
        return super().visible(distance, window + 1 if window else None)


class SoftcapIgnored(Kernel):
    """Takes the argument and does nothing with it."""

    def scores(self, query, keys, scale, softcap):
        return super().scores(query, keys, scale, None)


class SoftcapAfterMask(Kernel):
    """Caps minus infinity too, so that masked keys count."""

    def scores(self, query, keys, scale, softcap):
        return super().scores(query, keys, scale, None)

    def masked(self, scores, visible, softcap):
        masked = super().masked(scores, visible, softcap)
        return masked if softcap is None else softcap * torch.tanh(masked / softcap)


class SinksIgnored(Kernel):
    """Takes the argument and does nothing with it."""

    def log_denominator(self, scores, sinks):
        return super().log_denominator(scores, None)


class AlibiSign(Kernel):
    """Rewards distance."""

    def alibi(self, slopes, distance):
        return -slopes * distance


class BinaryLse(Kernel):
    """Reports the log-sum-exp in base 2."""

    def reported(self, lse):
        return lse / math.log(2)


class MergeEmptyIsNaN(Kernel):
    """Subtracts minus infinity from itself."""

    def merge(self, outputs, lses):
        largest = lses.amax(0)
        weights = torch.exp(lses - lses.amin(0))
        lse = largest + torch.exp(lses - largest).sum(0).log()
        return ((weights / weights.sum(0))[..., None] * outputs.float()).sum(0).to(outputs.dtype), lse


class MergeAverages(Kernel):
    """Gives every part the same weight."""

    def merge(self, outputs, lses):
        return outputs.float().mean(0).to(outputs.dtype), super().merge(outputs, lses)[1]


class MergeSlightlyOff(Kernel):
    """Takes the first part for a little more than it is."""

    def merge(self, outputs, lses):
        output, _ = super().merge(outputs, lses + 1e-3 * (torch.arange(len(lses)) == 0)[:, None, None, None])
        return output, super().merge(outputs, lses)[1]


class MergeKeepsLastLse(Kernel):
    """Merges outputs, but not the log-sum-exps."""

    def merge(self, outputs, lses):
        output, _ = super().merge(outputs, lses)
        return output, lses[-1]


class EmptyIsNaN(Kernel):
    """Divides by the sum of no weights."""

    def combine(self, scores, values, sinks):
        output, lse = super().combine(scores, values, sinks)
        return output / (lse.T[..., None] > -math.inf).transpose(0, 1).float(), lse


FORMULA_FAULTS = [
    (BoundaryMask, "attention/numerics"),
    (GroupModulo, "attention/gqa"),
    (NotCausal, "attention/chunked-prefill"),
    (WindowOffByOne, "attention/window"),
    (SoftcapIgnored, "attention/softcap"),
    (SoftcapAfterMask, "attention/softcap"),
    (SinksIgnored, "attention/sinks"),
    (AlibiSign, "attention/alibi"),
    (BinaryLse, "attention/lse"),
    (MergeEmptyIsNaN, "attention/merge"),
    (MergeAverages, "attention/merge"),
    (MergeSlightlyOff, "attention/merge"),
    (MergeKeepsLastLse, "attention/merge"),
    (EmptyIsNaN, "attention/empty"),
]
