"""Samples don't depend on how they are split into calls, and calls say what they should."""

from typing import Any

import numpy as np
import pytest
import torch

from support.law_runs import Counting, Seeded, small_scenario
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.row_laws import UNSEEDED
from tokenlaw.stats.driver import (
    FIRST_OF_ONE_KIND,
    LARGEST_SEED,
    OF_ONE_KIND,
    SMALL_CALLS,
    Driver,
    Step,
    uniforms,
)
from tokenlaw.stats.protocol import ProtocolError
from tokenlaw.stats.row_kinds import wide
from tokenlaw.stats.scenario import Scenario, Tables
from tokenlaw.stats.tally import JointTally
from tokenlaw.stats.trial import Trial

SCENARIO = small_scenario(seeded=True)


def driver(verifier: Any, scenario: Scenario = SCENARIO, seed: int = 1) -> Driver:
    return Driver(verifier, Tables.of(scenario), seed)


def joined(steps: list[Step]) -> list[torch.Tensor]:
    """What was asked about samples, and what came back, over all calls."""
    parts = [
        (
            step.kinds,
            step.batch.draft_tokens,
            step.batch.num_draft_tokens,
            step.batch.target_logits,
            step.batch.params.seeds,
            step.emitted,
        )
        for step in steps
    ]
    return [torch.cat(columns) for columns in zip(*parts, strict=True)]


@pytest.mark.parametrize("rows", [64, 500, 5000])
def test_samples_are_the_same_whatever_the_size_of_the_calls(rows: int) -> None:
    whole = joined([driver(Seeded()).step(0, 2000)])
    split = joined(list(driver(Seeded()).steps(0, 2000, rows)))
    order = torch.arange(2000)
    if rows > OF_ONE_KIND:
        kind_by_kind = whole[0][FIRST_OF_ONE_KIND:][:OF_ONE_KIND].argsort(stable=True)
        order[FIRST_OF_ONE_KIND:][:OF_ONE_KIND] = FIRST_OF_ONE_KIND + kind_by_kind
    assert all(torch.equal(left[order], right) for left, right in zip(whole, split, strict=True))


def counts(rows: int, *ranges: tuple[int, int]) -> np.ndarray:
    tables = Tables.of(SCENARIO)
    asked, tally = Driver(Seeded(), tables, 1), JointTally(tables, 1)
    for first, last in ranges:
        for step in asked.steps(first, last, rows):
            tally.add(step)
    return np.concatenate([tally.outcomes().ravel(), tally.pairs().ravel()])


def test_counts_of_ranges_add_up() -> None:
    """So processes can share the samples of a run."""
    whole = counts(1000, (0, 5000))
    assert (whole == counts(1000, (0, 1700)) + counts(300, (1700, 5000))).all()
    assert (whole == counts(1000, (1700, 5000), (0, 1700))).all()


def test_a_whole_trial_counts_the_same_in_small_and_large_calls() -> None:
    found = []
    for rows in (64, 5000):
        trial = Trial(Seeded(), SCENARIO, claims="textbook", seed=3, device="cpu")
        for mean in (3000.0, 4000.0):
            trial.run_stage(mean, rows, lambda: None)
        seen = [result.seen for result in trial.kinds]
        found.append((trial.samples, [(one.outcomes, one.completed, one.pairs) for one in seen if one]))
    (few, small), (many, large) = found
    assert few == many
    for one, other in zip(small, large, strict=True):
        assert all((left == right).all() for left, right in zip(one, other, strict=True))


def test_the_first_calls_are_small_and_none_is_larger_than_asked() -> None:
    sizes = [len(step.kinds) for step in driver(ChainVerifier()).steps(0, 1000, 300)]
    assert sizes[: len(SMALL_CALLS)] == list(SMALL_CALLS)
    assert sum(sizes) == 1000
    assert max(sizes) == 300
    later = [len(step.kinds) for step in driver(ChainVerifier()).steps(1000, 1500, 300)]
    assert later == [300, 200]
    assert [len(step.kinds) for step in driver(ChainVerifier()).steps(0, 2, 300)] == [1, 1]


def test_some_calls_have_rows_of_one_kind_only() -> None:
    """Then the samples go on as if they hadn't been: every sample is asked once, with its own drafts."""
    steps = list(driver(ChainVerifier()).steps(0, 2_000, 600))[len(SMALL_CALLS) :]
    kinds = len(SCENARIO.kinds)
    assert [step.kinds.unique().tolist() for step in steps[:kinds]] == [[kind] for kind in range(kinds)]
    assert [len(step.kinds) for step in steps[kinds:]] == [600, 600, 2_000 - 64 - OF_ONE_KIND - 1_200]
    drawn, _ = driver(ChainVerifier()).drawn(0, 2_000)
    asked = torch.cat([step.kinds for step in steps])
    assert torch.equal(asked.bincount(), drawn[64:].bincount())


def test_about_half_of_the_rows_have_seeds_of_their_own_and_in_every_second_stretch_all() -> None:
    """488 of 1,000 rows are in such stretches; 512 fair coins: 156 to 356 heads but for once in 1e17."""
    seeds = driver(ChainVerifier()).step(0, 1000).batch.params.seeds
    assert seeds is not None
    own = seeds[seeds != UNSEEDED]
    assert 488 + 156 < len(own) < 488 + 356
    assert len(own.unique()) > 0.99 * len(own)
    assert ((own >= 0) & (own < LARGEST_SEED)).all()
    assert driver(ChainVerifier(), small_scenario()).step(0, 10).batch.params.seeds is None


def test_calls_and_runs_and_scenarios_have_seeds_of_their_own() -> None:
    seeds = {
        driver(
            ChainVerifier(), small_scenario(seed=5) if name == "small" else wide_scenario(), seed
        ).call_seed(first)
        for seed in (0, 1)
        for first in (0, 1, 500)
        for name in ("small", "wide")
    }
    assert len(seeds) == 12
    assert all(0 <= seed < LARGEST_SEED for seed in seeds)


def wide_scenario() -> Scenario:
    kind = wide(np.random.default_rng(0), 512, 2)
    return Scenario("wide", (kind,), 1.0, wide=True)


def test_rows_of_a_table_with_one_row_share_their_memory() -> None:
    batch = driver(ChainVerifier(), wide_scenario()).step(0, 50).batch
    assert batch.draft_logits is not None
    assert batch.target_logits.shape == (50, 3, 512)
    assert batch.target_logits.stride(0) == batch.draft_logits.stride(0) == 0


def test_rows_have_the_logits_that_follow_their_drafts() -> None:
    scenario = small_scenario()
    tables = Tables.of(scenario)
    step = driver(ChainVerifier(), scenario).step(0, 200)
    assert step.batch.draft_logits is not None
    for row, kind in enumerate(step.kinds.tolist()):
        drafts = step.batch.draft_tokens[row].tolist()
        assert step.batch.num_draft_tokens[row] == scenario.kinds[kind].length
        for position, before in enumerate([0, *drafts]):
            context = before if position else 0
            assert torch.equal(
                step.batch.target_logits[row, position], tables.target_logits[kind, position, context]
            )
            if position < 2:
                exact = tables.draft_logits[kind, position, context]
                assert torch.equal(step.batch.draft_logits[row, position], exact)


class OwnDrafter(ChainVerifier):
    """Drafts the token 3 at position 0, then the number of the call; remembers what it was asked."""

    def __init__(self, drafted: Any = None) -> None:
        self.asked: list[tuple[int, int]] = []
        self.seed, self.drafted = -1, drafted

    def draft(self, logits: Any, params: Any, *, position: int, seed: int) -> Any:
        self.asked.append((position, seed))
        tokens = torch.full((len(logits),), 3 if position == 0 else 2)
        return tokens if self.drafted is None else self.drafted

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        self.seed = seed
        return super().verify(batch, seed=seed, uniforms=uniforms)


def test_an_own_drafter_is_asked_position_by_position() -> None:
    verifier = OwnDrafter()
    step = driver(verifier, small_scenario(own_drafter=True)).step(0, 40)
    assert step.batch.draft_tokens.tolist() == [[3, 2]] * 40
    assert verifier.asked == [(0, verifier.seed), (1, verifier.seed)]


@pytest.mark.parametrize(
    ("drafted", "message"),
    [
        (torch.full((40,), 4), r"draft at position 0, row 0 of 40: 4 is no token \(0 \.\. 3\)"),
        (torch.full((39,), 1), r"draft at position 0 returned torch\.int64 \[39\]"),
        ([1] * 40, "draft at position 0 returned a list instead of an int64 tensor"),
    ],
)
def test_bad_drafts_are_told(drafted: Any, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        driver(OwnDrafter(drafted), small_scenario(own_drafter=True)).step(0, 40)


def test_drafts_that_are_not_drawn_have_no_logits() -> None:
    step = driver(ChainVerifier(), small_scenario(deterministic=True)).step(0, 40)
    assert step.batch.draft_logits is None


def test_numbers_are_those_of_their_counters() -> None:
    few, all_of_them = uniforms(7, torch.arange(10, 20), 6), uniforms(7, torch.arange(30), 6)
    assert all(torch.equal(part, whole[10:20]) for part, whole in zip(few, all_of_them, strict=True))
    assert len({float(number[0]) for number in all_of_them}) == 6
    assert all(0 <= float(number.min()) <= float(number.max()) < 1 for number in all_of_them)


def test_drawn_samples_ask_nobody() -> None:
    verifier = Counting(ChainVerifier())
    asked = driver(verifier)
    batch = asked.batch(*asked.drawn(0, 30), 5)
    assert verifier.calls == 0
    assert torch.equal(batch.draft_tokens, asked.step(0, 30).batch.draft_tokens)
    assert verifier.rows == 30
