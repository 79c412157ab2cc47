"""vLLM's test of convergence: the distance to the target must shrink much more than that to other laws.

Source: vllm-project/vllm, ``tests/samplers/test_rejection_sampler.py`` (V0) and the test of the same name
under ``tests/v1/sample`` (V1). The multiplier of 20 is theirs.
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from peers.common import Criterion, drawn, generator, histogram, one_pair, own_drafts
from tokenlaw.spec.philox import derived_key
from tokenlaw.spec.row_laws import RowParameters

SIZES = (10, 100, 1_000, 10_000, 100_000)
MULTIPLIER, REFERENCES, VOCABULARY = 20, 100, 10


def nearly_uniform(source: torch.Generator, *shape: int) -> Tensor:
    """Softmax of logits from [0, 1)."""
    return torch.softmax(torch.rand(*shape, generator=source, dtype=torch.float64), -1)


def converges(
    verifier: Any, seed: int, *, drafts: int, equal: bool, whole_block: bool, engine_drafts: bool
) -> bool:
    """One run of the test."""
    source = generator(seed, "ratio", drafts, equal)
    target = nearly_uniform(source, VOCABULARY)
    draft = target if equal else nearly_uniform(source, VOCABULARY)
    references = nearly_uniform(source, REFERENCES, VOCABULARY).numpy()
    to_target, to_references = [], []
    for size in SIZES:
        call = derived_key(seed, size)
        if engine_drafts:
            logits = draft.log().expand(drafts, -1)
            tokens = own_drafts(verifier, logits, size, RowParameters.default(size), call)
        else:
            tokens = torch.stack([drawn(draft, size, source) for _ in range(drafts)], dim=1)
        batch = one_pair(target.expand(drafts + 1, -1), draft.expand(drafts, -1), size, drafts=tokens)
        emitted = verifier.verify(batch, seed=call)[:, : drafts if whole_block else 1]
        counts = histogram(emitted, VOCABULARY)
        density = counts / max(counts.sum(), 1)
        to_target.append(float(np.linalg.norm(density - target.numpy())))
        to_references.append(float(np.linalg.norm(density - references, axis=1).mean()))
    gain = to_target[0] / max(to_target[-1], 1e-12)
    return bool(gain > MULTIPLIER * to_references[0] / to_references[-1])


def v0(verifier: Any, seed: int) -> bool:
    """Ten parametrisations, K = 1."""
    return not all(
        converges(
            verifier,
            derived_key(seed, number),
            drafts=1,
            equal=equal,
            whole_block=False,
            engine_drafts=False,
        )
        for number in range(5)
        for equal in (False, True)
    )


def v1(verifier: Any, seed: int, *, engine_drafts: bool) -> bool:
    """One run, K = 2; both drafted places in one histogram, the bonus token left out."""
    return not converges(verifier, seed, drafts=2, equal=False, whole_block=True, engine_drafts=engine_drafts)


RATIOS = (
    Criterion("V0 ratio", "vLLM V0", 10 * sum(SIZES), v0),
    Criterion("V1 ratio", "vLLM V1", sum(SIZES), partial(v1, engine_drafts=False)),
    Criterion("V1 ratio own", "vLLM V1, engine drafts", sum(SIZES), partial(v1, engine_drafts=True)),
)
"""Criteria of this file."""
