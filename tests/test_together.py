"""The laws together: what several of them show a little of, none enough alone.

Each run refutes an exact verifier with a probability of at most its alpha. The seeds are fixed: what is
refuted here is refuted every time.
"""

import math
from typing import Any

import pytest
import torch

from support.law_runs import audited, implementation, verdicts
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.impl.speculative.typical import TypicalAcceptance
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.suites import Settings
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.stats.law_book import WHOLE_RUN, LawBook
from tokenlaw.stats.ledger import Kind, Ledger, Stake
from tokenlaw.stats.measures import COMPLETED, DRAFTS, JOINT, LENGTH
from tokenlaw.stats.places import Place
from tokenlaw.stats.scenarios import scenarios
from tokenlaw.stats.together import Together
from tokenlaw.stats.verifier_checks import BY_ID, CHI_SQUARE, GATES, TOGETHER, TREES, WEIGHTS
from tokenlaw.stats.verifier_suite import VerifierSuite

SCENARIOS = scenarios(0, own_drafter=True, seeded=True)
BUDGET = 12_000


class NoDrafts(ChainVerifier):
    """A tenth of the rows without drafts emit token 0, which the completed and the joint law see alike."""

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        emitted = super().verify(batch, seed=seed, uniforms=uniforms)
        wrong = torch.rand(len(emitted), generator=torch.Generator().manual_seed(seed)) < 0.1
        wrong &= (batch.num_draft_tokens == 0) & (batch.target_probs[:, 0, 0] > 0)
        emitted[wrong, 0] = 0
        return emitted


def run(make: Any, *checks: str, **options: Any) -> dict[str, Evidence]:
    return audited(make, **{"only": frozenset(checks), "budget": BUDGET} | options)


def log_es(found: Evidence) -> dict[str, float]:
    assert found.statistics is not None
    return {gate["check"]: gate["log_e"] for gate in found.statistics["gates"]}


def test_what_no_law_refutes_alone_is_refuted_together_and_replayed() -> None:
    """Alpha lies between what the average reaches and what each gate needs: this is about verdicts only."""
    whole = run(NoDrafts, COMPLETED, JOINT, TOGETHER, seed=2)[TOGETHER].statistics
    assert whole is not None
    assert whole["log_e"] > 3
    alpha = math.exp(-whole["log_e"] + 1e-6)
    found = run(NoDrafts, COMPLETED, JOINT, TOGETHER, seed=2, alpha=alpha)
    assert verdicts(found) == {COMPLETED: "holds", JOINT: "holds", TOGETHER: "refuted"}
    first, *others = found[TOGETHER].message.split("\n")
    assert first.startswith("Weighted average of the e-values of 2 checks: log10 e = ")
    assert first.endswith("refutes); none is enough alone.")
    assert sorted(line.split(":")[0].strip() for line in others) == [COMPLETED, JOINT]
    assert all("% of the average" in line for line in others)
    counterexample = found[TOGETHER].counterexample
    assert counterexample is not None
    assert (counterexample["scenario"], counterexample["requests"]) == (WHOLE_RUN, BUDGET)
    (again,) = VerifierSuite().replay(implementation(NoDrafts), counterexample)
    assert (again.verdict, again.message) == (Verdict.REFUTED, found[TOGETHER].message)
    (healed,) = VerifierSuite().replay(implementation(ChainVerifier), counterexample)
    assert healed.verdict is Verdict.HOLDS


def test_alone_it_is_about_all_laws_that_are_claimed() -> None:
    found = run(ChainVerifier, TOGETHER)
    assert list(found) == [TOGETHER]
    assert set(log_es(found[TOGETHER])) == GATES - {TREES}
    exact = run(ChainVerifier, TOGETHER, claims="exact")
    assert not {JOINT, LENGTH} & set(log_es(exact[TOGETHER]))
    nothing = run(TypicalAcceptance, TOGETHER)
    assert nothing[TOGETHER].message == "not part of the claim 'approximate'"


def test_with_others_it_is_about_those() -> None:
    found = run(ChainVerifier, LENGTH, CHI_SQUARE, TOGETHER)
    assert set(log_es(found[TOGETHER])) == {LENGTH}
    assert found[TOGETHER].verdict is Verdict.HOLDS


def book(**settings: Any) -> LawBook:
    found = LawBook(frozenset(BY_ID), SCENARIOS, Settings(**settings))
    found.exercise({event: 1 for check in BY_ID.values() for event in check.exercised_by})
    found.whole = Place(WHOLE_RUN, 1000, 3, "textbook")
    return found


def show(found: LawBook, check: str, log_e: float) -> None:
    """Evidence of one scenario, as if all of the check had shown so much in this run."""
    scenario = "own drafts" if check == DRAFTS else "filters"
    found.record(check, scenario, log_e - math.log(found.share(check, scenario)))


def row(found: LawBook, check: str = TOGETHER) -> Evidence:
    return next(one for one in found.evidence() if one.check.id == check)


def test_it_takes_the_part_of_alpha_that_its_gates_have_and_none_of_its_own() -> None:
    found = book(alpha=1e-6)
    parts = [found.alpha(check) for check in GATES]
    assert found.alpha(TOGETHER) == pytest.approx(math.fsum(parts))
    assert math.fsum(found.alpha(check) for check in WEIGHTS) == pytest.approx(1e-6)
    assert row(found).statistics is not None
    assert "ledger" not in (row(found).statistics or {})


def test_many_small_ones_add_up() -> None:
    found = book()
    short = -math.log(found.alpha(TOGETHER))
    trial = (COMPLETED, JOINT, LENGTH, "law/rejected", "law/bonus", DRAFTS)
    for check in trial:
        show(found, check, short + 0.3)
    told = row(found)
    assert told.verdict is Verdict.REFUTED
    assert [one.check.id for one in found.evidence() if one.verdict is Verdict.REFUTED] == [TOGETHER]
    assert [one.check.id for one in found.refuted()] == [TOGETHER]
    assert told.counterexample is not None
    assert set(told.counterexample["asked"]) == set(BY_ID)


def test_what_one_refutes_alone_is_told() -> None:
    found = book()
    show(found, JOINT, math.inf)
    told = row(found)
    assert told.message == (
        "Weighted average of the e-values of 10 checks: log10 e = infinity (9.1 refutes); enough alone: "
        "law/joint.\n"
        "  law/joint: log10 e = infinity (9.7 refutes it alone)\n"
        + "\n".join(
            f"  {check}: log10 e = 0.0 ({needed} refutes it alone)"
            for check, needed in ((COMPLETED, 9.7), ("law/rejected", "10.0"), (LENGTH, 10.2))
        )
    )


def test_earlier_runs_multiply_into_each_gate_before_the_average() -> None:
    """e = (2, 3) now and (5, 7) before: the average is that of 10 and 21, not a product of averages."""
    gates = frozenset({COMPLETED, JOINT, TOGETHER})
    earlier = {COMPLETED: {"log_e": math.log(5)}, JOINT: {"log_e": math.log(7)}, TOGETHER: {"log_e": 40.0}}
    found = LawBook(gates, SCENARIOS, Settings(continued=earlier))
    assert (row(found).statistics or {})["log_e"] == pytest.approx(math.log(6))
    for check, e_value in ((COMPLETED, 2), (JOINT, 3)):
        average = dict.fromkeys(
            [scenario.name for scenario in SCENARIOS if not scenario.wide], math.log(e_value)
        )
        for scenario, log_e in average.items():
            found.record(check, scenario, log_e)
    assert (row(found).statistics or {})["log_e"] == pytest.approx(math.log((10 + 21) / 2))


def test_a_replay_has_the_evidence_of_earlier_runs() -> None:
    found = book(continued={JOINT: {"log_e": 12.0}})
    show(found, JOINT, 60.0)
    found.found(JOINT, 1.0, "worst", Place("filters", 5, 3, "textbook"))
    counterexample = row(found, JOINT).counterexample
    assert counterexample is not None
    assert counterexample["asked"] == {JOINT: 12.0}
    assert counterexample["alpha"] == pytest.approx(found.alpha(JOINT))
    assert (row(found).counterexample or {})["asked"][JOINT] == 12.0


def test_what_earlier_runs_refuted_stays_refuted() -> None:
    told = row(book(continued={JOINT: {"log_e": 60.0}}), JOINT)
    assert (told.verdict, told.message) == (Verdict.REFUTED, "Earlier runs showed enough.")
    assert (told.statistics or {})["log_e"] == 60.0


def test_it_is_no_better_than_its_gates() -> None:
    found = book()
    found.crash("Scenario 'x': verify raised an exception.\nTraceback", [JOINT])
    told = row(found)
    assert told.verdict is Verdict.UNKNOWN
    assert told.message.endswith("refutes), but part of it is unknown: law/joint.\nTraceback")
    untouched = LawBook(frozenset(BY_ID), SCENARIOS, Settings())
    told = row(untouched)
    assert (told.verdict, told.message) == (Verdict.NOT_EXERCISED, "never happened: laws with evidence")


def test_it_promises_no_more_than_its_gates() -> None:
    ledger = Ledger.allot(1e-9, [Stake("a", Kind.GATE, 3.0), Stake("b", Kind.GATE), Stake("c", Kind.P_VALUE)])
    verdicts_of = {"a": Verdict.HOLDS, "b": Verdict.HOLDS}
    assert Together(ledger, verdicts_of).message() == (
        "Weighted average of the e-values of 2 checks: log10 e = 0.0 (9.1 refutes). What refutes one of them "
        "refutes this too; no smaller deviation is promised to be seen. One that shows alike in all of them "
        "is refuted from log10 e = 9.1 in each on, instead of 9.2 to 9.7."
    )
