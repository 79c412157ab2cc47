"""Pairs of rows and of calls whose first tokens depend on each other, equal or not.

Exact verifiers fail a test here with a probability below 1e-7 in all: every bound is that of an e-value above
1e9, for fewer than 60 of them, or a run's alpha of 1e-9.
"""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from support.law_runs import audited, small_scenario
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.suites import Settings
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.dependence import EqualNeighbours
from tokenlaw.stats.driver import Driver
from tokenlaw.stats.law_book import LawBook
from tokenlaw.stats.measures import COMPLETED
from tokenlaw.stats.neighbours import Comparison, Neighbours, compare_calls
from tokenlaw.stats.places import Place
from tokenlaw.stats.scenario import Tables
from tokenlaw.stats.scenarios import scenarios
from tokenlaw.stats.trial_closing import compared
from tokenlaw.stats.verifier_checks import ROWS

NEEDED = 9 * math.log(10)
NEVER = 10**9


class Shifted:
    """Draws one token a row; row i + distance has the number of row i, plus a shift modulo 1."""

    claims = "exact"

    def __init__(self, distance: int, shift: float = 0.37) -> None:
        self.distance, self.shift = distance, shift

    def verify(self, batch: VerifyBatch, *, seed: int) -> Any:
        generator = torch.Generator().manual_seed(seed)
        numbers = torch.rand(batch.shape[0], generator=generator, dtype=torch.float64)
        rows = torch.arange(len(numbers))
        follows = rows // self.distance % 2 == 1
        numbers[follows] = (numbers[rows[follows] - self.distance] + self.shift) % 1
        emitted = torch.full((batch.shape[0], batch.shape[1] + 1), -1)
        below = batch.target_probs[:, 0].cumsum(-1) <= numbers[:, None]
        emitted[:, 0] = below.sum(-1).clamp(max=batch.shape[2] - 1)
        return emitted


class WrongLaw(Shifted):
    """Begins with the most probable token or the one after it, by a coin of the row's own."""

    def verify(self, batch: VerifyBatch, *, seed: int) -> Any:
        emitted = super().verify(batch, seed=seed)
        coins = torch.rand(len(emitted), generator=torch.Generator().manual_seed(seed)) < 0.5
        emitted[:, 0] = (batch.target_probs[:, 0].argmax(-1) + coins) % batch.shape[2]
        return emitted


def log_es(verifier: Any) -> dict[str, float]:
    tables = Tables.of(small_scenario())
    neighbours = Neighbours(tables)
    for step in Driver(verifier, tables, 0).steps(0, 20_000, 1_000):
        neighbours.add(step)
    return {one.what: one.log_e for one in neighbours.comparisons()}


def test_independent_rows_are_not_refuted() -> None:
    found = log_es(ChainVerifier())
    assert set(found) == {"rows 1 apart", "rows 2 apart", "rows 8 apart", "rows 64 apart"}
    assert max(found.values()) < NEEDED


@pytest.mark.parametrize("distance", [1, 8, 64])
def test_rows_that_follow_others_are_found_at_their_distance(distance: int) -> None:
    """Each row has its law, and any other two rows are independent."""
    found = log_es(Shifted(distance))
    assert found.pop(f"rows {distance} apart") > 3 * NEEDED
    assert max(found.values()) < NEEDED


def test_a_wrong_law_of_independent_rows_is_no_dependence() -> None:
    assert max(log_es(WrongLaw(NEVER)).values()) < NEEDED


def test_rows_that_follow_others_are_refuted_though_each_has_its_law() -> None:
    found = audited(lambda: Shifted(1), only=frozenset({ROWS, COMPLETED}), budget=40_000)
    assert [check for check, row in found.items() if row.verdict is Verdict.REFUTED] == [ROWS]


class Following(ChainVerifier):
    """Every second call begins its rows with the token after that of the call before."""

    def __init__(self) -> None:
        self.last: Any = None

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        emitted = super().verify(batch, seed=seed, uniforms=uniforms)
        if self.last is not None:
            emitted[:, 0] = (self.last + 1) % batch.shape[2]
        self.last = emitted[:, 0].clone() if self.last is None else None
        return emitted


def test_calls_that_follow_others_are_found() -> None:
    tables = Tables.of(small_scenario())
    assert compare_calls(Driver(ChainVerifier(), tables, 0), tables).log_e < NEEDED
    assert compare_calls(Driver(Following(), tables, 0), tables).log_e > NEEDED


def test_the_table_of_pairs_has_a_part_of_alpha() -> None:
    """As many equal tokens as there should be, and an e-value of 1e13."""
    comparison = Comparison("rows 1 apart", EqualNeighbours(1_000, 250, 250.0, 1.0), 30.0)
    for log_e, refuted in ((0.0, False), (20.0, False), (30.0, True)):
        book = LawBook(frozenset({ROWS}), scenarios(0, own_drafter=True, seeded=True), Settings())
        book.exercise({"pairs of rows": 1_000})
        compared(ROWS, replace(comparison, log_e=log_e), book, Place("mixed rows", 1_000, 0, "textbook"))
        (row,) = book.evidence()
        assert (row.verdict is Verdict.REFUTED) is refuted
    assert row.message == (
        "Scenario 'mixed rows', rows 1 apart: the first tokens of pairs of one kind, of which 1000 were "
        "counted, depend on each other: log10 e = 13.0."
    )
