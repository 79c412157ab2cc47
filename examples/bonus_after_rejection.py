"""Speculative sampling as many notebooks have it, with the bug that many of them have.

Every accepted or replaced token is appended, and when the loop over the drafts is through, the bonus token as
well. But after a rejection at the last draft the loop is through, too: a token follows that nobody may draw
there, from a law that assumes the rejected draft.
"""

import torch
from torch import Tensor

from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch


def verify(batch: VerifyBatch, *, seed: int) -> Tensor:
    """Emitted tokens, int64 ``[B, K + 1]``."""
    generator = torch.Generator().manual_seed(seed)
    rows, drafts, _ = batch.shape
    emitted = torch.full((rows, drafts + 1), NO_TOKEN)
    for row in range(rows):
        count = int(batch.num_draft_tokens[row])
        tokens = step(batch, row, count, generator)
        emitted[row, : len(tokens)] = torch.tensor(tokens)
    return emitted


def step(batch: VerifyBatch, row: int, count: int, generator: torch.Generator) -> list[int]:
    """The tokens of one row."""
    target = batch.target_probs[row]
    tokens: list[int] = []
    for position in range(count):
        token = int(batch.draft_tokens[row, position])
        draft = torch.nn.functional.one_hot(batch.draft_tokens[row, position], target.shape[-1]).double()
        if batch.draft_probs is not None:
            draft = batch.draft_probs[row, position]
        number = torch.rand((), generator=generator, dtype=torch.float64)
        if number * draft[token] < target[position, token]:
            tokens.append(token)
            continue
        residual = (target[position] - draft).clamp(min=0)
        tokens.append(int(torch.multinomial(residual, 1, generator=generator)))
        if position < count - 1:
            return tokens
    # Here is the bug: a rejection of the last draft gets here as well.
    return [*tokens, int(torch.multinomial(target[count], 1, generator=generator))]
