"""flashinfer's test of its chain kernel: only whether the output is legal, and certain laws.

Source: flashinfer-ai/flashinfer, ``tests/utils/test_sampling.py``; here two trials of V = 111 with 1
and 99 rows.
"""

from typing import Any

import torch
from torch import Tensor

from peers.common import Criterion, generator
from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch
from tokenlaw.spec.row_laws import RowParameters

VOCABULARY, TRIALS = 111, 2
BATCHES, DRAFT_LENGTHS = (1, 99), (1, 3, 5, 7)


def chain_validity(verifier: Any, seed: int) -> bool:
    """Random laws and drafts: legal tokens. Certain targets, drafts equal to them: all tokens."""
    for rows in BATCHES:
        for drafts in DRAFT_LENGTHS:
            for trial in range(TRIALS):
                source = generator(seed, rows, drafts, trial)
                if not (_legal(verifier, source, rows, drafts) and _certain(verifier, source, rows, drafts)):
                    return True
    return False


def _batch(tokens: Tensor, target: Tensor, source: torch.Generator) -> VerifyBatch:
    rows, drafts = tokens.shape
    draft = torch.rand(rows, drafts, VOCABULARY, generator=source, dtype=torch.float64).log()
    return VerifyBatch(tokens, torch.full((rows,), drafts), target, draft, RowParameters.default(rows))


def _legal(verifier: Any, source: torch.Generator, rows: int, drafts: int) -> bool:
    """Tokens in range; nothing behind the first one that isn't the draft."""
    tokens = torch.randint(0, VOCABULARY, (rows, drafts), generator=source)
    target = torch.rand(rows, drafts + 1, VOCABULARY, generator=source, dtype=torch.float64).log()
    emitted = verifier.verify(_batch(tokens, target, source), seed=source.initial_seed())
    in_range = ((emitted >= NO_TOKEN) & (emitted < VOCABULARY)).all()
    different = torch.nn.functional.pad((emitted[:, :-1] != tokens).long().cumsum(1), (1, 0)) > 0
    return bool(in_range and (emitted[:, 0] != NO_TOKEN).all() and (emitted[different] == NO_TOKEN).all())


def _certain(verifier: Any, source: torch.Generator, rows: int, drafts: int) -> bool:
    """Every token is known, the bonus too."""
    wanted = torch.randint(0, VOCABULARY, (rows, drafts + 1), generator=source)
    target = torch.full((rows, drafts + 1, VOCABULARY), -torch.inf, dtype=torch.float64)
    target.scatter_(-1, wanted[..., None], 0.0)
    emitted = verifier.verify(_batch(wanted[:, :-1], target, source), seed=source.initial_seed())
    return torch.equal(emitted, wanted)


VALIDITY = (
    Criterion("FI chain", "flashinfer", 2 * TRIALS * sum(BATCHES) * len(DRAFT_LENGTHS), chain_validity),
)
"""Criteria of this file."""
