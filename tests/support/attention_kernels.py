"""Honest attention kernels, in steps that a fault can override, and the audit of a kernel."""

import math

import torch
from torch import Tensor

from tokenlaw.properties.attention_suite import AttentionSuite
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import PAGED_ATTENTION, Implementation
from tokenlaw.spec.suites import Profile
from tokenlaw.spec.verdicts import Verdict

ALL = frozenset(CAPABILITY_MEMBERS[PAGED_ATTENTION])


def implementation(kernel, capabilities=ALL):
    return Implementation(
        "kernel", "1", {PAGED_ATTENTION: kernel}, {PAGED_ATTENTION: frozenset(capabilities)}
    )


class Kernel:
    """Row by row, every step of its own."""

    def attend(
        self, query, key_cache, value_cache, block_tables, lengths, scale, *,
        window=None, softcap=None, sinks=None, alibi_slopes=None, return_lse=False,
    ):  # fmt: skip
        states = []
        for row, length in enumerate(self.lengths(lengths)):
            keys = self.gather(key_cache, block_tables[row], length).float()
            values = self.gather(value_cache, block_tables[row], length).float()
            heads = self.kv_heads(query.shape[2], key_cache.shape[2])
            scores = self.scores(query[row].float(), keys[:, heads], scale, softcap)
            distance = self.distance(query.shape[1], length)
            if alibi_slopes is not None:
                scores = scores + self.alibi(alibi_slopes[:, None, None], distance)
            scores = self.masked(scores, self.visible(distance, window), softcap)
            states.append(self.combine(scores, values[:, heads], sinks))
        output = torch.stack([state[0] for state in states]).to(query.dtype)
        return (output, torch.stack([state[1] for state in states])) if return_lse else output

    def lengths(self, lengths):
        return lengths.tolist()

    def gather(self, cache: Tensor, table: Tensor, length: int) -> Tensor:
        pages = cache[table[: -(-length // cache.shape[1])].long()]
        return pages.reshape(-1, *cache.shape[2:])[:length]

    def kv_heads(self, query_heads, kv_heads):
        return torch.arange(query_heads) // (query_heads // kv_heads)

    def scores(self, query, keys, scale, softcap):
        scores = scale * torch.einsum("qhd,khd->hqk", query, keys)
        return scores if softcap is None else softcap * torch.tanh(scores / softcap)

    def distance(self, num_queries, length):
        positions = length - num_queries + torch.arange(num_queries)
        return torch.arange(length)[None] - positions[:, None]

    def alibi(self, slopes, distance):
        return slopes * distance

    def visible(self, distance, window):
        return (distance <= 0) & (distance > -(window or math.inf))

    def masked(self, scores, visible, softcap):
        return scores.masked_fill(~visible, -math.inf)

    def combine(self, scores, values, sinks):
        lse = self.log_denominator(scores, sinks)
        weights = torch.exp(scores - lse.nan_to_num(neginf=0.0)[..., None])
        return torch.einsum("hqk,khd->qhd", weights, values), self.reported(lse).T

    def log_denominator(self, scores, sinks):
        lse = torch.logsumexp(scores, -1)
        return lse if sinks is None else torch.logaddexp(lse, sinks.float()[:, None])

    def reported(self, lse):
        return lse

    def merge(self, outputs, lses):
        lse = torch.logsumexp(lses, 0)
        weights = torch.exp(lses - lse.nan_to_num(neginf=0.0))
        return (weights[..., None] * outputs.float()).sum(0).to(outputs.dtype), lse


class HalfWeights(Kernel):
    """Rounds probabilities to the dtype of the values, as fused kernels do."""

    def attend(self, query, *arguments, **options):
        self.dtype = query.dtype
        return super().attend(query, *arguments, **options)

    def combine(self, scores, values, sinks):
        lse = self.log_denominator(scores, sinks)
        weights = torch.exp(scores - lse.nan_to_num(neginf=0.0)[..., None]).to(self.dtype).float()
        return torch.einsum("hqk,khd->qhd", weights, values), lse.T


SMALL = Profile("small", examples=40, max_operations=1, seconds=60.0)
SUITE = AttentionSuite()
IDS = tuple(check.id for check in SUITE.checks)


def run(kernel, *, capabilities=ALL, checks=IDS, seed=1, suite=SUITE, profile=SMALL):
    evidence = suite.run(
        implementation(kernel, capabilities),
        profile=profile,
        seed=seed,
        selected=frozenset(checks),
        progress=lambda what, done, total: None,
    )
    return {found.check.id: found for found in evidence}


def refuted(evidence):
    return {name for name, found in evidence.items() if found.verdict is Verdict.REFUTED}
