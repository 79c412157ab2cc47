"""Block verification: one decision about all drafts of a step.

Source: Sun et al. 2024, *Block Verification Accelerates Speculative Decoding* (arXiv 2403.10444), algorithm
2. The exact law is `tokenlaw.spec.block_verification.block_verification`, whose letters are used here.
"""

import torch
from jaxtyping import Float64, Int64
from torch import Tensor
from torch.nn.functional import pad

from tokenlaw.impl.speculative.draws import chosen, draw_or_race
from tokenlaw.impl.speculative.steps import (
    ForExtra,
    NumberedSteps,
    emitted_tokens,
    in_pieces,
    tokens_to_read,
)
from tokenlaw.spec.generation_contracts import BLOCK, VerifyBatch


class BlockVerifier(NumberedSteps):
    """Accepts the longest prefix of the drafts that passes a test of its own (Sun et al. 2024).

    Exact; accepts at least as many drafts as the chain rule on average, with another joint law. Drafts
    without laws count as one-hot.
    """

    claims = BLOCK

    def step(
        self, batch: VerifyBatch, for_tests: Float64[Tensor, "batch drafts"], for_extra: ForExtra
    ) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens; the numbers decide the tests of the prefixes."""
        drafts, vocabulary = batch.shape[1:]
        accepted, extra = in_pieces(
            block_step,
            2 * (drafts + 1) * vocabulary,
            batch.target_probs,
            batch.draft_probs,
            tokens_to_read(batch),
            batch.num_draft_tokens,
            for_tests,
            for_extra,
        ).unbind(1)
        return emitted_tokens(batch.draft_tokens, accepted, extra)


def block_step(
    target: Float64[Tensor, "batch drafts+1 vocabulary"],
    draft: Float64[Tensor, "batch drafts vocabulary"] | None,
    tokens: Int64[Tensor, "batch drafts"],
    lengths: Int64[Tensor, " batch"],
    for_tests: Float64[Tensor, "batch drafts"],
    for_extra: ForExtra,
) -> Int64[Tensor, "batch 2"]:
    """Accepted drafts and extra token of each row, given its random numbers and how many drafts it has."""
    if draft is None:
        draft = torch.zeros_like(target[:, :-1]).scatter_(-1, tokens[..., None], 1.0)
    factors = prefix_factors(chosen(target[:, :-1], tokens) / chosen(draft, tokens))
    scaled = factors[:, :, None] * target
    excess = scaled.clone()
    excess[:, :-1] = (scaled[:, :-1] - draft).clamp_(min=0)
    passed = for_tests < prefix_acceptance(factors[:, 1:], excess[:, 1:].sum(-1), lengths)
    numbered = torch.arange(1, tokens.shape[1] + 1, device=tokens.device) * passed
    accepted = pad(numbered, (1, 0)).amax(1)

    rows = torch.arange(len(accepted), device=accepted.device)
    wanted, weights = target[rows, accepted], excess[rows, accepted]
    usual = (accepted < lengths) & weights.any(-1)  # not after all drafts, nor where rounding left nothing
    numbers = for_extra[rows, accepted] if for_extra.dim() > 1 else for_extra
    extra = draw_or_race(torch.where(usual[:, None], weights, wanted), numbers)
    return torch.stack([accepted, extra], 1)


def prefix_factors(ratios: Float64[Tensor, "batch drafts"]) -> Float64[Tensor, "batch drafts+1"]:
    """The factors p_0 = 1 and ``p_i = min(1, p_(i-1) * target(x_i) / draft(x_i))``, from the quotients.

    >>> prefix_factors(torch.tensor([[1.5, 0.5]]))
    tensor([[1.0000, 1.0000, 0.5000]])
    """
    factors = [ratios.new_ones(len(ratios))]
    for ratio in ratios.unbind(1):
        factors.append((factors[-1] * ratio).clamp(max=1))
    return torch.stack(factors, 1)


def prefix_acceptance(
    factors: Float64[Tensor, "batch drafts"],
    mass: Float64[Tensor, "batch drafts"],
    lengths: Int64[Tensor, " batch"],
) -> Float64[Tensor, "batch drafts"]:
    """Probability h_i with which the first i drafts pass their test, i = 1 .. K; 0 where a row has fewer.

    ``h_i = m / (m + 1 - p_i)``, m the sum of ``(p_i * target - draft)+`` at position i + 1, and 0 for m = 0;
    all drafts of a row pass with p_i.

    >>> factors, mass = torch.tensor([[0.5, 0.5, 0.5]]), torch.tensor([[0.5, 0.5, 0.5]])
    >>> prefix_acceptance(factors, mass, torch.tensor([2]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    partly = torch.where(mass > 0, mass / (mass + 1 - factors), 0.0)
    count = torch.arange(1, factors.shape[1] + 1, device=factors.device)
    tests = torch.where(count == lengths[:, None], factors, partly)
    return torch.where(count <= lengths[:, None], tests, 0.0)
