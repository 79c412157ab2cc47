"""Wrappers that spoil the law of what a verifier or a decoder emits."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from tokenlaw.impl.faults.wrapper_base import Wrapper
from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch


class TargetForResidual(Wrapper):
    """A verifier that replaces a rejected draft by a token of the target's law: nothing is subtracted."""

    def __init__(self, wrapped: Any) -> None:
        super().__init__(wrapped)
        self._spoil("verify", self._verify)

    def _verify(
        self, verify: Callable[..., Any], batch: VerifyBatch, *, seed: int, **numbers: Any
    ) -> Int64[Tensor, "batch drafts+1"]:
        emitted: Tensor = verify(batch, seed=seed, **numbers)
        last = (emitted != NO_TOKEN).sum(-1) - 1
        rejected = ((last >= 0) & (last < batch.num_draft_tokens.to(last.device))).nonzero()[:, 0]
        if not len(rejected):
            return emitted
        places = last[rejected]
        laws = batch.target_probs[rejected, places]
        generator = torch.Generator(laws.device).manual_seed(seed)
        drawn = torch.multinomial(laws, 1, generator=generator)[:, 0]
        spoilt = emitted.clone()
        spoilt[rejected, places] = drawn.to(spoilt.dtype)
        return spoilt


class LastTokenRepeated(Wrapper):
    """A decoder whose finished samples end with the token before the last one, twice."""

    def __init__(self, wrapped: Any) -> None:
        super().__init__(wrapped)
        self._spoil("decode", self._decode)
        if callable(getattr(wrapped, "generated", None)):
            self._spoil("generated", self._generated)

    def _decode(self, decode: Callable[..., Any], request: Any, *, seed: int) -> list[list[int]]:
        return _repeated(decode(request, seed=seed))

    def _generated(self, generated: Callable[..., Any], handle: Any) -> Any:
        samples = generated(handle)
        return _repeated(samples) if self._wrapped.is_finished(handle) else samples


def _repeated(samples: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[*tokens[:-1], tokens[-2]] if len(tokens) > 1 else list(tokens) for tokens in samples]
