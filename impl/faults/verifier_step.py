"""What the steps of the verifier with faults are given."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from tokenlaw.spec.generation_contracts import VerifyBatch


@dataclass(frozen=True)
class Laws:
    """The laws that a step decides by; both tables have one row for each row of the batch, or one for all.

    Attributes
    ----------
    target : float64 ``[batch or 1, K + 1, V]``.
    draft : float64 ``[batch or 1, K, V]``.
    """

    target: Float64[Tensor, "tables drafts+1 vocabulary"]
    draft: Float64[Tensor, "tables drafts vocabulary"]


@dataclass(frozen=True)
class Step:
    """One call of verify: the batch, its seed, the laws, and the numbers that are injected, if any."""

    batch: VerifyBatch
    seed: int
    laws: Laws
    uniforms: Float64[Tensor, "batch drafts"] | None
    noise: Float64[Tensor, "batch drafts+1 vocabulary"] | None

    @property
    def rows(self) -> Int64[Tensor, " batch"]:
        """The numbers of the rows."""
        return torch.arange(len(self.batch.draft_tokens), device=self.batch.draft_tokens.device)

    @property
    def valid(self) -> Bool[Tensor, "batch drafts"]:
        """Which places hold a draft; rows may have fewer than K."""
        places = torch.arange(self.batch.draft_tokens.shape[1], device=self.batch.draft_tokens.device)
        return places < self.batch.num_draft_tokens[:, None]
