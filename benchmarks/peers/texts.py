"""Greedy text equality: with and without drafts the same tokens at temperature 0.

Sources: llama.cpp, ``tools/server/tests/unit/test_speculative.py``; mlx-lm, ``tests/test_generate.py``; the
assisted-decoding tests of transformers. The engines' own gates ask for a share of equal texts only (vLLM: 60
to 70 of 100); here all must be equal, which is the strongest form and free of noise in float64.
"""

from typing import Any

import torch
from torch import Tensor

from peers.common import Criterion, generator
from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch
from tokenlaw.spec.philox import derived_key
from tokenlaw.spec.row_laws import RowParameters

PROMPTS, VOCABULARY, DRAFTS, ROUNDS = 100, 50, 3, 12


def text_equality(verifier: Any, seed: int) -> bool:
    """100 prompts of one token, K = 3, greedy drafts of a model that is nearly the target; 12 rounds."""
    source = generator(seed, "texts")
    target = 3 * torch.randn(VOCABULARY, VOCABULARY, generator=source, dtype=torch.float64)
    draft = target + torch.randn(VOCABULARY, VOCABULARY, generator=source, dtype=torch.float64)
    last = torch.randint(0, VOCABULARY, (PROMPTS,), generator=source)
    wanted = greedy(target, last, (DRAFTS + 1) * ROUNDS)
    texts: list[list[int]] = [[] for _ in range(PROMPTS)]
    for number in range(ROUNDS):
        emitted = one_round(verifier, target, draft, last, derived_key(seed, number))
        for text, row in zip(texts, emitted.tolist(), strict=True):
            text += [token for token in row if token != NO_TOKEN]
        last = torch.tensor([text[-1] for text in texts])
    return any(text != row[: len(text)] for text, row in zip(texts, wanted.tolist(), strict=True))


def greedy(table: Tensor, last: Tensor, count: int) -> Tensor:
    """So many most probable tokens behind each of the last ones, int64 ``[batch, count]``."""
    tokens = []
    for _ in range(count):
        last = table[last].argmax(-1)
        tokens.append(last)
    return torch.stack(tokens, dim=1)


def one_round(verifier: Any, target: Tensor, draft: Tensor, last: Tensor, seed: int) -> Tensor:
    """What one step emits behind the last tokens; all rows are greedy."""
    tokens = greedy(draft, last, DRAFTS)
    before = torch.cat([last[:, None], tokens], dim=1)
    rows = len(last)
    default = RowParameters.default(rows)
    params = RowParameters(0 * default.temperature, default.top_k, default.top_p, default.min_p)
    batch = VerifyBatch(tokens, torch.full((rows,), DRAFTS), target[before], draft[before[:, :-1]], params)
    emitted: Tensor = verifier.verify(batch, seed=seed)
    return emitted


TEXTS = (Criterion("greedy text", "llama.cpp, mlx-lm", PROMPTS * ROUNDS, text_equality),)
"""Criteria of this file."""
