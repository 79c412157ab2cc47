"""Correct rules that users report as bugs: a suite must stay silent on each of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor

from tokenlaw.impl.faults.verifier_base import ChainVerifier
from tokenlaw.impl.faults.verifier_tree import TreeVerifier
from tokenlaw.spec.generation_contracts import VerifyBatch


@dataclass(frozen=True)
class Innocent:
    """One exact implementation.

    Attributes
    ----------
    name : which rule it follows.
    report : where it was taken for a bug, repository and number.
    reason : why it is exact.
    make : builds it.
    """

    name: str
    report: str
    reason: str
    make: Callable[[], Any]


class ResidualInPlace(ChainVerifier):
    """Makes the residual in the memory of its own copy of the target law."""

    def excess(
        self, target: Float64[Tensor, "laws vocabulary"], draft: Float64[Tensor, "laws vocabulary"]
    ) -> Float64[Tensor, "laws vocabulary"]:
        """``(target - draft)+``."""
        return target.clone().sub_(draft).clamp_(min=0)


class UniformWithoutResidual(ChainVerifier):
    """Draws from all tokens alike where the residual law has no mass."""

    def normalised(
        self, weights: Float64[Tensor, "laws vocabulary"], otherwise: Float64[Tensor, "laws vocabulary"]
    ) -> Float64[Tensor, "laws vocabulary"]:
        """Weights over their sum; the same weight for each token where the sum is zero."""
        return super().normalised(weights, torch.full_like(otherwise, 1 / otherwise.shape[-1]))


class RoundsByRows(ChainVerifier):
    """Has logits in single precision, whose last bits depend on how many rows are computed at one time."""

    precision = torch.float32

    def target_laws(self, batch: VerifyBatch) -> Float64[Tensor, "batch drafts+1 vocabulary"]:
        """Laws of the rounded logits."""
        logits = batch.target_logits.float() * (1 + len(batch.target_logits) % 3 * torch.finfo().eps)
        return replace(batch, target_logits=logits.to(batch.target_logits.dtype)).target_probs


def _reference(path: str) -> Any:
    """Builds ``module:class`` of the reference verifiers, imported on first use."""
    module, name = path.split(":")
    return getattr(import_module(f"tokenlaw.impl.speculative.{module}"), name)()


_CHAIN = "Leviathan et al. 2023, theorem 1"
_ROWS: tuple[tuple[str, str, str, Callable[[], Any]], ...] = (
    ("faults_base", "jaymody/speculative-sampling 9; feifeibear/LLMSpeculativeSampling 29", _CHAIN,
     ChainVerifier),
    ("chain", "vllm-project/vllm 13196 (a seed has no effect at temperature 0)", _CHAIN,
     partial(_reference, "chain:ChainVerifier")),
    ("one_hot", "vllm-project/vllm 40149; sgl-project/sglang 10308",
     "accepting with target(x), else target without x, is exact for any draft law independent of the "
     "verifier's numbers; only acceptance is lost", partial(_reference, "one_hot:OneHotVerifier")),
    ("sample_and_match", "ml-explore/mlx-swift-lm 459", "what is emitted is always drawn from the target",
     partial(_reference, "sample_and_match:SampleAndMatchVerifier")),
    ("block", "vllm-project/vllm-ascend 7808 (the right form of 7807)", "Sun et al. 2024, theorem 1",
     partial(_reference, "block:BlockVerifier")),
    ("residual_in_place", "NJUNLP/MCSD 5", "nothing reads the law again", ResidualInPlace),
    ("uniform_without_residual", "duoan/TorchCode 16",
     "a draft is rejected only where the target has less than the draft law, and so more elsewhere: by "
     "rounding alone the sum is zero", UniformWithoutResidual),
    ("rounds_by_rows", "vllm-project/vllm 41758, 54506; huggingface/transformers 39421",
     "the law moves by what single precision explains, greedy rows at near ties alone", RoundsByRows),
    ("top_k_tree", "SafeAILab/EAGLE 93, 95, 110, 171, 183, 221, 283",
     "candidates that weren't drawn count as certain: accept with target(x), else zero and normalise",
     partial(_reference, "top_k_tree:TopKTreeVerifier")),
    ("tree", "SafeAILab/EAGLE 183", "each refused sibling leaves the residual for the next one",
     partial(_reference, "tree:TreeVerifier")),
    ("faults_tree_base", "SafeAILab/EAGLE 183", "the same rule in plain code", TreeVerifier),
)  # fmt: skip

INNOCENTS: Mapping[str, Innocent] = {row[0]: Innocent(*row) for row in _ROWS}
"""Exact implementations by their names."""
