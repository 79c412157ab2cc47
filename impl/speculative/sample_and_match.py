"""Draw from the target as if nothing was drafted; drafts that are equal were right.

The rule of engines that verify drafts with their ordinary sampler, mlx-lm among them. The joint law is that
of Leviathan et al. 2023, *Fast Inference from Transformers via Speculative Decoding*, with one-hot draft
laws: `tokenlaw.spec.speculation.deterministic_verification`.
"""

import torch
from jaxtyping import Int64
from torch import Tensor

from tokenlaw.impl.speculative.draws import draw, draw_from_table
from tokenlaw.impl.speculative.random import RowNumbers, Use
from tokenlaw.impl.speculative.steps import SampledDrafts, in_pieces, is_draft, laws_are_shared, run_length
from tokenlaw.spec.batch_checks import check_batch
from tokenlaw.spec.generation_contracts import EXACT, NO_TOKEN, VerifyBatch


class SampleAndMatchVerifier(SampledDrafts):
    """Draws a token of the target's law at every position, and emits up to the first that isn't the draft.

    Exact, because every emitted token was drawn from the target; fewer drafts are accepted than by the chain
    rule.
    """

    claims = EXACT

    def verify(self, batch: VerifyBatch, *, seed: int) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens.

        Raises
        ------
        TypeError, ValueError
            As `tokenlaw.spec.batch_checks.check_batch`.
        """
        check_batch(batch)
        numbers = RowNumbers(seed, batch.params).uniforms(Use.SAMPLING, batch.shape[1] + 1)
        if laws_are_shared(batch):
            positions = torch.arange(batch.shape[1] + 1, device=numbers.device).expand(numbers.shape)
            return matched_tokens(batch, draw_from_table(batch.target_probs[0], positions, numbers))
        return matched_tokens(
            batch, in_pieces(draw, batch.shape[2] * (batch.shape[1] + 1), batch.target_probs, numbers)
        )


def matched_tokens(
    batch: VerifyBatch, tokens: Int64[Tensor, "batch drafts+1"]
) -> Int64[Tensor, "batch drafts+1"]:
    """The target's tokens, up to the first that isn't the draft of its position."""
    accepted = run_length(is_draft(batch) & (tokens[:, :-1] == batch.draft_tokens))
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    return tokens.where(positions <= accepted[:, None], NO_TOKEN)
