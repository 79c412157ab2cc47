"""What whole runs leave behind: counterexamples, evidence to go on from, and never more rows than allowed.

Each run refutes an exact verifier with a probability of at most 1e-9 (its alpha). The seeds are fixed: what
is refuted here is refuted every time.
"""

import functools
import re
from typing import Any

import pytest
import torch

from support.law_runs import Counting, FirstToken, audited, implementation, tally_of, verdicts
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.impl.speculative.top_k_tree import TopKTreeVerifier
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.suites import CounterexampleError
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.measures import COMPLETED, JOINT, LENGTH, REJECTED, SUPPORT
from tokenlaw.stats.verifier_checks import BY_ID, CHI_SQUARE, PROTOCOL, SEARCHED, WEIGHTS, WIDE
from tokenlaw.stats.verifier_suite import VerifierSuite

WITHOUT_SEARCH = frozenset(BY_ID) - {SEARCHED}
BUDGET = 60_000


def run(make: Any, **options: Any) -> Any:
    return audited(make, **{"only": WITHOUT_SEARCH, "budget": BUDGET} | options)


@functools.cache
def wrong_in_a_third() -> Any:
    """A run that refutes many checks; tests of counterexamples look at the same."""
    return run(lambda: FirstToken(0.3))


@pytest.mark.parametrize(
    ("make", "budget", "seed"),
    [
        (ChainVerifier, 1, 0),
        (ChainVerifier, 500, 0),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((ChainVerifier, 20, 1), (ChainVerifier, 10_000, 1), (TopKTreeVerifier, 20, 2))
        ),
        (TopKTreeVerifier, 10_000, 2),
    ],
)
def test_the_budget_is_kept(make: Any, budget: int, seed: int) -> None:
    verifier = Counting(make())
    found = run(lambda: verifier, budget=budget, seed=seed)
    assert found[PROTOCOL].operations >= verifier.rows
    assert found[PROTOCOL].operations <= budget
    assert budget < 100 or verifier.rows > budget / 4
    assert "refuted" not in tally_of(found)


@pytest.mark.parametrize("budget", [300, pytest.param(3_000, marks=pytest.mark.slow), 30_000])
def test_no_law_holds_without_a_promise(budget: int) -> None:
    found = audited(ChainVerifier, budget=budget)
    laws = {check: row for check, row in found.items() if check in WEIGHTS}
    held = {check for check, row in laws.items() if row.verdict is Verdict.HOLDS}
    for check in held:
        statistics = laws[check].statistics
        assert statistics is not None
        assert statistics["power"]["tv"] < 1
        assert "would have been refuted with probability >= 0.999" in laws[check].message
    told = {row.message for row in laws.values() if row.verdict is Verdict.NOT_EXERCISED}
    assert all(re.search("promise to refute nothing|never happened", message) for message in told)
    assert (SEARCHED in held) == (WIDE in held) == (budget > 10_000)
    assert COMPLETED in held or budget < 10_000


def test_a_tolerance_with_too_few_rows_is_no_pass() -> None:
    """With 300 rows no outcome at all could refute; with 60,000 some can, though no figure says which."""
    laws = frozenset({COMPLETED, JOINT})
    few, many = (run(ChainVerifier, tolerance=0.05, budget=budget, only=laws) for budget in (300, 60_000))
    assert set(tally_of(few)) == {"not exercised"}
    assert "promise to refute nothing (alpha 5e-10); at least about " in few[JOINT].message
    assert set(tally_of(many)) == {"holds"}
    assert many[JOINT].message.startswith("No smallest deviation is known")


def test_a_counterexample_gives_the_same_verdict_with_the_same_counts() -> None:
    found = wrong_in_a_third()
    told = {check for check, row in found.items() if row.counterexample is not None}
    assert {COMPLETED, JOINT, LENGTH, REJECTED, SUPPORT, WIDE} <= told
    target = implementation(lambda: FirstToken(0.3))
    for check in told:
        counterexample = found[check].counterexample
        assert counterexample is not None
        assert counterexample["check"] == check
        (again,) = VerifierSuite().replay(target, counterexample)
        assert (again.check.id, str(again.verdict)) == (check, "refuted")
        assert again.message.split("\n")[0] in found[check].message


def test_a_counterexample_must_fit() -> None:
    data = wrong_in_a_third()[COMPLETED].counterexample
    assert data is not None
    suite, target = VerifierSuite(), implementation(ChainVerifier)
    assert str(suite.replay(target, data)[0].verdict) == "holds"
    for change, message in (
        ({"schema": "x"}, "schema 'x'"),
        ({"check": "law/none"}, "there is no check 'law/none'"),
        ({"check": "law/trees"}, "can't be asked about law/trees: needs trees"),
        ({"scenario": "nowhere"}, "there is no scenario 'nowhere'"),
        ({"seed": True}, "seed is True"),
        ({"looks": -1}, "looks is -1"),
        ({"claims": "approximate"}, "not part of the claim 'approximate'"),
        ({"check": "", "scenario": "two by two, with replacement"}, "can't be asked about law/trees"),
    ):
        with pytest.raises(CounterexampleError, match=re.escape(message)):
            suite.replay(target, {**data, **change})


def test_a_tolerance_lets_through_what_is_within_it() -> None:
    """A share of 0.03 moves the completed law and the joint law by a total variation of at most 0.03."""
    laws = frozenset({COMPLETED, JOINT, SUPPORT})
    within, beyond = (
        run(lambda: FirstToken(0.03), tolerance=tolerance, budget=120_000, only=laws)
        for tolerance in (0.05, 0.001)
    )
    assert verdicts(within)[COMPLETED] == verdicts(within)[JOINT] == "holds"
    assert verdicts(beyond)[COMPLETED] == verdicts(beyond)[JOINT] == "refuted"
    assert within[SUPPORT].message == "not asked with a tolerance"


class Biased(ChainVerifier):
    """Accepts as if the random number were smaller by 15 %."""

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.rand(batch.shape[:2], generator=generator, dtype=torch.float64)
        return super().verify(batch, seed=seed, uniforms=0.85 * drawn)


def completed_of(make: Any, seed: int, continued: Any = None) -> Any:
    earlier = None if continued is None else {COMPLETED: continued.statistics}
    return run(make, seed=seed, only=frozenset({COMPLETED}), continued=earlier, budget=34_000)[COMPLETED]


def test_evidence_of_runs_adds_up() -> None:
    """What is too little in either of two runs is enough in both."""
    first, second = completed_of(Biased, 3), completed_of(Biased, 6)
    assert str(first.verdict) == str(second.verdict) == "holds"
    both = completed_of(Biased, 6, first)
    assert str(both.verdict) == "refuted"
    assert "of scenario" in both.message
    assert both.counterexample is not None


@pytest.mark.slow
def test_evidence_for_the_law_adds_up_as_well_and_costs_power() -> None:
    first, second = completed_of(ChainVerifier, 1), completed_of(ChainVerifier, 2)
    both = completed_of(ChainVerifier, 2, first)
    total = first.statistics["log_e"] + second.statistics["log_e"]
    assert first.statistics["log_e"] < 0
    assert both.statistics["log_e"] == pytest.approx(total, abs=1e-9)
    assert both.statistics["power"]["tv"] > second.statistics["power"]["tv"]


def test_other_statistics_stand_beside_a_law_that_holds() -> None:
    """They decide nothing. The least of 62 p-values at most is below 1e-6 with a probability below 7e-5."""
    row = audited(ChainVerifier, budget=30_000, only=frozenset({CHI_SQUARE}))[CHI_SQUARE]
    assert row.statistics is not None
    beside = row.statistics["beside"]
    assert beside["degrees_of_freedom"] > 0
    assert beside["likelihood_ratio"] > 0
    assert 1e-6 < beside["worst_cell"] <= 1
    assert f"G there {beside['likelihood_ratio']:.1f}" in row.message
