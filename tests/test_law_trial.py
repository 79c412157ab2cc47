"""One scenario on one verifier: silent on exact ones, loud on wrong ones, whenever it is looked at.

False alarms: the e-value of a check exceeds 1e9 with a probability of at most 1e-9 under its law (Markov), so
that the tests of exact verifiers, 200 e-values in all, fail with a probability below 1e-6.
"""

import math
from typing import Any

import pytest
import torch

from support.law_runs import Seeded, SingleChain, small_scenario
from tokenlaw.impl.speculative.block import BlockVerifier
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.impl.speculative.sample_and_match import SampleAndMatchVerifier
from tokenlaw.spec.generation_contracts import BLOCK, EXACT, TEXTBOOK, VerifyBatch
from tokenlaw.stats.measures import BONUS, COMPLETED, JOINT, LENGTH, REJECTED
from tokenlaw.stats.row_kinds import equal, residual
from tokenlaw.stats.scenario import Scenario
from tokenlaw.stats.scenarios import COMMON
from tokenlaw.stats.trial import Trial, affordable_mean, largest_rows, poisson_size, stages

NEEDED = 9 * math.log(10)


def run(
    verifier: Any, scenario: Scenario, claims: str, *means: float, seed: int = 0, **options: Any
) -> Trial:
    trial = Trial(verifier, scenario, claims=claims, seed=seed, device="cpu", **options)
    for mean in means:
        trial.run_stage(mean, 2_000, lambda: None)
    return trial


class TargetForResidual(ChainVerifier):
    """Replaces a rejected draft by a token of the target."""

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        emitted = super().verify(batch, seed=seed, uniforms=uniforms)
        accepted = (emitted >= 0).sum(-1) - 1
        laws = batch.target_probs[torch.arange(len(accepted)), accepted]
        drawn = torch.multinomial(laws, 1, generator=torch.Generator().manual_seed(seed))
        wrong = (accepted < batch.num_draft_tokens)[:, None] & (
            torch.arange(emitted.shape[1]) == accepted[:, None]
        )
        return torch.where(wrong, drawn, emitted)


class LeastForBonus(ChainVerifier):
    """The bonus token is the least likely one, one time in four: a total variation of 0.12 or more."""

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        emitted = super().verify(batch, seed=seed, uniforms=uniforms)
        accepted = (emitted >= 0).sum(-1) - 1
        bonus = (accepted == batch.num_draft_tokens) & (batch.num_draft_tokens > 0)
        often = torch.rand(len(bonus), generator=torch.Generator().manual_seed(seed)) < 0.25
        last = torch.arange(emitted.shape[1]) == accepted[:, None]
        least = batch.target_probs[torch.arange(len(bonus)), accepted].argmin(-1, keepdim=True)
        return torch.where((bonus & often)[:, None] & last, least, emitted)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4))])
@pytest.mark.parametrize(
    ("make", "claims"),
    [
        (ChainVerifier, TEXTBOOK),
        (SingleChain, TEXTBOOK),
        (BlockVerifier, BLOCK),
        (SampleAndMatchVerifier, EXACT),
    ],
)
def test_exact_verifiers_are_not_refuted_at_any_look(make: Any, claims: str, seed: int) -> None:
    trial = run(make(), small_scenario(COMMON, seed=seed), claims, seed=seed)
    asked = (COMPLETED,) if claims == EXACT else (COMPLETED, JOINT)
    asked += (LENGTH, REJECTED, BONUS) if claims == TEXTBOOK else ()
    for mean in (500.0, 1500.0, 6000.0):
        trial.run_stage(mean, 1000, lambda: None)
        for check in asked:
            log_e = trial.log_e(check)
            assert log_e is not None
            assert log_e < NEEDED
    assert not any(result.impossible() for result in trial.kinds)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("make", "checks"),
    [(TargetForResidual, (COMPLETED, JOINT, REJECTED)), (LeastForBonus, (COMPLETED, JOINT, BONUS))],
)
def test_wrong_verifiers_are_refuted_where_they_are_wrong(
    make: Any, checks: tuple[str, ...], seed: int
) -> None:
    """The total variation is above 0.1 in most kinds, which get 3,000 rows each; those miss it never."""
    trial = run(make(), small_scenario((residual,), seed=seed, ragged=False), TEXTBOOK, 6_000, seed=seed)
    for check in checks:
        log_e = trial.log_e(check)
        assert log_e is not None
        assert log_e > NEEDED
    for check in {BONUS, REJECTED} - set(checks):
        log_e = trial.log_e(check)
        assert log_e is not None
        assert log_e < NEEDED


def test_impossible_outcomes_are_told_most_frequent_first() -> None:
    trial = run(TargetForResidual(), small_scenario((residual,), ragged=False), TEXTBOOK, 4_000)
    (result,) = trial.kinds
    assert result.seen is not None
    found = result.impossible()
    frequency = [result.seen.outcomes[(*(t + 1 for t in one), *(0,) * (3 - len(one)))] for one in found]
    assert trial.log_e(JOINT) == math.inf
    assert frequency == sorted(frequency, reverse=True)
    assert frequency[0] > 100


def test_rejections_of_equal_laws_are_doubtful_and_rare() -> None:
    trial = run(SingleChain(), small_scenario((equal,), ragged=False), TEXTBOOK, 20_000)
    (result,) = trial.kinds
    count, mean = result.doubtful()
    assert count <= 2  # float32 rejects about once in ten million
    assert 0.01 < mean < 2


def test_a_look_that_promises_nothing_is_left_out() -> None:
    scenario = small_scenario((residual,), ragged=False)
    exact = Trial(ChainVerifier(), scenario, claims=TEXTBOOK, seed=0, device="cpu")
    assert not exact.run_stage(3_000, 1000, lambda: None, last=False)
    assert exact.log_e(JOINT) is None
    assert exact.run_stage(3_000, 1000, lambda: None)
    assert exact.log_e(JOINT) is not None
    wrong = Trial(TargetForResidual(), scenario, claims=TEXTBOOK, seed=0, device="cpu")
    assert wrong.run_stage(3_000, 1000, lambda: None, last=False)


def test_a_stage_that_is_too_large_is_left_out() -> None:
    trial = Trial(ChainVerifier(), small_scenario(), claims=TEXTBOOK, seed=0, device="cpu")
    assert trial.run_stage(1_000, 500, lambda: None, most=500)
    assert (trial.samples, trial.expected) == (0, 0.0)
    assert trial.log_e(JOINT) == pytest.approx(0)
    trial.run_stage(1_000, 500, lambda: None, most=2_000)
    assert 500 < trial.samples < 2_000
    assert trial.expected == 1_000


@pytest.mark.parametrize("budget", [0, 1, 10, 500, 7_999, 8_001, 10**6, 10**9])
def test_stages_stay_within_the_budget(budget: int) -> None:
    """Four standard deviations: beyond with a probability of at most 0.005, for means of 0.05 and more."""
    means = stages(budget)
    assert sum(means) == pytest.approx(affordable_mean(budget))
    assert all(mean > 0 for mean in means)
    assert len(means) <= 12
    total = affordable_mean(budget)
    assert total + 4 * math.sqrt(total) <= budget * (1 + 1e-12) + 1e-9
    beyond = sum(poisson_size(total, seed, "test") > budget for seed in range(200))
    assert beyond <= 8  # 1 on average, at most


def test_calls_fit_the_budget_and_the_cache() -> None:
    scenario = small_scenario()
    assert largest_rows(scenario, 10, "cpu") == 10
    assert largest_rows(scenario, 1_000, "cpu") == 64
    assert largest_rows(scenario, 10**9, "cpu") == 8_192
    assert largest_rows(scenario, 0, "cpu") == 1


def test_events_are_counted() -> None:
    trial = run(ChainVerifier(), small_scenario(own_drafter=True), TEXTBOOK, 2_000)
    events = trial.events()
    seen = [result.seen for result in trial.kinds]
    lengths = [kind.length for kind in trial.scenario.kinds]
    rows = [int(one.outcomes.sum()) if one else 0 for one in seen]
    drafted = sum(count for count, length in zip(rows, lengths, strict=True) if length)
    assert events["rejections"] + events["bonus tokens"] == drafted
    assert 0 < events["rejections at the last draft"] < events["rejections"]
    assert events["own drafts"] == sum(rows)


def test_with_a_tolerance_only_what_is_beyond_it_is_refuted() -> None:
    """The seeded double isn't exact at all; the chain verifier is, and TV 0.3 is far from both."""
    scenario = small_scenario((residual,), ragged=False)
    exact = run(ChainVerifier(), scenario, TEXTBOOK, 4_000, tolerance=0.05)
    wrong = run(Seeded(), scenario, TEXTBOOK, 4_000, tolerance=0.05)
    for check in (COMPLETED, JOINT):
        assert (exact.log_e(check) or 0) < 0
        assert (wrong.log_e(check) or 0) > NEEDED
    assert exact.log_e(LENGTH) is None
