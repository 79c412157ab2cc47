"""Faults of the sampling parameters: laws that aren't those which the request asks for."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from tokenlaw.impl.faults.verifier_base import ChainVerifier
from tokenlaw.impl.faults.verifier_step import Step
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.row_laws import OFF_MIN_P, OFF_TOP_K, OFF_TOP_P, RowParameters, row_laws

TargetTable = Float64[Tensor, "batch drafts+1 vocabulary"]
DraftTable = Float64[Tensor, "batch drafts vocabulary"]


def _all(values: Tensor, value: float) -> Tensor:
    """One value for all rows, sharing memory as the given values do."""
    return (
        torch.full_like(values[:1], value).expand(values.shape)
        if values.stride(0) == 0
        else (torch.full_like(values, value))
    )


def without_temperature(params: RowParameters) -> RowParameters:
    """Parameters with temperature 1 in rows that aren't greedy."""
    ones = _all(params.temperature, 1.0)
    temperature = ones if "greedy" not in params.used else (params.temperature > 0).to(torch.float64)
    return replace(params, temperature=temperature)


def untruncated(params: RowParameters) -> RowParameters:
    """Parameters with temperature only."""
    return replace(
        params,
        top_k=_all(params.top_k, OFF_TOP_K),
        top_p=_all(params.top_p, OFF_TOP_P),
        min_p=_all(params.min_p, OFF_MIN_P),
    )


class TargetTemperatureIgnored(ChainVerifier):
    """The target law is computed at temperature 1.

    Classes: C02.
    Report: vllm-project/vllm 10198.
    Effect: TV .17 [.12, .24] at temperature .7, V = 32.
    Weakest check: law/completed (the first token, temperature other than 1).
    """

    def target_laws(self, batch: VerifyBatch) -> TargetTable:
        """Without temperature."""
        return row_laws(batch.target_logits, without_temperature(batch.params))


class DraftTemperatureIgnored(ChainVerifier):
    """The draft law is computed at temperature 1, though drafts are drawn with the request's temperature.

    Classes: C01.
    Report: vllm-project/vllm-ascend 6685.
    Effect: that of a wrong declared draft law.
    Weakest check: law/rejected (temperature other than 1).
    """

    def draft_laws(self, batch: VerifyBatch) -> DraftTable:
        """Without temperature."""
        if batch.draft_logits is None:
            return super().draft_laws(batch)
        return row_laws(batch.draft_logits, without_temperature(batch.params))


class DraftUntruncated(ChainVerifier):
    """Drafts are drawn after top-k, top-p and min-p, but ratio and residual use the law before them.

    Classes: C01.
    Report: huggingface/transformers 47932.
    Effect: median TV .05, worst .31 on a real pair of models with top-k 50 (the reporter).
    Weakest check: law/joint (the first token, truncated drafts).
    """

    def draft_laws(self, batch: VerifyBatch) -> DraftTable:
        """Temperature only."""
        if batch.draft_logits is None:
            return super().draft_laws(batch)
        return row_laws(batch.draft_logits, untruncated(batch.params))


class ArgmaxDraft(ChainVerifier):
    """Its drafter takes the most probable token, but ratio and residual use the whole draft law.

    Classes: C01.
    Report: huggingface/transformers 32867.
    Effect: TV .35 [.11, .66] at V = 32.
    Weakest check: law/completed (the first token, own drafter).
    """

    def drafting_law(
        self, logits: Float[Tensor, "batch vocabulary"], params: RowParameters
    ) -> Float64[Tensor, "batch vocabulary"]:
        """One-hot."""
        return super().drafting_law(logits, replace(params, temperature=_all(params.temperature, 0.0)))


class TemperatureTwice(ChainVerifier):
    """The target's logits are divided by the temperature twice.

    Classes: C02.
    Report: vllm-project/vllm-ascend 6685 (processing on both sides of a changed interface).
    Effect: TV .15 [.07, .21] at temperature .7, V = 32.
    Weakest check: law/completed (the first token, temperature other than 1).
    """

    def target_laws(self, batch: VerifyBatch) -> TargetTable:
        """At the square of the temperature."""
        once = batch.params.temperature
        twice = (once[:1] ** 2).expand(len(once)) if once.stride(0) == 0 else once**2
        return row_laws(batch.target_logits, replace(batch.params, temperature=twice))


class MinPIgnored(ChainVerifier):
    """Verified rows ignore min-p; only the bonus token honours it.

    Classes: C02.
    Report: vllm-project/vllm 42744.
    Effect: TV .07 [.03, .15] at min-p .05; an impossible token after some 15 draws.
    Weakest check: law/support (min-p).
    """

    def target_laws(self, batch: VerifyBatch) -> TargetTable:
        """Without min-p up to the last draft."""
        if "min_p" not in batch.params.used:
            return super().target_laws(batch)
        bare = row_laws(batch.target_logits, replace(batch.params, min_p=_all(batch.params.min_p, OFF_MIN_P)))
        places = torch.arange(bare.shape[1], device=bare.device)
        verified = places < batch.num_draft_tokens[:, None]
        return torch.where(verified[..., None], bare, super().target_laws(batch))


class TopPIgnored(ChainVerifier):
    """The target law ignores top-p.

    Classes: C02.
    Report: vllm-project/vllm 10198.
    Effect: TV .09 [.08, .10] at top-p .9; an impossible token after some 11 draws.
    Weakest check: law/support (top-p).
    """

    def target_laws(self, batch: VerifyBatch) -> TargetTable:
        """Without top-p."""
        return row_laws(batch.target_logits, replace(batch.params, top_p=_all(batch.params.top_p, OFF_TOP_P)))


class TopPBeforeTopK(ChainVerifier):
    """The target is truncated by top-p first, by top-k second.

    Classes: C02.
    Report: sgl-project/sglang 36173; ztxz16/fastllm 738.
    Effect: TV .07 [.04, .10] for top-k 8 and top-p .9 at V = 32.
    Weakest check: law/completed (the first token, top-k with top-p).
    """

    def target_laws(self, batch: VerifyBatch) -> TargetTable:
        """Two passes; the second starts from the first one's law."""
        if not {"top_k", "top_p"} <= batch.params.used:
            return super().target_laws(batch)
        off_k, off_p = _all(batch.params.top_k, OFF_TOP_K), _all(batch.params.top_p, OFF_TOP_P)
        off = _all(batch.params.min_p, OFF_MIN_P)
        first = row_laws(batch.target_logits, replace(batch.params, top_k=off_k, min_p=off))
        return row_laws(first.log(), replace(without_temperature(batch.params), top_p=off_p))


class TopPEdgeLost(ChainVerifier):
    """Top-p drops the token that crosses the sum.

    Classes: C19.
    Report: flashinfer-ai/flashinfer 2202 (boundary token missed).
    Effect: the mass of one token, up to 1 - top-p and more.
    Weakest check: law/completed (a possible token never comes, top-p).
    """

    def target_laws(self, batch: VerifyBatch) -> TargetTable:
        """Without the least probable token that is kept, where top-p removes any and keeps two."""
        laws = super().target_laws(batch)
        if "top_p" not in batch.params.used:
            return laws
        full = row_laws(batch.target_logits, replace(batch.params, top_p=_all(batch.params.top_p, OFF_TOP_P)))
        cut = ((laws > 0).sum(-1) < (full > 0).sum(-1)) & ((laws > 0).sum(-1) > 1)
        edge = laws.masked_fill(laws == 0, 2.0).argmin(-1, keepdim=True)
        kept = laws.scatter(-1, edge, 0.0)
        return torch.where(cut[..., None], kept / kept.sum(-1, keepdim=True), laws)


class GreedyAlways(ChainVerifier):
    """Verification is greedy at every temperature.

    Classes: C03.
    Report: sgl-project/sglang 31214, 32922.
    Effect: TV .65 [.27, .83] at V = 32.
    Weakest check: law/completed (the first token, temperature above 0).
    """

    def greedy(self, step: Step) -> Bool[Tensor, " batch"]:
        """All rows."""
        return torch.ones_like(super().greedy(step))


class TypicalAcceptance(ChainVerifier):
    """Typical acceptance with an entropy threshold, reachable where exactness is promised.

    Classes: C10.
    Report: vllm-project/vllm 5131.
    Effect: TV .33 at V = 32.
    Weakest check: law/completed (the first token).
    """

    def ratio(self, step: Step) -> Float64[Tensor, "batch drafts"]:
        """1 where the target probability is above min(.3, .09 exp(-entropy)), else 0."""
        laws = step.laws.target[:, :-1]
        entropy = torch.special.entr(laws).sum(-1)
        threshold = (0.09 * torch.exp(-entropy)).clamp(max=0.3)
        return (self.chosen(step, laws) > threshold).to(torch.float64)

    def recover(
        self,
        step: Step,
        rows: Int64[Tensor, " rejected"],
        places: Int64[Tensor, " rejected"],
        numbers: Float64[Tensor, " rejected"],
    ) -> Int64[Tensor, " rejected"]:
        """The most probable token."""
        return self.most_probable(step, rows, places)


PARAMETER_FAULTS: tuple[tuple[str, type[ChainVerifier]], ...] = (
    ("temp_p_ignored", TargetTemperatureIgnored),
    ("temp_q_ignored", DraftTemperatureIgnored),
    ("topk_q_raw", DraftUntruncated),
    ("argmax_draft", ArgmaxDraft),
    ("temperature_twice", TemperatureTwice),
    ("min_p_ignored", MinPIgnored),
    ("top_p_ignored", TopPIgnored),
    ("filter_order", TopPBeforeTopK),
    ("top_p_edge", TopPEdgeLost),
    ("greedy_always", GreedyAlways),
    ("typical_acceptance", TypicalAcceptance),
)
"""Names and classes."""
