"""Where decisions and the chi-square saw too little, the row says how many requests it takes: these do."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tokenlaw import check_verifier
from tokenlaw.impl.speculative import ChainVerifier
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.stats.pooling import pool_cells
from tokenlaw.stats.power import visible_by_chi_square
from tokenlaw.stats.requests_needed import samples_of_chi_square, small_budget
from tokenlaw.stats.verifier_checks import BOUNDARY, CALLS, CHI_SQUARE, REPLAY


def rows(budget: int, only: str, verifier: object = None, seed: int = 0) -> dict[str, Evidence]:
    """Check id to row of an audit of so many requests."""
    audited = verifier or ChainVerifier()
    report = check_verifier(audited, budget=budget, only=only, seed=seed, controls=False, raises=False)
    return {row.check.id: row for row in report.evidence}


def told(row: Evidence) -> int:
    """The requests that the row asks for."""
    assert row.verdict is Verdict.NOT_EXERCISED
    (number,) = re.findall(r"about ([\d,]+) requests in all \(--budget\) would be needed", row.message)
    return int(number.replace(",", ""))


@pytest.mark.parametrize("check", [BOUNDARY, CALLS, REPLAY])
def test_small_checks_happen_with_what_they_ask_for_and_not_with_a_third(check: str) -> None:
    needed = told(rows(small_budget(check) // 9, check)[check])
    assert needed == small_budget(check)
    assert "never happened" not in rows(needed, check)[check].message


def test_decisions_are_judged_with_what_is_asked_for() -> None:
    """Of 24 rows one is accepted and one rejected, whatever the seed: fixed numbers see to that."""
    for seed in range(5):
        assert rows(small_budget(BOUNDARY), BOUNDARY, seed=seed)[BOUNDARY].verdict is Verdict.HOLDS


@pytest.mark.parametrize("budget", [1, pytest.param(600, marks=pytest.mark.slow)])
def test_the_chi_square_promises_something_with_what_it_asks_for(budget: int) -> None:
    """And not with a third of it.

    Numbers of rows are Poisson, three standard deviations of them to spare: another seed falls short with
    probability 0.0014 at most, and is refuted with 1e-9. With half of the rows five of six seeds fall short.
    """
    needed = told(rows(budget, CHI_SQUARE)[CHI_SQUARE])
    assert rows(needed, CHI_SQUARE, seed=1)[CHI_SQUARE].verdict is Verdict.HOLDS
    assert rows(needed // 3, CHI_SQUARE, seed=1)[CHI_SQUARE].verdict is Verdict.NOT_EXERCISED


class AlwaysZero:
    """Emits token 0, as many times as chain rejection sampling emits tokens."""

    claims = "textbook"

    def verify(self, batch: VerifyBatch, *, seed: int) -> Tensor:
        emitted = ChainVerifier().verify(batch, seed=seed)
        return torch.where(emitted >= 0, torch.zeros_like(emitted), emitted)


def test_a_chi_square_that_others_forestall_says_so() -> None:
    row = rows(8_000, "law/c*", AlwaysZero())[CHI_SQUARE]
    assert row.message == (
        "never happened: tables; scenarios that other checks refute stop before the size that was planned"
    )


@pytest.mark.parametrize("law", [[0.5, 0.5], [0.9, 0.06, 0.04], [1 / 64] * 64])
def test_samples_of_a_chi_square_are_the_fewest_that_promise_something(law: list[float]) -> None:
    exact, alpha = np.array(law), 1e-10
    samples = samples_of_chi_square(exact, alpha)

    def visible(number: float) -> float:
        grouping = pool_cells(exact, number)
        return visible_by_chi_square(number, np.count_nonzero(grouping.law), grouping.pooled_mass, alpha)

    assert visible(samples) < 1 <= visible(0.98 * samples)


def test_an_outcome_that_is_too_rare_is_never_tested_alone() -> None:
    assert samples_of_chi_square(np.array([1 - 1e-13, 1e-13]), 1e-10) == np.inf


class Counted(ChainVerifier):
    """Knows how many rows it was given."""

    def __init__(self) -> None:
        self.rows = 0

    def verify(self, batch: VerifyBatch, *, seed: int, **numbers: Any) -> Any:
        self.rows += len(batch.num_draft_tokens)
        return super().verify(batch, seed=seed, **numbers)


@pytest.mark.parametrize("budget", [60_000, pytest.param(600_000, marks=pytest.mark.slow)])
def test_the_broken_wrapper_takes_what_laws_leave_of_the_budget(budget: int) -> None:
    """Of chain rejection sampling it shows with a few thousand rows, whatever the seed (12 of 12)."""
    counted = Counted()
    report = check_verifier(counted, budget=budget)
    assert report.controls[-1].checks == ("law/joint",)
    assert budget * 0.9 < counted.rows <= budget
