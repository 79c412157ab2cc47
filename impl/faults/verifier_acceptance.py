"""Faults of the acceptance test: which drafts pass."""

from typing import ClassVar

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from tokenlaw.impl.faults.verifier_base import ChainVerifier
from tokenlaw.impl.faults.verifier_step import Step

Numbers = Float64[Tensor, "batch drafts"]
Passes = Bool[Tensor, "batch drafts"]


class RatioInverted(ChainVerifier):
    """Accepts with draft over target probability.

    Classes: C06.
    Report: huggingface/transformers 28508 (several deviations of the match count from the paper).
    Effect: TV .31 [.15, .51] at V = 32.
    Weakest check: law/completed (the first token).
    """

    def ratio(self, step: Step) -> Numbers:
        """The wrong way round."""
        return 1 / super().ratio(step)


class AcceptIfMoreProbable(ChainVerifier):
    """Accepts exactly the drafts that the target finds at least as probable as the draft does.

    Classes: C06.
    Report: flashinfer-ai/flashinfer, the reference in its trace tests of the chain kernel (no issue).
    Effect: TV like that of the acceptance rate lost, .1 to .3 on random laws.
    Weakest check: law/completed (the first token).
    """

    def passes(self, step: Step, numbers: Numbers) -> Passes:
        """No random number."""
        return self.ratio(step) >= 1


class AcceptAlways(ChainVerifier):
    """The acceptance number is 0 for every draft, so all are accepted.

    Classes: C06.
    Report: vllm-project/vllm-ascend 13730.
    Effect: emits the draft law; TV .31 [.15, .51] at V = 32.
    Weakest check: law/completed (the first token).
    """

    def passes(self, step: Step, numbers: Numbers) -> Passes:
        """Whatever is drafted."""
        return torch.ones_like(step.valid)


class LastPlaceUnchecked(ChainVerifier):
    """The loop over drafts ends one early: the last of several drafts is accepted without a test.

    Classes: C06.
    Report: huggingface/transformers 28508.
    Effect: draft law at the last drafted place.
    Weakest check: law/completed (the last drafted place).
    """

    def passes(self, step: Step, numbers: Numbers) -> Passes:
        """True at the last draft of each row that has two at least; one pass is always made."""
        places = torch.arange(step.valid.shape[1], device=numbers.device)
        last = (places == step.batch.num_draft_tokens[:, None] - 1) & (places > 0)
        return super().passes(step, numbers) | last


class FirstUnchecked(ChainVerifier):
    """The loop over drafts starts one late: the first draft is accepted without a test.

    Classes: C06.
    Report: ohdearquant/lattice 243.
    Effect: TV .25 of the first token (V = 8, K = 3).
    Weakest check: law/completed (the first token).
    """

    def passes(self, step: Step, numbers: Numbers) -> Passes:
        """True at the first draft."""
        passes = super().passes(step, numbers).clone()
        passes[:, :1] = True
        return passes


class TieRejected(ChainVerifier):
    """A draft that is exactly as probable under both laws is rejected.

    Classes: C06.
    Report: none known; what happens if u < p / q is written for a branch that excludes p = q.
    Effect: none on random laws; with equal laws every draft is lost and the accepted length is 0.
    Weakest check: law/length (exact ties).
    """

    def passes(self, step: Step, numbers: Numbers) -> Passes:
        """Not at a ratio of exactly 1."""
        return super().passes(step, numbers) & (self.ratio(step) != 1)


class ImpossibleAccepted(ChainVerifier):
    """A draft that the target never gives is accepted.

    Classes: C06.
    Report: sgl-project/sglang 35771 (there only if the random number is 0 too).
    Effect: impossible tokens, as often as the draft model proposes them.
    Weakest check: law/support (zeros in the target law).
    """

    def passes(self, step: Step, numbers: Numbers) -> Passes:
        """Also where the target probability is 0."""
        return super().passes(step, numbers) | (self.ratio(step) == 0)


class InclusiveAtZero(ChainVerifier):
    """Compares with <= instead of <: the random number 0 accepts a draft that is impossible.

    Classes: C06.
    Report: sgl-project/sglang 35771.
    Effect: 2^-24 a draft with numbers of 24 bits, 2^-53 here.
    Weakest check: law/boundary (u = 0 with a target probability of 0).
    """

    def passes(self, step: Step, numbers: Numbers) -> Passes:
        """Inclusive."""
        return numbers <= self.ratio(step)


class LooseThreshold(ChainVerifier):
    """The random number is compared with the ratio over .7: a lossy option that was left on.

    Classes: C10.
    Report: sgl-project/sglang 8068 (threshold_acc).
    Effect: TV .12 [.03, .27] at V = 32.
    Weakest check: law/completed (the first token).
    """

    def ratio(self, step: Step) -> Numbers:
        """Above the true one."""
        return super().ratio(step) / 0.7


class DraftZeroedBeforeTest(ChainVerifier):
    """Prompt lookup: the target probability of the draft is zeroed for the recovery before it is tested.

    Classes: C05, C06.
    Report: vllm-project/vllm-ascend 2881.
    Effect: no such draft is ever accepted; TV .09 [.03, .53] at V = 32.
    Weakest check: law/completed (the first token, with drafts that weren't drawn).
    """

    def ratio(self, step: Step) -> Numbers:
        """0 for drafts without a draft law."""
        return super().ratio(step) * (step.batch.draft_logits is not None)


class RatioBias(ChainVerifier):
    """Accepts 1 % too often: the ratio is multiplied by 1.01.

    Classes: C06, C19.
    Report: none known; stands for every small acceptance error, such as a coarse or shifted random number.
    Effect: at most 1 % of the mass of accepted drafts with a ratio below 1.
    Weakest check: law/length (where one ratio is a little below 1).
    """

    factor: ClassVar[float] = 1.01

    def ratio(self, step: Step) -> Numbers:
        """A little above the true one."""
        return super().ratio(step) * self.factor


class SmallRatioBias(RatioBias):
    """Accepts .3 % too often: the ratio is multiplied by 1.003.

    Classes: C06, C19.
    Report: none known; the smallest acceptance error that the suite promises to see.
    Effect: at most .3 % of the mass of accepted drafts with a ratio below 1.
    Weakest check: law/length (where one ratio is a little below 1).
    """

    factor = 1.003


class BlockRuleTokenResidual(ChainVerifier):
    """Block verification accepts, but the added token is drawn from the residual of its own place alone.

    Classes: C09.
    Report: vllm-project/vllm-ascend 7807.
    Effect: first token right, later ones not.
    Weakest check: law/joint (accepted length and tokens together).
    """

    claims = "block"

    def ratio(self, step: Step) -> Numbers:
        """Acceptance h_i of each prefix i = 1 .. K, Sun et al. 2024, equation 5."""
        single = super().ratio(step)
        if not single.shape[1]:
            return single
        factors = [torch.ones_like(step.batch.params.temperature)]
        for place in range(single.shape[1]):
            factors.append((factors[-1] * single[:, place]).clamp(max=1))
        return torch.stack(
            [self._prefix(step, place, factor) for place, factor in enumerate(factors) if place], dim=1
        )

    def _prefix(
        self, step: Step, length: int, factor: Float64[Tensor, " batch"]
    ) -> Float64[Tensor, " batch"]:
        """Acceptance of a prefix, given its factor."""
        if length == step.valid.shape[1]:
            return factor
        excess = factor[:, None] * step.laws.target[:, length] - step.laws.draft[:, length]
        mass = excess.clamp(min=0).sum(-1)
        partial = torch.where(mass > 0, mass / (mass + 1 - factor), 0.0)
        return torch.where(step.batch.num_draft_tokens == length, factor, partial)

    def accepted_length(self, step: Step, passes: Passes) -> Int64[Tensor, " batch"]:
        """The longest prefix that passes; greedy rows go on while drafts match."""
        places = torch.arange(1, passes.shape[1] + 1, device=passes.device)
        longest = ((passes & step.valid) * places).amax(1) if len(places) else 0 * step.rows
        return torch.where(self.greedy(step), super().accepted_length(step, passes), longest)


ACCEPTANCE_FAULTS: tuple[tuple[str, type[ChainVerifier]], ...] = (
    ("ratio_inverted", RatioInverted),
    ("accept_det", AcceptIfMoreProbable),
    ("accept_always", AcceptAlways),
    ("last_pos_always", LastPlaceUnchecked),
    ("first_unchecked", FirstUnchecked),
    ("tie_reject", TieRejected),
    ("p0_accept", ImpossibleAccepted),
    ("u0_accept", InclusiveAtZero),
    ("threshold_0.7", LooseThreshold),
    ("draft_zeroed_first", DraftZeroedBeforeTest),
    ("ratio_x1.01", RatioBias),
    ("ratio_x1.003", SmallRatioBias),
    ("block_token_residual", BlockRuleTokenResidual),
)
"""Names and classes."""
