"""Faults that mix rows: of the laws, of ragged and mixed batches, of the vocabulary."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from tokenlaw.impl.faults.verifier_base import ChainVerifier
from tokenlaw.impl.faults.verifier_step import Step
from tokenlaw.spec.generation_contracts import VerifyBatch

DraftTable = Float64[Tensor, "batch drafts vocabulary"]


class NextTargetRow(ChainVerifier):
    """Draft i is verified with the target row i + 1.

    Classes: C09, C11.
    Report: NVIDIA/TensorRT-LLM 15098.
    Effect: none where all places have one law; else first-token TV .58 (V = 8, K = 3).
    Weakest check: law/completed (the first token, with laws that depend on the place).
    """

    def target_laws(self, batch: VerifyBatch) -> Float64[Tensor, "batch drafts+1 vocabulary"]:
        """Shifted by one place; the last row stands twice."""
        laws = super().target_laws(batch)
        index = torch.arange(1, laws.shape[1] + 1, device=laws.device).clamp(max=laws.shape[1] - 1)
        if laws.stride(0) == 0:
            return laws[:1, index].expand(laws.shape)
        return laws[:, index]


class PaddedStride(ChainVerifier):
    """Ratios of a ragged batch are packed without padding, but read with the stride of padded rows.

    Classes: C11.
    Report: vllm-project/vllm 35398 (found in review: per-token data where per-request data belongs).
    Effect: none with equal lengths, or the longest row first; else another row decides.
    Weakest check: law/completed (a ragged batch with laws that depend on the row).
    """

    def ratio(self, step: Step) -> Float64[Tensor, "batch drafts"]:
        """Number row * K + place of the packed ratios; what lies beyond them is the last one."""
        ratios = super().ratio(step)
        packed = ratios[step.valid]
        if not len(packed):
            return ratios
        index = torch.arange(ratios.numel(), device=ratios.device).clamp(max=len(packed) - 1)
        return packed[index].reshape(ratios.shape)


class NeighbourDraftRow(ChainVerifier):
    """The draft law of a row is that of the row before it.

    Classes: C11.
    Report: vllm-project/vllm 35398; mlc-ai/mlc-llm 2949.
    Effect: TV .30 on random laws; none where all rows have one law.
    Weakest check: law/completed (the first token, with laws that depend on the row).
    """

    def draft_laws(self, batch: VerifyBatch) -> DraftTable:
        """Rolled by one row."""
        laws = super().draft_laws(batch)
        return laws if laws.stride(0) == 0 else laws.roll(1, 0)


class FirstRowDecidesGreedy(ChainVerifier):
    """The whole batch is greedy if its first row is, and random if that is.

    Classes: C03, C11.
    Report: vllm-project/vllm 27077; vllm-project/vllm-ascend 5423 (greedy marker lost in mixed batches).
    Effect: random rows behind a greedy one get the most probable token; TV .65 at V = 32.
    Weakest check: law/support (a batch of greedy and random rows).
    """

    def greedy(self, step: Step) -> Bool[Tensor, " batch"]:
        """As the first row."""
        greedy = super().greedy(step)
        return greedy[:1].expand(len(greedy))


class VocabularyShifted(ChainVerifier):
    """Draft laws are read one token off: the map from the draft's vocabulary has a wrong offset.

    Classes: C20.
    Report: vllm-project/vllm-ascend 16166.
    Effect: TV .29 [.16, .49] at V = 32.
    Weakest check: law/completed (the first token).
    """

    def draft_laws(self, batch: VerifyBatch) -> DraftTable:
        """Rolled by one token."""
        laws = super().draft_laws(batch)
        return laws[:1].roll(1, -1).expand(laws.shape) if laws.stride(0) == 0 else laws.roll(1, -1)


class LengthsOfLastStep(ChainVerifier):
    """The numbers of drafts are those of the step before, if that had as many rows.

    Classes: C12.
    Report: vllm-project/vllm 46899 (drafts and counts of the previous step, asynchronous scheduling).
    Effect: none while lengths stay; else drafts are lost, or padding is verified.
    Weakest check: law/protocol (two steps with other lengths).
    """

    def __init__(self) -> None:
        self._lengths: Int64[Tensor, " batch"] | None = None

    def verify(
        self,
        batch: VerifyBatch,
        *,
        seed: int,
        uniforms: Float64[Tensor, "batch drafts"] | None = None,
        noise: Float64[Tensor, "batch drafts+1 vocabulary"] | None = None,
    ) -> Int64[Tensor, "batch drafts+1"]:
        """With stale lengths, no longer than this step's rows."""
        lengths, self._lengths = self._lengths, batch.num_draft_tokens
        if lengths is not None and lengths.shape == batch.num_draft_tokens.shape:
            batch = replace(batch, num_draft_tokens=lengths.clamp(max=batch.draft_tokens.shape[1]))
        return super().verify(batch, seed=seed, uniforms=uniforms, noise=noise)


ROW_FAULTS: tuple[tuple[str, type[ChainVerifier]], ...] = (
    ("off_by_one", NextTargetRow),
    ("ragged_stride", PaddedStride),
    ("neighbour_q", NeighbourDraftRow),
    ("mixed_greedy", FirstRowDecidesGreedy),
    ("vocabulary_shift", VocabularyShifted),
    ("stale_lengths", LengthsOfLastStep),
)
"""Names and classes."""
