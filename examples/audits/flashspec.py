"""flashspec: ``rejection_step`` for sampled drafts, ``rejection_step_onehot`` for those that weren't drawn.

Both take batches of log-probabilities and a generator. ``rejection_step`` knows one draft length for the
whole batch, so rows are grouped by theirs; ``rejection_step_onehot`` takes ragged lengths, and a row without
drafts goes to it in every case, as its documentation says.
"""

from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from examples.audits.packages import installed_version, package_module
from tokenlaw.impl.adapters.verify_rows import rows_by_length
from tokenlaw.spec.contracts import VERIFIER, Implementation
from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch

PACKAGE = "flashspec"


class RejectionSteps:
    """A `Verifier` around the two functions; the call's seed seeds the generator that they are given."""

    def __init__(self) -> None:
        self._module: Any = package_module("flashspec.sampling.rejection", PACKAGE)

    def verify(self, batch: VerifyBatch, *, seed: int) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens; see `Verifier.verify`."""
        generator = torch.Generator(batch.draft_tokens.device).manual_seed(seed % 2**63)
        emitted = torch.full(batch.target_logits.shape[:2], NO_TOKEN, device=batch.draft_tokens.device)
        everything = (batch.shape[1], torch.arange(batch.shape[0], device=emitted.device))
        groups = [everything] if batch.draft_probs is None else list(rows_by_length(batch))
        for length, rows in groups:
            emitted[rows, : length + 1] = self._group(batch, rows, length, generator)
        return emitted

    def _group(self, batch: VerifyBatch, rows: Tensor, length: int, generator: torch.Generator) -> Tensor:
        """Emitted tokens of some rows, with ``length`` drafts at most."""
        width = max(length, 1)
        drafts = batch.draft_tokens[rows, :width].clamp(0, batch.shape[2] - 1)
        target = batch.target_probs[rows, : width + 1].float().log()
        if batch.draft_probs is None or length == 0:
            real = batch.num_draft_tokens[rows]
            counts = self._module.rejection_step_onehot(drafts, target, real, generator=generator)
        else:
            draft = batch.draft_probs[rows, :length].float().log()
            counts = self._module.rejection_step(drafts, draft, target, generator=generator)
        return _written(drafts[:, :length], counts[:, 0], counts[:, 1])


def _written(drafts: Tensor, accepted: Tensor, following: Tensor) -> Tensor:
    """The accepted drafts, then the token that follows them, then `NO_TOKEN`."""
    position = torch.arange(drafts.shape[1] + 1, device=drafts.device)
    padded = torch.nn.functional.pad(drafts, (0, 1))
    kept = torch.where(position < accepted[:, None], padded, NO_TOKEN)
    return torch.where(position == accepted[:, None], following[:, None], kept)


IMPLEMENTATION = Implementation(
    name=PACKAGE,
    version=installed_version(PACKAGE),
    factories={VERIFIER: RejectionSteps},
    capabilities={VERIFIER: frozenset()},
    summary="flashspec.sampling.rejection: rejection_step and rejection_step_onehot",
)
