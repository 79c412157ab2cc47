"""Verifiers that have one buffer for all their answers, as CUDA graphs want it: the answers are copied."""

from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from support.law_runs import audited
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.verifier_checks import CALLS, REPLAY


class Buffered(ChainVerifier):
    """Emits, and drafts, into memory that it has used before."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[int, ...], Tensor] = {}

    def verify(self, batch: Any, **options: Any) -> Int64[Tensor, "batch drafts+1"]:
        return self._kept(super().verify(batch, **options))

    def draft(self, *arguments: Any, **options: Any) -> Int64[Tensor, " batch"]:
        return self._kept(super().draft(*arguments, **options))

    def _kept(self, tokens: Tensor) -> Tensor:
        buffer = self._buffers.setdefault(tuple(tokens.shape), torch.empty_like(tokens))
        return buffer.copy_(tokens)


class Careless(Buffered):
    """The same, with another seed in each call."""

    calls = 0

    def verify(self, batch: Any, *, seed: int, **options: Any) -> Int64[Tensor, "batch drafts+1"]:
        self.calls += 1
        return super().verify(batch, seed=seed + self.calls, **options)


def test_an_exact_verifier_with_buffers_is_not_refuted() -> None:
    """False alarms have probability 1e-9; before answers were copied, four checks refuted it."""
    found = audited(Buffered, budget=20_000)
    assert not [row.check.id for row in found.values() if row.verdict in (Verdict.REFUTED, Verdict.UNKNOWN)]
    assert found[CALLS].verdict is found[REPLAY].verdict is Verdict.HOLDS


def test_a_verifier_with_buffers_that_ignores_its_seed_is_found() -> None:
    """Equal calls give other tokens in some of 4,096 rows but for a probability far below 1e-9."""
    found = audited(Careless, budget=20_000, only=frozenset({CALLS, REPLAY}))
    assert found[REPLAY].verdict is Verdict.REFUTED
    assert found[CALLS].verdict is not Verdict.REFUTED
