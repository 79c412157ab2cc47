"""The textbook rule: drafts are accepted one by one, up to the first rejection.

Sources: Leviathan, Kalman and Matias 2023, *Fast Inference from Transformers via Speculative Decoding*,
algorithm 1; Chen et al. 2023, *Accelerating Large Language Model Decoding with Speculative Sampling*,
algorithm 2. The exact law is `tokenlaw.spec.speculation.chain_verification`.
"""

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from tokenlaw.impl.speculative.draws import at_positions, chosen, draw_from_table, draw_or_race
from tokenlaw.impl.speculative.steps import (
    ForExtra,
    NumberedSteps,
    by_rows,
    emitted_tokens,
    in_pieces,
    is_draft,
    laws_are_shared,
    run_length,
    tokens_to_read,
)
from tokenlaw.spec.generation_contracts import TEXTBOOK, VerifyBatch


class ChainVerifier(NumberedSteps):
    """Chain rejection sampling (Leviathan et al. 2023, Chen et al. 2023).

    Draft x at a position is accepted with probability ``min(1, p(x) / q(x))``, p the target's law there and q
    the draft's. The first rejected draft is replaced by a token of the law ``(p - q)+``, normalised; after
    the last draft comes a bonus token of the law p. Drafts without laws count as one-hot: accepted with
    probability p(x), replaced by a token of p without x.
    """

    claims = TEXTBOOK

    def step(
        self, batch: VerifyBatch, for_tests: Float64[Tensor, "batch drafts"], for_extra: ForExtra
    ) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens; number j decides about draft j."""
        return by_rows(chain_step, batch, for_tests, for_extra)


def chain_step(
    batch: VerifyBatch,
    for_acceptance: Float64[Tensor, "batch drafts"],
    for_extra: ForExtra,
) -> Int64[Tensor, "batch drafts+1"]:
    """One step, given its random numbers; for the extra token one, or noise at every position."""
    accepted = run_length(is_draft(batch) & is_accepted(batch, for_acceptance))
    return emitted_tokens(batch.draft_tokens, accepted, extra_tokens(batch, accepted, for_extra))


def is_accepted(
    batch: VerifyBatch, uniforms: Float64[Tensor, "batch drafts"]
) -> Bool[Tensor, "batch drafts"]:
    """Whether each draft would be accepted: u < p(x) / q(x), without a division by zero."""
    tokens = tokens_to_read(batch)
    target = chosen(batch.target_probs[:, :-1], tokens)
    if batch.draft_probs is None:
        return uniforms < target
    return uniforms * chosen(batch.draft_probs, tokens) < target


def extra_tokens(
    batch: VerifyBatch,
    accepted: Int64[Tensor, " batch"],
    numbers: ForExtra,
) -> Int64[Tensor, " batch"]:
    """The token behind the accepted drafts of each row."""
    is_noise = numbers.dim() > 1
    if is_noise:
        numbers = numbers[torch.arange(len(accepted), device=accepted.device), accepted]
    bonus = accepted == batch.num_draft_tokens
    target, draft = batch.target_probs, batch.draft_probs
    if draft is None or is_noise or not laws_are_shared(batch):
        tokens = tokens_to_read(batch)
        return in_pieces(drawn_extra, batch.shape[2], target, draft, tokens, accepted, bonus, numbers)
    # All rows have the same K residuals and the same K + 1 laws of the target.
    table = torch.cat([residual_weights(target[0, :-1], draft[0]), target[0]])
    return draw_from_table(table, accepted + batch.shape[1] * bonus, numbers)


def drawn_extra(
    target: Float64[Tensor, "batch drafts+1 vocabulary"],
    draft: Float64[Tensor, "batch drafts vocabulary"] | None,
    tokens: Int64[Tensor, "batch drafts"],
    accepted: Int64[Tensor, " batch"],
    bonus: Bool[Tensor, " batch"],
    numbers: Float64[Tensor, " batch"] | Float64[Tensor, "batch vocabulary"],
) -> Int64[Tensor, " batch"]:
    """The same for rows with laws of their own; only the residual that a row needs is made."""
    wanted = at_positions(target, accepted)
    if tokens.shape[1] == 0:
        return draw_or_race(wanted, numbers)
    rejected = accepted.clamp(max=tokens.shape[1] - 1)  # any position, where no draft is rejected
    if draft is None:
        taken = torch.zeros_like(wanted).scatter_(1, tokens.gather(1, rejected[:, None]), 1.0)
    else:
        taken = at_positions(draft, rejected)
    return draw_or_race(residual_weights(wanted, taken, whole=bonus), numbers)


def residual_weights(
    target: Float64[Tensor, "*positions vocabulary"],
    draft: Float64[Tensor, "*positions vocabulary"],
    *,
    whole: Bool[Tensor, " *positions"] | None = None,
) -> Float64[Tensor, "*positions vocabulary"]:
    """``(target - draft)+``, not normalised; the target's law where that is zero everywhere.

    Equal laws reject nothing, except by rounding: then a token of the target is right. So it is where
    ``whole`` says that nothing was rejected.

    >>> residual_weights(torch.tensor([[0.75, 0.25], [0.5, 0.5]]), torch.tensor([[0.5, 0.5], [0.5, 0.5]]))
    tensor([[0.2500, 0.0000],
            [0.5000, 0.5000]])
    """
    excess = (target - draft).clamp_(min=0)
    nothing = excess.sum(-1) == 0
    if whole is not None:
        nothing |= whole
    return torch.where(nothing[..., None], target, excess)
