"""What all criteria need: random laws, batches of them, counts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch, as_logits
from tokenlaw.spec.philox import derived_key
from tokenlaw.spec.row_laws import RowParameters


@dataclass(frozen=True)
class Criterion:
    """One test of another project.

    Attributes
    ----------
    name : short.
    source : whose test it is.
    requests : how many requests (steps of one row) it makes.
    kills : ``kills(verifier, seed)``: does the verifier fail?
    """

    name: str
    source: str
    requests: int
    kills: Callable[[Any, int], bool]


def generator(seed: int, *parts: int | str) -> torch.Generator:
    """Random numbers of one criterion."""
    return torch.Generator().manual_seed(derived_key(seed, *parts))


def drawn(law: Tensor, count: int, source: torch.Generator) -> Tensor:
    """Tokens from one law ``[V]``, int64 ``[count]``, by the inverse of its sums (fast for wide laws)."""
    sums = law.cumsum(0)
    numbers = torch.rand(count, generator=source, dtype=torch.float64) * sums[-1]
    return torch.searchsorted(sums, numbers, right=True).clamp(max=len(law) - 1)


def one_pair(
    target: Tensor,
    draft: Tensor,
    rows: int,
    params: RowParameters | None = None,
    *,
    drafts: Tensor,
) -> VerifyBatch:
    """The laws ``[K + 1, V]`` and ``[K, V]`` (after the sampling parameters) for every row.

    With other parameters than the defaults, ``target`` and ``draft`` are logits.
    """
    logits = (target, draft) if params else (as_logits(target, "target"), as_logits(draft, "draft"))
    return VerifyBatch(
        drafts,
        torch.full((rows,), len(draft)),
        logits[0].expand(rows, *target.shape),
        logits[1].expand(rows, *draft.shape),
        params or RowParameters.default(rows),
    )


def own_drafts(verifier: Any, logits: Tensor, rows: int, params: RowParameters, seed: int) -> Tensor:
    """Drafts by the verifier's own drafter from shared logits ``[K, V]``."""
    tokens = [
        verifier.draft(place.expand(rows, -1), params, position=number, seed=seed)
        for number, place in enumerate(logits)
    ]
    return torch.stack(tokens, dim=1)


def histogram(tokens: Tensor, vocabulary: int) -> NDArray[np.float64]:
    """How often each token occurs; `NO_TOKEN` isn't counted."""
    there = tokens[tokens != NO_TOKEN]
    return torch.bincount(there, minlength=vocabulary).double().numpy()
