"""Faults of low precision: numbers, sums and laws with too few bits."""

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenlaw.impl.faults.verifier_base import ChainVerifier, Numbers
from tokenlaw.impl.faults.verifier_step import Step
from tokenlaw.spec.row_laws import RowParameters


class _HalfSums(ChainVerifier):
    """Every law is cumulated in half precision."""

    def cumulated(self, law: Float64[Tensor, "laws vocabulary"]) -> Float[Tensor, "laws vocabulary"]:
        """float16."""
        return law.half().cumsum(-1)


class HalfPrecisionRecovery(ChainVerifier):
    """The cumulated law of the recovery is kept in half precision.

    Classes: C19.
    Report: vllm-project/vllm 37798 (low-precision noise loses the tail).
    Effect: tokens of less than 2^-11 are lost or drawn too often; needs thousands of tokens.
    Weakest check: law/wide (the first token, V of 4096 and more).
    """

    def recover(
        self,
        step: Step,
        rows: Int64[Tensor, " rejected"],
        places: Int64[Tensor, " rejected"],
        numbers: Numbers,
    ) -> Int64[Tensor, " rejected"]:
        """With half-precision sums."""
        return _HalfSums().recover(step, rows, places, numbers)


class CoarseAcceptanceNumbers(ChainVerifier):
    """Acceptance numbers are drawn in bfloat16: multiples of 2^-8.

    Classes: C19.
    Report: vllm-project/vllm 37798 (family of low-precision random numbers).
    Effect: acceptance is off by up to 2^-8; drafts with a ratio above 1 - 2^-8 are never rejected.
    Weakest check: law/length (where one ratio is a little below 1).
    """

    def acceptance_numbers(self, step: Step) -> Float64[Tensor, "batch drafts"]:
        """Eight bits, as random bfloat16 numbers in [0, 1) have them."""
        return (super().acceptance_numbers(step) * 2**8).floor() / 2**8


class DraftInBfloat16(ChainVerifier):
    """The drafter draws from bfloat16 logits; ratio and residual use the whole ones.

    Classes: C01, C19.
    Report: deepseek-ai/DeepSpec 31.
    Effect: TV .002 [.0004, .005] at V = 32; 3e6 samples, or one comparison with the same noise.
    Weakest check: law/proved (own drafter).
    """

    def drafting_law(
        self, logits: Float[Tensor, "batch vocabulary"], params: RowParameters
    ) -> Float64[Tensor, "batch vocabulary"]:
        """Rounded."""
        shared = logits.stride(0) == 0
        coarse = logits[:1].to(torch.bfloat16).expand(logits.shape) if shared else logits.to(torch.bfloat16)
        return super().drafting_law(coarse, params)


PRECISION_FAULTS: tuple[tuple[str, type[ChainVerifier]], ...] = (
    ("fp16_cumsum", HalfPrecisionRecovery),
    ("u_bf16", CoarseAcceptanceNumbers),
    ("draft_bf16", DraftInBfloat16),
)
"""Names and classes."""
