"""Faults that show beyond the usual range: many drafts, a rest of a tile, temperatures near 0."""

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from tokenlaw.impl.faults.verifier_base import ChainVerifier
from tokenlaw.impl.faults.verifier_step import Step


class LongRunsUnchecked(ChainVerifier):
    """Drafts behind the fifth are accepted without a test: the mask of rejections is too short.

    Classes: C06.
    Report: ohdearquant/lattice 243 (a draft that the loop over the drafts doesn't reach).
    Effect: none with five drafts or fewer; behind them the draft law.
    Weakest check: law/prefixes (tokens behind the fifth, six drafts or more).
    """

    def accepted_length(self, step: Step, passes: Bool[Tensor, "batch drafts"]) -> Int64[Tensor, " batch"]:
        """With every later draft passed."""
        behind = torch.arange(passes.shape[1], device=passes.device) >= 5
        return super().accepted_length(step, passes | behind)


class LastTileLost(ChainVerifier):
    """The residual is scanned in tiles of 1024 tokens, and what is left behind the last whole one is skipped.

    Classes: C05, C20.
    Report: flashinfer-ai/flashinfer 2202 (the token at a boundary is missed for some shapes).
    Effect: none where 1024 divides V; else the last tokens replace no draft.
    Weakest check: law/wide (the first token, a vocabulary that no tile divides).
    """

    def excess(
        self, target: Float64[Tensor, "laws vocabulary"], draft: Float64[Tensor, "laws vocabulary"]
    ) -> Float64[Tensor, "laws vocabulary"]:
        """Zero behind the last whole tile, where there is one."""
        excess = super().excess(target, draft)
        size = excess.shape[-1]
        whole = size // 1024 * 1024 or size
        return torch.nn.functional.pad(excess[:, :whole], (0, size - whole))


class LowTemperatureGreedy(ChainVerifier):
    """Rows of a temperature below .3 are verified as greedy ones.

    Classes: C03.
    Report: lablup/mlxcel 902; SharpAI/SwiftLM 88 (equality with the most probable token at a temperature
    above 0).
    Effect: none at common temperatures; below, one minus the largest probability.
    Weakest check: law/completed (the first token, temperature below .3).
    """

    def greedy(self, step: Step) -> Bool[Tensor, " batch"]:
        """Near 0 is 0."""
        return step.batch.params.temperature < 0.3


RANGE_FAULTS: tuple[tuple[str, type[ChainVerifier]], ...] = (
    ("long_runs_unchecked", LongRunsUnchecked),
    ("last_tile_lost", LastTileLost),
    ("low_temp_greedy", LowTemperatureGreedy),
)
"""Names and classes."""
