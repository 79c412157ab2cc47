"""Distances with a bound set by hand: total variation (vLLM), cosine (flashinfer), KL (TensorRT-LLM).

Sources: vllm-project/vllm, pull request 47386; flashinfer-ai/flashinfer, ``tests/utils/test_sampling.py``
(its frequency test of plain sampling, applied to the chain's first token, which it never is there);
NVIDIA/TensorRT-LLM, pull request 6542.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from peers.common import Criterion, drawn, generator, histogram, one_pair, own_drafts
from tokenlaw.spec.generation_contracts import NO_TOKEN
from tokenlaw.spec.row_laws import RowParameters

LIVE_TARGET = (0.1, 0.1, 0.4, 0.2, 0.05, 0.05, 0.05, 0.05)
LIVE_DRAFT = (0.1, 0.1, 0.05, 0.05, 0.3, 0.2, 0.1, 0.1)
TV_ROWS, TV_VOCABULARY, TV_BOUND, ACCEPTANCE = 65_536, 32_768, 0.008, (0.47, 0.53)
COSINE_ROWS, COSINE_VOCABULARY, COSINE_BOUND = 500_000, 111, 0.99
KL_ROWS, KL_VOCABULARY, KL_LIVE, KL_BOUND = 50_000, 500, 100, 0.01


def total_variation(verifier: Any, seed: int) -> bool:
    """First token and acceptance rate: 8 live tokens of 32,768, K = 1, drafts by the engine, half stay."""
    target, draft = torch.full((2, TV_VOCABULARY), -torch.inf, dtype=torch.float64)
    live = torch.arange(8) * 4_001 + 5
    target[live] = torch.tensor(LIVE_TARGET, dtype=torch.float64).log()
    draft[live] = torch.tensor(LIVE_DRAFT, dtype=torch.float64).log()
    params = RowParameters.default(TV_ROWS)
    tokens = own_drafts(verifier, draft[None], TV_ROWS, params, seed)
    batch = one_pair(target.expand(2, -1), draft[None], TV_ROWS, params, drafts=tokens)
    emitted = verifier.verify(batch, seed=seed)
    density = histogram(emitted[:, 0], TV_VOCABULARY) / TV_ROWS
    distance = 0.5 * np.abs(density - torch.softmax(target, -1).numpy()).sum()
    rate = (emitted[:, 1] != NO_TOKEN).double().mean().item()
    return not (distance < TV_BOUND and ACCEPTANCE[0] < rate < ACCEPTANCE[1])


def cosine(verifier: Any, seed: int) -> bool:
    """First token, V = 111: whole laws, then the target cut to its top 10, then both cut."""
    for number, cut in enumerate(((False, False), (True, False), (True, True))):
        source = generator(seed, "cosine", number)
        target, draft = torch.rand(2, COSINE_VOCABULARY, generator=source, dtype=torch.float64)
        target, draft = (
            _top(law, 10) if masked else law for law, masked in zip((target, draft), cut, strict=True)
        )
        target, draft = target / target.sum(), draft / draft.sum()
        tokens = drawn(draft, COSINE_ROWS, source)[:, None]
        batch = one_pair(target.expand(2, -1), draft[None], COSINE_ROWS, drafts=tokens)
        counts = histogram(verifier.verify(batch, seed=seed)[:, 0], COSINE_VOCABULARY)
        law = target.numpy()
        similarity = counts @ law / (np.linalg.norm(counts) * np.linalg.norm(law))
        if similarity <= COSINE_BOUND or counts[law == 0].any():
            return True
    return False


def _top(law: Tensor, kept: int) -> Tensor:
    """Zero outside the most probable tokens."""
    return torch.zeros_like(law).scatter(0, law.topk(kept).indices, law.topk(kept).values)


def divergence(verifier: Any, seed: int) -> bool:
    """KL to the first token's density, against that of direct sampling; 100 live tokens of 500, K = 1."""
    source = generator(seed, "kl")
    target, draft = torch.zeros(2, KL_VOCABULARY, dtype=torch.float64)
    for law in (target, draft):
        live = torch.randperm(KL_VOCABULARY, generator=source)[:KL_LIVE]
        law[live] = torch.rand(KL_LIVE, generator=source, dtype=torch.float64)
    target, draft = target / target.sum(), draft / draft.sum()
    tokens = drawn(draft, KL_ROWS, source)[:, None]
    batch = one_pair(target.expand(2, -1), draft[None], KL_ROWS, drafts=tokens)
    speculative = histogram(verifier.verify(batch, seed=seed)[:, 0], KL_VOCABULARY)
    direct = histogram(drawn(target, KL_ROWS, source), KL_VOCABULARY)
    return abs(_kl(target, speculative) - _kl(target, direct)) >= KL_BOUND


def _kl(law: Tensor, counts: NDArray[np.float64]) -> float:
    """KL divergence of the law from a density, zeros of which count as 1e-9."""
    density = np.maximum(counts / counts.sum(), 1e-9)
    live = law.numpy() > 0
    return float((law.numpy()[live] * np.log(law.numpy()[live] / density[live])).sum())


DISTANCES = (
    Criterion("TV .008", "vLLM PR 47386", TV_ROWS, total_variation),
    Criterion("cosine", "flashinfer", 3 * COSINE_ROWS, cosine),
    Criterion("KL", "TensorRT-LLM PR 6542", KL_ROWS, divergence),
)
"""Criteria of this file."""
