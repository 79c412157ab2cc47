"""Whole runs of the law suite on verifiers, and verifiers made for its tests."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.spec.contracts import VERIFIER, Implementation
from tokenlaw.spec.generation_contracts import NO_TOKEN, TEXTBOOK, VerifyBatch
from tokenlaw.spec.row_laws import OFF_TOP_K, OFF_TOP_P, UNSEEDED, RowParameters
from tokenlaw.spec.suites import PROFILES, Settings
from tokenlaw.spec.verdicts import Evidence
from tokenlaw.stats.row_kinds import Make
from tokenlaw.stats.scenario import Scenario
from tokenlaw.stats.scenarios import MIXED, make_scenario
from tokenlaw.stats.verifier_checks import BY_ID
from tokenlaw.stats.verifier_suite import VerifierSuite


def implementation(make: Callable[[], Any]) -> Implementation:
    return Implementation("tested", "1", {VERIFIER: make})


def audited(
    make: Callable[[], Any], *, seed: int = 0, only: frozenset[str] = frozenset(BY_ID), **settings: Any
) -> dict[str, Evidence]:
    """Check id to evidence of a run."""
    rows = VerifierSuite().run(
        implementation(make),
        profile=PROFILES["dev"],
        seed=seed,
        selected=only,
        progress=lambda *_: None,
        settings=Settings(**settings),
    )
    return {row.check.id: row for row in rows}


def verdicts(found: Mapping[str, Evidence]) -> dict[str, str]:
    return {check: str(row.verdict) for check, row in found.items()}


def tally_of(found: Mapping[str, Evidence]) -> Counter[str]:
    """How many checks have each verdict."""
    return Counter(verdicts(found).values())


def small_scenario(makers: tuple[Make, ...] = MIXED, *, seed: int = 5, **options: Any) -> Scenario:
    """Mixed rows of 4 tokens and up to 2 drafts, some with fewer."""
    shape = {"vocabulary": 4, "drafts": 2} | options
    return make_scenario("small", makers, share=1.0, seed=seed, **shape)


class Counting:
    """Hands everything on to a verifier, and counts its rows and calls."""

    def __init__(self, verifier: Any) -> None:
        self._verifier, self.rows, self.calls = verifier, 0, 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._verifier, name)

    def verify(self, batch: VerifyBatch, *, seed: int) -> Any:
        self.rows, self.calls = self.rows + len(batch.num_draft_tokens), self.calls + 1
        return self._verifier.verify(batch, seed=seed)


class Seeded:
    """Chain rejection sampling whose numbers come from the seed and drafts of each row alone.

    What it emits doesn't depend on calls at all. Not exact: like rows without a seed emit alike.
    """

    claims = TEXTBOOK

    def verify(self, batch: VerifyBatch, *, seed: int) -> Int64[Tensor, "batch drafts+1"]:
        mixed = batch.num_draft_tokens + 7 * batch.draft_tokens.sum(-1)
        seeds = mixed if batch.params.seeds is None else batch.params.seeds
        seeds = torch.where(seeds == UNSEEDED, mixed, seeds)
        return ChainVerifier().verify(replace(batch, params=replace(batch.params, seeds=seeds)), seed=0)


class SingleChain:
    """Chain rejection sampling all of whose arithmetic is in float32, written without the spec."""

    claims = TEXTBOOK

    def verify(self, batch: VerifyBatch, *, seed: int) -> Int64[Tensor, "batch drafts+1"]:
        rows, drafts, _ = batch.shape
        generator = torch.Generator().manual_seed(seed)
        target = single_laws(batch.target_logits, batch.params)
        if batch.draft_logits is None:
            draft = torch.zeros_like(target[:, :-1]).scatter(-1, batch.draft_tokens[..., None], 1.0)
        else:
            draft = single_laws(batch.draft_logits, batch.params)
        alive = torch.ones(rows, dtype=torch.bool)
        emitted = torch.full((rows, drafts + 1), NO_TOKEN)
        for place in range(drafts + 1):
            p = target[:, place]
            q = draft[:, place] if place < drafts else torch.zeros_like(p)
            token = batch.draft_tokens[:, min(place, drafts - 1)]
            uniform = torch.rand(rows, generator=generator)
            ratio = p.gather(1, token[:, None])[:, 0] / q.gather(1, token[:, None])[:, 0]
            drafted = place < batch.num_draft_tokens
            accepted = alive & drafted & (uniform < ratio)
            ends = (alive & ~accepted).nonzero()[:, 0]
            left = torch.where(drafted[ends, None], (p[ends] - q[ends]).clamp(min=0), p[ends])
            left = torch.where(left.sum(-1, keepdim=True) > 0, left, p[ends])
            emitted[accepted, place] = token[accepted]
            if len(ends):
                emitted[ends, place] = torch.multinomial(left, 1, generator=generator)[:, 0]
            alive = accepted
        return emitted


def single_laws(
    logits: Float[Tensor, "batch positions vocabulary"], params: RowParameters
) -> Float32[Tensor, "batch positions vocabulary"]:
    """Temperature, top-k, top-p, min-p, in float32; once where all rows share their memory."""
    if logits.stride(0) == 0:
        return _single_laws(logits[:1], params.rows(slice(0, 1))).expand(logits.shape)
    return _single_laws(logits, params)


def _single_laws(logits: Tensor, params: RowParameters) -> Tensor:
    heat = params.temperature.float()[:, None, None]
    law = torch.softmax(logits.float() / torch.where(heat > 0, heat, 1.0), -1)
    ordered, order = law.sort(-1, descending=True)
    k = torch.where(params.top_k == OFF_TOP_K, law.shape[-1], params.top_k)[:, None, None]
    ordered = ordered.masked_fill(torch.arange(law.shape[-1]) >= k, 0.0)
    ordered = ordered / ordered.sum(-1, keepdim=True)
    before = ordered.cumsum(-1) - ordered
    threshold = torch.where(params.top_p >= OFF_TOP_P, torch.inf, params.top_p.float())
    ordered = ordered.masked_fill(before >= threshold[:, None, None], 0.0)
    ordered = ordered / ordered.sum(-1, keepdim=True)
    ordered = ordered.masked_fill(ordered < params.min_p.float()[:, None, None] * ordered[..., :1], 0.0)
    law = torch.zeros_like(law).scatter(-1, order, ordered / ordered.sum(-1, keepdim=True))
    greedy = torch.zeros_like(law).scatter(-1, logits.argmax(-1, keepdim=True), 1.0)
    return torch.where(heat > 0, law, greedy)


class FirstToken(ChainVerifier):
    """A row in so many begins with token 0 and ends there."""

    def __init__(self, share: float) -> None:
        self.share = share

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        emitted = super().verify(batch, seed=seed, uniforms=uniforms)
        wrong = torch.rand(len(emitted), generator=torch.Generator().manual_seed(seed)) < self.share
        emitted[wrong] = -1
        emitted[wrong, 0] = 0
        return emitted
