"""The check ``law/probed`` in a run of the suite: evidence, rows, refusals, counterexamples."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from support.law_runs import audited, implementation
from support.probed_verifiers import Given, probed
from tokenlaw.impl.faults import VERIFIER_FAULTS
from tokenlaw.impl.speculative import VERIFIERS
from tokenlaw.spec.block_verification import added_token_law, prefix_acceptance, prefix_factors
from tokenlaw.spec.contracts import ContractError
from tokenlaw.spec.generation_contracts import BLOCK, TEXTBOOK
from tokenlaw.spec.speculation import acceptance_probability, residual
from tokenlaw.spec.suites import CounterexampleError
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.spec.verifiers import as_verifier, precision_of
from tokenlaw.stats.probing_bounds import expected
from tokenlaw.stats.probing_cases import Contexts, probed_scenarios
from tokenlaw.stats.scenario import Tables
from tokenlaw.stats.verifier_checks import PROBED, PROTOCOL
from tokenlaw.stats.verifier_suite import VerifierSuite

ONLY = frozenset({PROBED})


def row(make: Any, **settings: Any) -> Evidence:
    return audited(make, only=ONLY, **settings)[PROBED]


def test_evidence_of_an_exact_verifier() -> None:
    found = row(VERIFIERS["chain"])
    assert found.verdict is Verdict.HOLDS
    assert found.message.startswith(f"Probed: {found.operations} evaluations, ")
    assert "differ from the spec's by " in found.message
    assert "isn't seen by this" in found.message
    assert found.statistics is not None
    assert found.statistics["evidence"] == "probed"
    assert found.statistics["largest_difference"] < 1e-12
    assert found.exercised["thresholds"] > 250
    assert found.counterexample is None


def test_evidence_without_noise_says_what_stays_sampled() -> None:
    found = row(VERIFIERS["tree"])
    assert found.verdict is Verdict.HOLDS
    assert "the tokens behind accepted drafts stay sampled" in found.message


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("top-k-tree", "the claim 'exact' says nothing about acceptance alone"),
        ("sample-and-match", "needs uniforms (keyword uniforms of verify)"),
        ("typical", "needs uniforms"),
    ],
)
def test_who_is_not_asked(name: str, reason: str) -> None:
    found = row(VERIFIERS[name])
    assert found.verdict is Verdict.NOT_SUPPORTED
    assert reason in found.message


def test_a_tolerance_leaves_it_out_and_few_rows_do_not_exercise_it() -> None:
    assert row(VERIFIERS["chain"], tolerance=1e-3).verdict is Verdict.NOT_SUPPORTED
    assert row(VERIFIERS["chain"], budget=500).verdict is Verdict.NOT_EXERCISED
    assert row(VERIFIERS["chain"], budget=16_000).verdict is Verdict.HOLDS


class CountingRows(Given):
    """Counts rows over all instances."""

    rows = 0

    def verify(self, batch: Any, *, seed: int, uniforms: Any = None, noise: Any = None) -> Any:
        CountingRows.rows += len(batch.num_draft_tokens)
        return super().verify(batch, seed=seed, uniforms=uniforms, noise=noise)


def test_its_rows_count() -> None:
    CountingRows.rows = 0
    found = audited(CountingRows, only=frozenset({PROBED, PROTOCOL}), budget=60_000)
    assert found[PROBED].operations > 1_000
    assert 40_000 < CountingRows.rows <= 60_000


@pytest.mark.parametrize("name", ["ratio_x1.003", "bonus_draft", "u0_accept", "bias_0.1pct"])
def test_counterexamples_replay(name: str) -> None:
    """The row is the same again for the faulty verifier; a mended one passes."""
    faulty = VERIFIER_FAULTS[name].make
    found = row(faulty, seed=3)
    assert found.verdict is Verdict.REFUTED
    assert found.counterexample is not None
    again = VerifierSuite().replay(implementation(faulty), found.counterexample)
    assert [one.message for one in again] == [found.message]
    mended = VerifierSuite().replay(implementation(VERIFIERS["chain"]), found.counterexample)
    assert [one.verdict for one in mended] == [Verdict.HOLDS]
    with pytest.raises(CounterexampleError, match="has the scenario 'probed laws', not 'filters'"):
        VerifierSuite().replay(implementation(faulty), {**found.counterexample, "scenario": "filters"})


class Crashing(Given):
    """Can't be given noise after all."""

    def verify(self, batch: Any, *, seed: int, uniforms: Any = None, noise: Any = None) -> Any:
        raise RuntimeError("no kernel for float64")


class Talkative(Given):
    """Emits more tokens than it may where the first number is 0."""

    def verify(self, batch: Any, *, seed: int, uniforms: Any = None, noise: Any = None) -> Tensor:
        emitted: Tensor = super().verify(batch, seed=seed, uniforms=uniforms, noise=noise)
        return torch.where(uniforms[:, :1] == 0, 0, emitted)


def test_crashes_are_unknown_and_broken_contracts_refuted() -> None:
    crashed = row(Crashing)
    assert crashed.verdict is Verdict.UNKNOWN
    assert "no kernel for float64" in crashed.message
    broken = row(Talkative)
    assert broken.verdict is Verdict.REFUTED
    assert broken.message.startswith("With numbers that are given it breaks the contract: row ")
    assert broken.counterexample is not None


class Short(Given):
    """Few rows a call, and no ragged or greedy ones."""

    most_rows = 700
    refuses = frozenset({"ragged", "greedy", "looked-up drafts"})

    def verify(self, batch: Any, *, seed: int, uniforms: Any = None, noise: Any = None) -> Any:
        assert len(batch.num_draft_tokens) <= self.most_rows
        assert bool((batch.num_draft_tokens == batch.draft_tokens.shape[1]).all())
        return super().verify(batch, seed=seed, uniforms=uniforms, noise=noise)


def test_limits_of_a_verifier_are_kept() -> None:
    found, _ = probed(Short())
    assert found.findings == []
    assert row(Short).verdict is Verdict.HOLDS


def test_precision_is_declared() -> None:
    assert precision_of(VERIFIERS["chain"](), "mine") is torch.float64
    assert precision_of(object(), "mine") is torch.float32
    rough: Any = as_verifier(lambda batch, *, seed: batch, "mine")
    rough.precision = torch.bfloat16
    with pytest.raises(
        ContractError, match=r"mine: its precision is torch.bfloat16; .*float64 or torch.float32"
    ):
        as_verifier(rough, "mine")


@pytest.mark.parametrize("claims", [TEXTBOOK, BLOCK])
def test_bounds_hold_what_the_spec_says(claims: str) -> None:
    for scenario in probed_scenarios(2):
        contexts = Contexts.of(Tables.of(scenario))
        rule = expected(contexts, claims, torch.float64)
        for between in (rule.accepts, rule.weights):
            assert bool((between.low <= between.value).all())
            assert bool((between.value <= between.high).all())
        for at, drafts in enumerate(contexts.drafts):
            _compare(contexts, at, drafts, rule, claims)


def _compare(contexts: Contexts, at: int, drafts: tuple[int, ...], rule: Any, claims: str) -> None:
    """Thresholds and laws of one context beside those of the spec."""
    length = len(drafts)
    laws: Any = {
        "target": contexts.target[at, : length + 1].tolist(),
        "draft": contexts.draft[at, :length].tolist(),
    }
    factors = prefix_factors(drafts, **laws)
    certain = False
    for place in range(length, -1, -1):
        weights = rule.weights.value[at, place]
        if claims == BLOCK:
            law = added_token_law(place, factors, **laws)
        elif place < length:
            law = residual(target=laws["target"][place], draft=laws["draft"][place])
        else:
            law = laws["target"][-1]
        if weights.sum() > 0:
            np.testing.assert_allclose(weights / weights.sum(), law, atol=1e-12)
        if not place:
            return
        token = drafts[place - 1]
        if claims == BLOCK:
            right = prefix_acceptance(place, factors, **laws)
        else:
            p, q = laws["target"][place - 1][token], laws["draft"][place - 1][token]
            right = acceptance_probability(draft=q, target=p)
        if not certain:
            assert min(rule.accepts.value[at, place - 1], 1) == pytest.approx(right, rel=1e-12)
        certain = claims == BLOCK and (certain or right >= 1)


def test_contexts_are_all_sequences_that_can_be_drafted() -> None:
    for scenario in probed_scenarios(5):
        contexts = Contexts.of(Tables.of(scenario))
        sums = np.bincount(contexts.kinds, contexts.weights)
        np.testing.assert_allclose(sums, 1.0)
        batch = contexts.batch
        np.testing.assert_allclose(batch.target_probs.numpy(), contexts.target, atol=1e-15)
        if batch.draft_probs is not None:
            np.testing.assert_allclose(batch.draft_probs.numpy(), contexts.draft, atol=1e-15)
        shorter = replace(scenario, kinds=scenario.kinds[:1])
        assert Contexts.of(Tables.of(shorter)).drafts == contexts.drafts[: int((contexts.kinds == 0).sum())]
