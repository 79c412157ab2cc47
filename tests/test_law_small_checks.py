"""The checks without statistics, on the reference and on verifiers that break one of them."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from support.law_runs import small_scenario
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.stats.scenario import Tables
from tokenlaw.stats.small_checks import ROWS_OF_CHECKS, boundary, replay, row_seeds


class Unseeded(ChainVerifier):
    """Takes its numbers from a stream of its own."""

    def __init__(self) -> None:
        self.calls = 0

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        self.calls += 1
        return super().verify(batch, seed=self.calls, uniforms=uniforms)


class Company(ChainVerifier):
    """Rows with seeds get the numbers of the call in batches of less than 200 rows."""

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        if len(batch.num_draft_tokens) < 200:
            batch = replace(batch, params=replace(batch.params, seeds=None))
        return super().verify(batch, seed=seed, uniforms=uniforms)


class ReadyAtZero(ChainVerifier):
    """Accepts with u <= p / q."""

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        if uniforms is not None:
            uniforms = uniforms - 1e-300
        return super().verify(batch, seed=seed, uniforms=uniforms)


CHECKS = {"replay": replay, "row seeds": row_seeds, "boundary": boundary}


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("rows", [1, 2, 7, 256])
def test_the_reference_passes_small_checks_of_any_size(name: str, rows: int) -> None:
    exercised: Counter[str] = Counter()
    tables = Tables.of(small_scenario())
    assert CHECKS[name](ChainVerifier(), tables, 3, exercised, rows) == ""
    assert exercised
    assert ROWS_OF_CHECKS == 8


@pytest.mark.parametrize(
    ("name", "verifier", "message"),
    [
        ("replay", Unseeded(), "the same batch with the same seed gave other tokens in "),
        ("row seeds", Company(), "a row with the same seed in another batch gave other tokens in "),
        ("boundary", ReadyAtZero(), "drafts were accepted instead of "),
    ],
)
def test_small_checks_find_what_they_are_for(name: str, verifier: Any, message: str) -> None:
    found = CHECKS[name](verifier, Tables.of(small_scenario(seed=1)), 3, Counter())
    assert message in found
    assert "row " in found
    assert "\n" not in found


def test_decisions_are_counted() -> None:
    exercised: Counter[str] = Counter()
    boundary(ChainVerifier(), Tables.of(small_scenario()), 0, exercised)
    assert exercised["accepted"] > 100
    assert exercised["rejected"] > 100
    assert exercised["decisions"] <= exercised["accepted"] + exercised["rejected"]
