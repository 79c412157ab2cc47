"""What checks promise to see that are decided without chance, and that no verdict is without a promise."""

from collections import Counter
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from support.law_runs import audited, small_scenario
from tokenlaw.impl.speculative import VERIFIERS
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.spec.generation_contracts import NO_TOKEN, TEXTBOOK, VerifyBatch
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.power import visible_share
from tokenlaw.stats.promises import ONE_BY_ONE, promised_one_by_one
from tokenlaw.stats.scenario import Tables
from tokenlaw.stats.small_checks import ROWS, boundary
from tokenlaw.stats.verifier_checks import PROBED, PROTOCOL, REPLAY, TOGETHER

SEEDS = range(40)


class Striking:
    """Does something wrong to a share of what it's asked, each independently and whatever the call's seed."""

    claims = TEXTBOOK

    def __init__(self, share: float, seed: int) -> None:
        self.share, self.generator = share, torch.Generator().manual_seed(seed)

    def struck(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.generator, dtype=torch.float64) < self.share


class Forgetful(Striking):
    """Ends struck rows with another token; only when asked the second time."""

    asked = 0

    def verify(self, batch: VerifyBatch, *, seed: int) -> Any:
        emitted = ChainVerifier().verify(batch, seed=seed)
        self.asked += 1
        last = (emitted != NO_TOKEN).sum(1, keepdim=True) - 1
        other = emitted.scatter(1, last, (emitted.gather(1, last) + 1) % batch.shape[2])
        return torch.where(self.struck(len(emitted), 1), other, emitted) if self.asked == 2 else emitted


class Mistaken(Striking):
    """Decides the other way about struck drafts, and emits token 0 behind the accepted ones."""

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Tensor) -> Any:
        tokens = batch.draft_tokens[..., None]
        ratios = batch.target_probs[:, :-1].gather(-1, tokens)[..., 0]
        if batch.draft_probs is not None:
            ratios = ratios / batch.draft_probs.gather(-1, tokens)[..., 0]
        places = torch.arange(batch.draft_tokens.shape[1] + 1)
        passed = ((uniforms < ratios) ^ self.struck(*ratios.shape)) & (
            places[:-1] < batch.num_draft_tokens[:, None]
        )
        accepted = passed.long().cumprod(1).sum(1, keepdim=True)
        drafts = torch.nn.functional.pad(batch.draft_tokens, (0, 1))
        return torch.where(places < accepted, drafts, torch.where(places == accepted, 0, NO_TOKEN))


def test_a_share_of_rows_is_seen_as_promised() -> None:
    """Each seed misses the share that is promised with probability 0.001, and a tenth of it with 0.5."""

    def refuted(share: float) -> int:
        found = (
            audited(partial(Forgetful, share, seed), seed=seed, only=frozenset({REPLAY})) for seed in SEEDS
        )
        return sum(rows[REPLAY].verdict is Verdict.REFUTED for rows in found)

    share = visible_share(ROWS)
    assert refuted(share) == len(SEEDS)
    assert refuted(0.0) == 0
    assert 10 <= refuted(share / 10) <= 30


def test_a_share_of_decisions_is_seen_as_promised() -> None:
    """The same of decisions, of which only those are counted that rounding leaves certain."""
    tables = Tables.of(small_scenario())
    seen = {1.0: 0, 0.1: 0}
    for seed in SEEDS:
        exercised: Counter[str] = Counter()
        assert boundary(Mistaken(0.0, seed), tables, seed, exercised, 64) == ""
        share = visible_share(exercised["decisions"])
        for part in seen:
            seen[part] += boundary(Mistaken(share * part, seed), tables, seed, Counter(), 64) != ""
    assert seen[1.0] == len(SEEDS)
    assert 10 <= seen[0.1] <= 30


def test_what_is_looked_at_one_by_one_is_told() -> None:
    assert promised_one_by_one(REPLAY, 256, visible_share(256)) == (
        "With 256 rows asked twice, other tokens in a share >= 0.027 of them, each independently, would have "
        "been refuted with probability >= 0.999."
    )


@pytest.mark.parametrize(
    ("tolerance", "name"),
    [
        (None, "chain"),
        (0.05, "block"),
        (None, "tree"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((0.05, "chain"), (None, "block"), (0.05, "tree"))
        ),
    ],
)
def test_every_verdict_carries_what_it_would_have_seen(name: str, tolerance: float | None) -> None:
    found = audited(VERIFIERS[name], budget=60_000, **({"tolerance": tolerance} if tolerance else {}))
    held = {check: row for check, row in found.items() if row.verdict is Verdict.HOLDS}
    assert {PROTOCOL, REPLAY, TOGETHER} <= held.keys()
    for check, row in held.items():
        statistics = row.statistics or {}
        if check in ONE_BY_ONE:
            assert statistics["power"]["tv"] == visible_share(row.exercised[row.check.exercised_by[0]])
        if check == PROBED:
            assert 0 < statistics["known_to"] <= statistics["explained"]
            assert "each known to within " in row.message
            assert "is explained by float64, more would be refuted)" in row.message
        elif "power" in statistics:
            assert statistics["power"]["tv"] < 1
            assert "with probability >= 0.999" in row.message
        else:
            reason = (
                "no smaller deviation is promised" if check == TOGETHER else "No smallest deviation is known"
            )
            assert tolerance
            assert reason in row.message


def test_the_laws_together_see_what_one_of_them_sees() -> None:
    found = audited(ChainVerifier, budget=60_000)
    row, gates = found[TOGETHER], (found[TOGETHER].statistics or {})["gates"]
    powers = [(found[gate["check"]].statistics or {}).get("power") for gate in gates]
    told = [power for power in powers if power]
    assert (row.statistics or {})["power"] == {
        "tv": max(power["tv"] for power in told),
        "probability": 0.999,
        "laws": sum(power["laws"] for power in told),
    }
    assert "the best of them (law/length) from 0.16 on; no smaller deviation is promised" in row.message
