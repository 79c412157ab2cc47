"""Faults of the recovery: which token replaces a rejected draft."""

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from tokenlaw.impl.faults.verifier_base import ChainVerifier, Numbers
from tokenlaw.impl.faults.verifier_step import Step

Laws = Float64[Tensor, "laws vocabulary"]
Rejected = Int64[Tensor, " rejected"]


class NoResidual(ChainVerifier):
    """The replacement is drawn from the target law.

    Classes: C05.
    Report: ShopeeLLM/Spec-RL 14.
    Effect: TV .13 [.07, .19] at V = 32.
    Weakest check: law/completed (the first token).
    """

    def residual(self, target: Laws, draft: Laws) -> Laws:
        """Nothing is subtracted."""
        return target


class AbsoluteResidual(ChainVerifier):
    """The replacement is drawn from the absolute difference of the laws.

    Classes: C05.
    Report: none known of this form; family of SafeAILab/EAGLE 20.
    Effect: TV .15 [.08, .38] at V = 32.
    Weakest check: law/completed (the first token).
    """

    def excess(self, target: Laws, draft: Laws) -> Laws:
        """Without the positive part."""
        return (target - draft).abs()


class SwappedResidual(ChainVerifier):
    """The replacement is drawn from draft minus target.

    Classes: C05.
    Report: SafeAILab/EAGLE 20 (family of wrong residuals).
    Effect: only tokens that are too probable already.
    Weakest check: law/completed (the first token).
    """

    def excess(self, target: Laws, draft: Laws) -> Laws:
        """The wrong way round."""
        return (draft - target).clamp(min=0)


class UnnormalisedResidual(ChainVerifier):
    """The residual isn't divided by its sum: the scan for numbers above it ends at the last vocabulary entry.

    Classes: C05.
    Report: vllm-project/vllm-ascend 7807 (family of wrong residuals).
    Effect: the last token gets the missing mass, even if it is impossible.
    Weakest check: law/completed (the first token).
    """

    def normalised(self, weights: Laws, otherwise: Laws) -> Laws:
        """What is missing to 1 goes to the last token."""
        short = weights.clone()
        short[:, -1] += 1 - weights.sum(-1)
        return torch.where(weights.sum(-1, keepdim=True) > 0, short, otherwise)


class FlooredResidual(ChainVerifier):
    """The residual is at least 1e-5 for every token before it is normalised.

    Classes: C05.
    Report: vllm-project/vllm 13933 (found in review).
    Effect: TV 1e-4 at V = 32; above one half at V = 128k.
    Weakest check: law/support (a wide vocabulary, or zeros in the target law).
    """

    def excess(self, target: Laws, draft: Laws) -> Laws:
        """Never below the floor."""
        return (target - draft).clamp(min=1e-5)


class LastTokenLost(ChainVerifier):
    """The last entry of the vocabulary is never drawn, by recovery or bonus: the loop over it ends one early.

    Classes: C05, C20.
    Report: vllm-project/vllm, advisory GHSA-8wr5-jm2h-8r4f (boundary of the vocabulary in the recovery).
    Effect: the mass of one token; token 0 where no other is left.
    Weakest check: law/completed (the first token, with a small vocabulary).
    """

    def residual(self, target: Laws, draft: Laws) -> Laws:
        """Without its last token."""
        return self._cut(super().residual(target, draft))

    def bonus(self, step: Step, numbers: Numbers) -> Int64[Tensor, " batch"]:
        """From the target law without its last token."""
        law, index = self.at(step.laws.target, step.rows, step.batch.num_draft_tokens)
        return self.draw(self._cut(law), index, numbers)

    def _cut(self, law: Laws) -> Laws:
        """The law given that the token isn't the last one; all zero if it is for certain."""
        cut = torch.nn.functional.pad(law[:, :-1], (0, 1))
        return self.normalised(cut, cut)


class ResidualOfFirstRow(ChainVerifier):
    """The residual is always that of the first place, wherever the rejection was.

    Classes: C05, C09.
    Report: huggingface/transformers 28166 (wrong index).
    Effect: none where all places have one law; else that of another residual.
    Weakest check: law/rejected (place by place).
    """

    def recover(self, step: Step, rows: Rejected, places: Rejected, numbers: Numbers) -> Rejected:
        """Place 0."""
        return super().recover(step, rows, 0 * places, numbers)


class RejectedPlaceDropped(ChainVerifier):
    """After a rejection the token is drawn from the row behind the rejected draft.

    Classes: C06.
    Report: openvinotoolkit/openvino.genai 4190.
    Effect: TV .21 of the first token (V = 8, K = 3); the accepted length is right.
    Weakest check: law/completed (the first token, with laws that depend on the place).
    """

    def recover(self, step: Step, rows: Rejected, places: Rejected, numbers: Numbers) -> Rejected:
        """Target law of the next place."""
        law, index = self.at(step.laws.target, rows, places + 1)
        return self.draw(law, index, numbers)


RESIDUAL_FAULTS: tuple[tuple[str, type[ChainVerifier]], ...] = (
    ("no_residual", NoResidual),
    ("resid_abs", AbsoluteResidual),
    ("resid_swapped", SwappedResidual),
    ("resid_unnorm", UnnormalisedResidual),
    ("residual_floor", FlooredResidual),
    ("last_vocab", LastTokenLost),
    ("resid_row0", ResidualOfFirstRow),
    ("next_row_used", RejectedPlaceDropped),
)
"""Names and classes."""
