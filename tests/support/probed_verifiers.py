"""Verifiers that take all their numbers, made for the tests of probing, and one call to probe them."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from support.law_runs import single_laws
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.spec.capabilities import probe_capabilities
from tokenlaw.spec.contracts import VERIFIER
from tokenlaw.spec.generation_contracts import NO_TOKEN, TEXTBOOK, VerifyBatch
from tokenlaw.spec.verifiers import claim_of, precision_of, refusals_of
from tokenlaw.stats.guarded import Guarded
from tokenlaw.stats.probing import probe
from tokenlaw.stats.probing_outcome import Probed, Told

ROWS = 24_000


def probed(verifier: Any, *, seed: int = 0, rows: int = ROWS) -> tuple[Probed, int]:
    """What a probe finds, and how many rows it took."""
    guarded = Guarded(verifier)
    has_noise = "noise" in probe_capabilities(VERIFIER, verifier)
    told = Told(claim_of(verifier, ""), precision_of(verifier, ""), has_noise, refusals_of(verifier, ""))
    return probe(guarded, told, seed=seed, device="cpu", rows=rows), guarded.rows


class SingleGiven:
    """Chain rejection sampling in float32 with numbers that are given, written without the spec.

    Rounds the numbers too. A fault, or another way to compute the same, overrides a method.
    """

    claims = TEXTBOOK

    def verify(
        self,
        batch: VerifyBatch,
        *,
        seed: int,
        uniforms: Float[Tensor, "batch drafts"],
        noise: Float[Tensor, "batch drafts+1 vocabulary"],
    ) -> Int64[Tensor, "batch drafts+1"]:
        target = single_laws(batch.target_logits, batch.params)
        tokens = batch.draft_tokens[..., None]
        if batch.draft_logits is None:
            draft = torch.zeros_like(target[:, :-1]).scatter(-1, tokens, 1.0)
        else:
            draft = single_laws(batch.draft_logits, batch.params)
        p, q = target[:, :-1].gather(-1, tokens)[..., 0], draft.gather(-1, tokens)[..., 0]
        there = torch.arange(tokens.shape[1]) < batch.num_draft_tokens[:, None]
        accepted = (there & self.passes(uniforms.float(), p, q)).long().cumprod(1).sum(1)
        rows = torch.arange(len(accepted))
        taken = torch.nn.functional.pad(draft, (0, 0, 0, 1))[rows, accepted]
        taken = taken.masked_fill((accepted == batch.num_draft_tokens)[:, None], 0.0)
        weights = self.weights(target[rows, accepted], taken)
        weights = torch.where(weights.sum(-1, keepdim=True) > 0, weights, target[rows, accepted])
        extra = self.winner(weights / weights.sum(-1, keepdim=True), noise[rows, accepted].float())
        places = torch.arange(tokens.shape[1] + 1)
        emitted = torch.nn.functional.pad(batch.draft_tokens, (0, 1)).where(
            places < accepted[:, None], NO_TOKEN
        )
        return emitted.scatter(1, accepted[:, None], extra[:, None])

    def passes(self, u: Tensor, p: Tensor, q: Tensor) -> Bool[Tensor, "batch drafts"]:
        return u < p / q

    def weights(self, p: Tensor, q: Tensor) -> Tensor:
        return (p - q).clamp(min=0)

    def winner(self, law: Tensor, noise: Tensor) -> Tensor:
        return (law / noise).argmax(-1)


class Product(SingleGiven):
    """Without a division."""

    def passes(self, u: Tensor, p: Tensor, q: Tensor) -> Bool[Tensor, "batch drafts"]:
        return u * q < p


class Logarithms(SingleGiven):
    """In the domain of logarithms, races with Gumbel noise."""

    def passes(self, u: Tensor, p: Tensor, q: Tensor) -> Bool[Tensor, "batch drafts"]:
        return (u.log() < p.log() - q.log()) & (p > 0)

    def winner(self, law: Tensor, noise: Tensor) -> Tensor:
        return (law.log() - noise.log()).argmax(-1)


class SingleBias(SingleGiven):
    """Accepts .3 % too readily."""

    def passes(self, u: Tensor, p: Tensor, q: Tensor) -> Bool[Tensor, "batch drafts"]:
        return u < p / q * 1.003


class SingleClamp(SingleGiven):
    """A residual of 1e-6 at least for every token."""

    def weights(self, p: Tensor, q: Tensor) -> Tensor:
        return torch.where((q > 0).any(-1, keepdim=True), (p - q).clamp(min=1e-6), p)


class Given(ChainVerifier):
    """The reference, for verifiers that change what they are given."""

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None, noise: Any = None) -> Any:
        return super().verify(batch, seed=seed, uniforms=uniforms, noise=noise)
