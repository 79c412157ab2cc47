"""Rows that are all alike, whose numbers are shared in small calls, by seeds that count up, or by calls.

Exact verifiers fail here with a probability below 1e-7: every bound is that of an e-value above 1e12.
"""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from support.law_runs import audited, small_scenario
from tokenlaw.impl.faults.verifier_base import ACCEPTANCE, ChainVerifier
from tokenlaw.spec.philox import uniforms
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.alike_rows import SEEDED_CALLS, dependence_of_calls, dependence_of_rows
from tokenlaw.stats.driver import Driver
from tokenlaw.stats.scenario import Tables
from tokenlaw.stats.verifier_checks import CALLS, ROWS

NEEDED = 12 * math.log(10)
SCENARIO = small_scenario(vocabulary=4, drafts=3, seeded=True)


def driver(verifier: Any, **options: Any) -> Driver:
    return Driver(verifier, Tables.of(replace(SCENARIO, **options)), 0)


class SmallCallsShare(ChainVerifier):
    """Rows of small calls have the numbers of row 0."""

    def numbers(self, params: RowParameters, seed: int, use: str, count: int, position: int = 0) -> Tensor:
        numbers = super().numbers(params, seed, use, count, position)
        return numbers if len(numbers) > 24 else numbers[:1].expand(numbers.shape)


class HalvesShare(ChainVerifier):
    """The second half of a call has the numbers of the first."""

    def numbers(self, params: RowParameters, seed: int, use: str, count: int, position: int = 0) -> Tensor:
        numbers = super().numbers(params, seed, use, count, position)
        half = len(numbers) // 2
        return torch.cat([numbers[:half], numbers[:half], numbers[2 * half :]])


class SeedPlusPlace(ChainVerifier):
    """The number of a draft is that of the row's seed plus the draft's place."""

    def numbers(self, params: RowParameters, seed: int, use: str, count: int, position: int = 0) -> Tensor:
        if params.seeds is None or use != ACCEPTANCE:
            return super().numbers(params, seed, use, count, position)
        seeds = params.seeds[:, None] + torch.arange(count)
        return uniforms(seeds.flatten(), torch.zeros(seeds.numel(), dtype=torch.int64), 1).view_as(seeds)


class SingleSeed(ChainVerifier):
    """The seed of a call goes through single precision."""

    def verify(self, batch: Any, *, seed: int, uniforms: Any = None, noise: Any = None) -> Tensor:
        rounded = int(torch.tensor(float(seed), dtype=torch.float32))
        return super().verify(batch, seed=rounded, uniforms=uniforms, noise=noise)


def test_independent_rows_and_calls_are_not_refuted() -> None:
    rows, calls = (ask(driver(ChainVerifier()), 10**6) for ask in (dependence_of_rows, dependence_of_calls))
    assert len(rows) == 10
    assert len(calls) == 2
    assert max(*rows.values(), *calls.values()) < NEEDED


class Noting(ChainVerifier):
    """Keeps the row seeds that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds: list[int] = []

    def verify(self, batch: Any, *, seed: int, uniforms: Any = None, noise: Any = None) -> Tensor:
        if batch.params.seeds is not None and len(batch.draft_tokens) == SEEDED_CALLS[0]:
            self.seeds += batch.params.seeds.tolist()
        return super().verify(batch, seed=seed, uniforms=uniforms, noise=noise)


def test_no_row_seed_comes_twice() -> None:
    """An exact verifier gives rows of one seed one number: they would say nothing new."""
    verifier = Noting()
    dependence_of_rows(driver(verifier), 10**6)
    assert len(verifier.seeds) == len(set(verifier.seeds)) == sum(SEEDED_CALLS)
    assert max(verifier.seeds) - min(verifier.seeds) == len(verifier.seeds) - 1


@pytest.mark.parametrize(
    ("verifier", "what"),
    [
        (SmallCallsShare, "rows 1 apart"),
        (SmallCallsShare, "rows 3 apart"),
        (HalvesShare, "rows half a batch apart"),
        (SeedPlusPlace, "rows 1 apart, seeds that count up"),
    ],
)
def test_rows_that_share_numbers_are_found(verifier: Any, what: str) -> None:
    assert dependence_of_rows(driver(verifier()), 10**6)[what] > NEEDED


def test_calls_whose_seeds_become_one_are_found() -> None:
    found = dependence_of_calls(driver(SingleSeed()), 10**6)
    assert found["calls with large seeds one apart"] > NEEDED
    assert found["calls with small seeds one apart"] < NEEDED


def test_only_what_can_be_asked_is_asked() -> None:
    """No row seeds; calls of one row; no drafts."""
    assert len(dependence_of_rows(driver(ChainVerifier(), seeded=False), 10**6)) == 5
    assert dependence_of_rows(driver(ChainVerifier()), 1) == {}
    without = Driver(ChainVerifier(), Tables.of(small_scenario(drafts=0, ragged=False)), 0)
    assert dependence_of_rows(without, 10**6) == {} == dependence_of_calls(without, 10**6)


def test_an_audit_asks_them() -> None:
    found = audited(SmallCallsShare, only=frozenset({ROWS}), budget=80_000)
    assert found[ROWS].verdict is Verdict.REFUTED
    assert "rows that are all alike, rows 1 apart: how many drafts" in found[ROWS].message
    calls = audited(SingleSeed, only=frozenset({CALLS}), budget=80_000)
    assert calls[CALLS].verdict is Verdict.REFUTED
