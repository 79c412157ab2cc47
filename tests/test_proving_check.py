"""The check ``law/proved``: what can't be decided isn't judged, what is refuted is replayed."""

from itertools import product
from typing import Any

import pytest
import torch
from jaxtyping import Int64
from torch import Tensor

import tokenlaw
from support.law_runs import audited, implementation
from support.proofs import CALLS, LOOKED_UP, ONE, Make, case, request, whole
from tokenlaw import terminal
from tokenlaw.impl.faults import VERIFIER_FAULTS, ChainVerifier
from tokenlaw.impl.speculative.chain import ChainVerifier as Reference
from tokenlaw.spec.generation_contracts import NO_TOKEN, TEXTBOOK, VerifyBatch
from tokenlaw.spec.philox import derived_key
from tokenlaw.spec.suites import CounterexampleError
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.enumeration.law import Law
from tokenlaw.stats.proving_cases import chain_cases, tree_cases
from tokenlaw.stats.proving_laws import COMPLETED, JOINT, compared, completed
from tokenlaw.stats.scenario import Tables
from tokenlaw.stats.trial import kind_laws
from tokenlaw.stats.verifier_checks import PROVED
from tokenlaw.stats.verifier_suite import VerifierSuite

NEEDED = (
    "a proof needs a budget of 90,000 rows (--budget), or 150 paths (tokenlaw prove --max-paths); "
    "without one its laws are only sampled"
)


ALONE = frozenset({PROVED})


class FromTheSeed(ChainVerifier):
    """Numbers that are made of the seed without a generator; the law is right."""

    def numbers(self, params: Any, seed: int, use: str, count: int, position: int = 0) -> Tensor:
        rows = len(params.temperature)
        made = [derived_key(seed, use, position, at) / 2**63 for at in range(rows * count)]
        return torch.tensor(made, dtype=torch.float64).reshape(rows, count)


class RarelyFromTheSeed(ChainVerifier):
    """All numbers are drawn, but one seed in three ends after the first token."""

    def verify(
        self, batch: VerifyBatch, *, seed: int, uniforms: Any = None
    ) -> Int64[Tensor, "batch drafts+1"]:
        emitted = super().verify(batch, seed=seed, uniforms=uniforms)
        if derived_key(seed, "rarely") % 3 == 0:
            emitted[:, 1:] = NO_TOKEN
        return emitted


class Raising(ChainVerifier):
    """Doesn't take undecided numbers."""

    def passes(self, step: Any, numbers: Tensor) -> Tensor:
        if type(numbers) is not Tensor:
            raise TypeError("tensors only")
        return super().passes(step, numbers)


class Zero:
    """Always token 0, without a random number."""

    def verify(self, batch: VerifyBatch, *, seed: int) -> Int64[Tensor, "batch drafts+1"]:
        emitted = torch.full((batch.shape[0], batch.shape[1] + 1), NO_TOKEN)
        emitted[:, 0] = 0
        return emitted


class Illegal(ChainVerifier):
    """A token that doesn't exist behind every rejection."""

    def recover(self, step: Any, rows: Tensor, places: Tensor, numbers: Tensor) -> Tensor:
        return super().recover(step, rows, places, numbers) + 7


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (FromTheSeed, "with another seed the same choices give other tokens"),
        (RarelyFromTheSeed, "with another seed the same choices give other tokens"),
        (Raising, "with its random numbers decided, it raised TypeError: tensors only"),
    ],
)
def test_a_verifier_whose_numbers_arent_seen_is_never_judged(make: Make, reason: str) -> None:
    row = whole(make)
    assert row.verdict is Verdict.NOT_SUPPORTED
    assert reason in row.message
    assert "\n" not in row.message


def test_a_verifier_without_random_numbers_is_judged() -> None:
    assert case(Zero, ONE).verdict is Verdict.REFUTED


def test_an_illegal_answer_is_an_impossible_outcome() -> None:
    row = case(Illegal, ONE)
    assert row.verdict is Verdict.REFUTED
    assert "no legal answer: row 0 of 1, position 0: 7 is no token" in row.message


def test_the_check_is_part_of_an_audit() -> None:
    row = audited(Reference, only=ALONE, budget=100_000)[PROVED]
    assert row.verdict is Verdict.HOLDS
    assert row.counterexample is None
    few = audited(Reference, only=ALONE, budget=10_000)[PROVED]
    assert (few.verdict, few.operations) == (Verdict.NOT_SUPPORTED, 0)
    assert few.message == NEEDED
    unclaimed = audited(Reference, only=ALONE, claims="approximate")[PROVED]
    assert unclaimed.message == "not part of the claim 'approximate'"


def test_a_refutation_is_replayed() -> None:
    make = VERIFIER_FAULTS["bonus_argmax"].make
    row = audited(make, only=ALONE, budget=100_000)[PROVED]
    assert row.verdict is Verdict.REFUTED
    assert row.counterexample is not None
    (again,) = VerifierSuite().replay(implementation(make), row.counterexample)
    assert again.message.split("\n")[:2] == row.message.split("\n")[:2]
    (right,) = VerifierSuite().replay(implementation(Reference), row.counterexample)
    assert right.verdict is Verdict.HOLDS
    with pytest.raises(CounterexampleError, match="there is no case 'proof: none' for tested"):
        VerifierSuite().replay(implementation(make), row.counterexample | {"scenario": "proof: none"})


def test_a_tolerance_lets_through_what_is_within_it() -> None:
    make = VERIFIER_FAULTS["ratio_x1.01"].make
    asked = request(make, tolerance=0.01)
    assert asked.tolerance == 0.01
    assert request(make).tolerance == 1e-6


class OneRow(Reference):
    """Takes one row a call, no greedy rows, no drafts that weren't drawn."""

    most_rows = 1
    refuses = frozenset({"greedy", "looked-up drafts"})


def test_what_a_verifier_refuses_is_not_asked() -> None:
    names = {one.name.removeprefix("proof: ") for one in request(OneRow).cases(larger=True)}
    assert {ONE, "own drafts"} < names
    assert not names & {LOOKED_UP, CALLS, "two rows in one call", "greedy and random rows in one call"}


def test_cases_have_names_of_their_own() -> None:
    cases = chain_cases(0, own_drafter=True, larger=True) + tree_cases(0, larger=True)
    names = [one.name for one in cases]
    assert len(set(names)) == len(names)
    assert [one.name for one in chain_cases(0, own_drafter=False)] == [
        one.name for one in cases if one.name in {case.name for case in chain_cases(0, own_drafter=False)}
    ]


def test_a_law_that_was_cut_short_has_bounds() -> None:
    asked = next(one for one in chain_cases(0, own_drafter=False) if one.name == f"proof: {ONE}")
    laws = kind_laws(Tables.of(asked.scenario))
    exact = compared(Law({}, unexplored=1.0), asked, laws, TEXTBOOK)
    assert {one.what for one in exact} == {COMPLETED, JOINT}
    assert all((one.least, one.most) == (0.0, 1.0) for one in exact)
    whole_law = {
        ((kind,), rows): weight / len(laws)
        for kind in range(len(laws))
        for rows, weight in exact[2 * kind + 1].exact.items()
    }
    assert all(one.most < 1e-15 for one in compared(Law(whole_law), asked, laws, TEXTBOOK))
    outcome = max(whole_law, key=whole_law.__getitem__)
    lost = whole_law.pop(outcome)
    cut = compared(Law(whole_law, unexplored=lost), asked, laws, TEXTBOOK)
    assert all(one.least < 1e-15 for one in cut)
    assert all(one.most == pytest.approx(lost * len(laws)) for one in cut)


def test_rows_are_completed_one_by_one() -> None:
    asked = next(one for one in chain_cases(0, own_drafter=False) if one.name == f"proof: {CALLS}")
    laws = kind_laws(Tables.of(asked.scenario))
    single = [completed({((0,),): 1.0}, [one]) for one in laws]
    together = completed({((0,), (0,)): 1.0}, laws)
    pairs = product(*(law.items() for law in single))
    assert together == pytest.approx(
        {(*one, *other): first * second for (one, first), (other, second) in pairs}
    )
    assert {len(rows[0]) for rows in together} == {2}
    assert {len(rows[1]) for rows in together} == {1}


def test_what_the_budget_is_too_small_for_is_told_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    report = tokenlaw.check_verifier(Reference, budget=20_000, only="law/pro*", raises=False)
    terminal.show(report, {})
    reason = NEEDED
    assert f"not supported: {PROVED}: {reason}" in capsys.readouterr().out.splitlines()
