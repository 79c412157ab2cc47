"""Chi-square tests by place: vLLM's runner V2, a DeepSpec-like one, and the naive ones that people write.

Sources: vllm-project/vllm, ``tests/v1/spec_decode/test_rejection_sampler_utils.py``; deepseek-ai/DeepSpec,
pull request 48 (a reconstruction from its description).
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from peers.common import Criterion, drawn, generator, histogram, one_pair, own_drafts
from tokenlaw.spec.philox import derived_key
from tokenlaw.spec.row_laws import RowParameters, row_laws

SMALLEST_EXPECTED, SIGMAS = 5, 10
WIDE_ROWS, WIDE_VOCABULARY = 40_960, 4_096
NARROW_ROWS, NARROW_VOCABULARY = 200_000, 16
DEEPSPEC_ROWS, DEEPSPEC_ALPHA, NAIVE_ROWS, NAIVE_ALPHA = 20_000, 1e-9, 10_000, 1e-3


def pearson(counts: NDArray[np.float64], law: Tensor) -> tuple[float, int]:
    """Pearson's statistic and its degrees of freedom; cells with expected counts below 5 are merged."""
    expected = law.numpy() * counts.sum()
    few = expected < SMALLEST_EXPECTED
    seen, wanted = counts[~few], expected[~few]
    if few.any():
        if expected[few].sum() < SMALLEST_EXPECTED and counts[few].sum() == 0:
            return float(((seen - wanted) ** 2 / wanted).sum()), len(seen) - 1
        seen, wanted = np.append(seen, counts[few].sum()), np.append(wanted, expected[few].sum())
    return float(((seen - wanted) ** 2 / np.maximum(wanted, 1e-300)).sum()), len(seen) - 1


def ten_sigma(counts: NDArray[np.float64], law: Tensor) -> bool:
    """Is the statistic above its mean by ten standard deviations?"""
    statistic, degrees = pearson(counts, law)
    return bool(statistic > degrees + SIGMAS * np.sqrt(2 * max(degrees, 1)))


def below(alpha: float, counts: NDArray[np.float64], law: Tensor) -> bool:
    """Is the p-value below alpha?"""
    statistic, degrees = pearson(counts, law)
    return bool(stats.chi2.sf(statistic, max(degrees, 1)) < alpha)


def with_temperature(rows: int, temperature: float) -> RowParameters:
    """One temperature for all rows, in shared memory."""
    params = RowParameters.default(rows)
    shared = torch.tensor([temperature], dtype=torch.float64).expand(rows)
    return RowParameters(shared, params.top_k, params.top_p, params.min_p)


def wide(verifier: Any, seed: int) -> bool:
    """V = 4096, K = 1 and 3, T = .6 and 1, drafts by the test, every place and the bonus."""
    for drafts in (1, 3):
        for temperature in (0.6, 1.0):
            source = generator(seed, "wide", drafts, int(10 * temperature))
            target, draft = torch.randn(2, WIDE_VOCABULARY, generator=source, dtype=torch.float64)
            params = with_temperature(WIDE_ROWS, temperature)
            law, proposal = (
                row_laws(logits[None], with_temperature(1, temperature))[0] for logits in (target, draft)
            )
            tokens = drawn(proposal, WIDE_ROWS * drafts, source).reshape(WIDE_ROWS, drafts)
            batch = one_pair(
                target.expand(drafts + 1, -1), draft.expand(drafts, -1), WIDE_ROWS, params, drafts=tokens
            )
            emitted = verifier.verify(batch, seed=derived_key(seed, drafts, int(10 * temperature)))
            if any(ten_sigma(histogram(place, WIDE_VOCABULARY), law) for place in emitted.T):
                return True
    return False


def narrow(verifier: Any, seed: int) -> bool:
    """V = 16, K = 1 and 3, draft logits the negative of the target's, drafts by the engine."""
    for drafts in (1, 3):
        source = generator(seed, "narrow", drafts)
        target = torch.randn(NARROW_VOCABULARY, generator=source, dtype=torch.float64)
        params, call = with_temperature(NARROW_ROWS, 1.0), derived_key(seed, drafts)
        tokens = own_drafts(verifier, -target.expand(drafts, -1), NARROW_ROWS, params, call)
        batch = one_pair(
            target.expand(drafts + 1, -1), -target.expand(drafts, -1), NARROW_ROWS, params, drafts=tokens
        )
        law = torch.softmax(target, -1)
        emitted = verifier.verify(batch, seed=call)
        if any(ten_sigma(histogram(place, NARROW_VOCABULARY), law) for place in emitted.T):
            return True
    return False


def deepspec_like(verifier: Any, seed: int) -> bool:
    """V = 11, K = 3, another row at every place, alpha 1e-9 each, drafts by the test."""
    source = generator(seed, "deepspec")
    laws = torch.softmax(1.5 * torch.randn(7, 11, generator=source, dtype=torch.float64), -1)
    target, draft = laws[:4], laws[4:]
    tokens = torch.stack([drawn(law, DEEPSPEC_ROWS, source) for law in draft], dim=1)
    emitted = verifier.verify(one_pair(target, draft, DEEPSPEC_ROWS, drafts=tokens), seed=seed)
    return any(
        below(DEEPSPEC_ALPHA, histogram(place, 11), law) for place, law in zip(emitted.T, target, strict=True)
    )


def naive(verifier: Any, seed: int, *, first_only: bool, engine_drafts: bool) -> bool:
    """One chi-square of 10,000 requests, V = 10, K = 3: the first token, or all tokens in one histogram."""
    source, drafts = generator(seed, "naive"), 3
    target, draft = torch.softmax(torch.randn(2, 10, generator=source, dtype=torch.float64), -1)
    if engine_drafts:
        params = RowParameters.default(NAIVE_ROWS)
        tokens = own_drafts(verifier, draft.log().expand(drafts, -1), NAIVE_ROWS, params, seed)
    else:
        tokens = torch.stack([drawn(draft, NAIVE_ROWS, source) for _ in range(drafts)], dim=1)
    batch = one_pair(target.expand(drafts + 1, -1), draft.expand(drafts, -1), NAIVE_ROWS, drafts=tokens)
    emitted = verifier.verify(batch, seed=seed)
    return below(NAIVE_ALPHA, histogram(emitted[:, 0] if first_only else emitted, 10), target)


CHI_SQUARES = (
    Criterion("V2 wide", "vLLM runner V2", 4 * WIDE_ROWS, wide),
    Criterion("V2 narrow", "vLLM runner V2", 2 * NARROW_ROWS, narrow),
    Criterion("DeepSpec-like", "DeepSpec PR 48", DEEPSPEC_ROWS, deepspec_like),
    Criterion("naive first", "-", NAIVE_ROWS, partial(naive, first_only=True, engine_drafts=False)),
    Criterion("naive flat", "-", NAIVE_ROWS, partial(naive, first_only=False, engine_drafts=False)),
    Criterion("naive flat own", "-", NAIVE_ROWS, partial(naive, first_only=False, engine_drafts=True)),
)
"""Criteria of this file."""
