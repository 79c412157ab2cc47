"""Wide vocabularies, trees, and neighbours.

Exact verifiers fail a test here with a probability below 1e-7 in all: every bound is that of an e-value above
1e9 or of a p-value below 1e-9, for fewer than 60 of them.
"""

import math
from typing import Any

import numpy as np
import pytest
import torch

from support.law_runs import small_scenario
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.impl.speculative.top_k_tree import TopKTreeVerifier
from tokenlaw.spec.generation_contracts import EXACT, NO_TOKEN, TEXTBOOK, TreeBatch, VerifyBatch
from tokenlaw.spec.speculation import chain_verification
from tokenlaw.spec.steps import step_law
from tokenlaw.stats.chain_laws import KindLaws
from tokenlaw.stats.driver import Driver
from tokenlaw.stats.neighbours import CALLS, Neighbours, chance_of_equals, compare_calls
from tokenlaw.stats.row_kinds import wide
from tokenlaw.stats.scenario import Tables
from tokenlaw.stats.scenarios import make_scenario
from tokenlaw.stats.tree_trial import TREE_NAMES, TreeTrial, node_depths
from tokenlaw.stats.wide_trial import FIRST_TOKEN, WideTrial, last_token_law

NEEDED = 9 * math.log(10)
WIDE = make_scenario("wide", (wide,), vocabulary=1024, drafts=1, share=1.0, seed=0, ragged=False, wide=True)


class NoTail(ChainVerifier):
    """Never emits a token whose probability is below 2^-11."""

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        emitted = super().verify(batch, seed=seed, uniforms=uniforms)
        chances = batch.target_probs.gather(-1, emitted.clamp(min=0)[..., None])[..., 0]
        likeliest = batch.target_probs.argmax(-1)
        return torch.where((emitted >= 0) & (chances < 2.0**-11), likeliest, emitted)


def run_wide(verifier: Any, claims: str = TEXTBOOK) -> WideTrial:
    trial = WideTrial(verifier, WIDE, claims=claims, seed=1, device="cpu")
    trial.run(4_000.0, 1_000, lambda: None)
    return trial


def test_a_wide_vocabulary_is_exact_in_every_way_of_counting() -> None:
    trial = run_wide(ChainVerifier())
    log_es = trial.log_es()
    assert len(log_es) == 4
    assert max(log_es.values()) < NEEDED
    assert trial.events()["rejections of a wide vocabulary"] > 100
    assert len(run_wide(ChainVerifier(), EXACT).log_es()) == 3


def test_a_lost_tail_is_found_as_a_tail() -> None:
    """A tail of mass 0.3 is missing: 1,200 draws of 4,000."""
    trial = run_wide(NoTail())
    log_es = trial.log_es()
    assert log_es["tails of the first token"] > 100
    assert log_es[FIRST_TOKEN] > 100
    assert "first tokens of probability <= " in trial.finding(log_es)


def test_no_rows_are_verified_beyond_the_limit() -> None:
    trial = WideTrial(ChainVerifier(), WIDE, claims=TEXTBOOK, seed=1, device="cpu")
    trial.run(4_000.0, 1_000, lambda: None, most=3_000)
    assert (trial.samples, trial.expected) == (0, 0.0)
    assert max(trial.log_es().values()) == pytest.approx(0)


def test_the_last_token_has_the_law_of_the_rule() -> None:
    target, draft = np.random.default_rng(0).dirichlet([1.0] * 4, (2, 3, 1))
    laws = KindLaws(target, draft[:2])
    exact = np.zeros((3, 4))
    step = step_law(
        chain_verification,
        target=lambda tokens: tuple(target[len(tokens), 0].tolist()),
        draft=lambda tokens: tuple(draft[len(tokens), 0].tolist()),
        prompt=(),
        draft_length=2,
    )
    for outcome, mass in step.items():
        exact[outcome.accepted, outcome.tokens[-1]] += mass
    np.testing.assert_allclose(last_token_law(laws), exact, atol=1e-15)


class FirstCandidate(TopKTreeVerifier):
    """Emits the first candidate as it is, one time in five."""

    def verify_tree(self, batch: TreeBatch, *, seed: int) -> Any:
        emitted = super().verify_tree(batch, seed=seed)
        often = torch.rand(len(emitted), generator=torch.Generator().manual_seed(seed)) < 0.2
        wrong = torch.full_like(emitted, NO_TOKEN)
        wrong[:, 0] = batch.tokens[:, 0]
        return torch.where(often[:, None], wrong, emitted)


@pytest.mark.parametrize("name", TREE_NAMES)
def test_trees_are_exact_or_refuted(name: str) -> None:
    """The wrong one is off by a total variation of 0.1 and more in some kind of 1,000 rows."""
    exact = TreeTrial(TopKTreeVerifier(), name, seed=0, device="cpu").run(4_000.0, 1_000)
    assert exact.log_e < NEEDED
    assert exact.later > 100
    assert 3_600 < exact.samples < 4_400
    wrong = TreeTrial(FirstCandidate(), name, seed=0, device="cpu").run(4_000.0, 1_000)
    assert wrong.log_e > NEEDED
    assert name in wrong.worst
    none = TreeTrial(TopKTreeVerifier(), name, seed=0, device="cpu").run(4_000.0, 1_000, most=3_000)
    assert (none.samples, none.expected, none.log_e) == (0, 0.0, pytest.approx(0))


def test_depths_of_nodes() -> None:
    assert node_depths((-1, -1, 0, 2, 1)) == [1, 1, 2, 3, 2]


class Repeating(ChainVerifier):
    """Rows i + distance begin with the token of row i, where both have one law."""

    def __init__(self, distance: int) -> None:
        self.distance = distance

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        emitted = super().verify(batch, seed=seed, uniforms=uniforms)
        rows = torch.arange(len(emitted))
        source = rows - self.distance * ((rows // self.distance) % 2)
        alike = (batch.target_logits[source, 0] == batch.target_logits[:, 0]).all(-1)
        emitted[:, 0] = torch.where(alike, emitted[source, 0], emitted[:, 0])
        return emitted


def compared_rows(verifier: Any) -> dict[str, float]:
    tables = Tables.of(small_scenario())
    neighbours = Neighbours(tables)
    for step in Driver(verifier, tables, 0).steps(0, 20_000, 1_000):
        neighbours.add(step)
    return {one.what: one.result.p_value for one in neighbours.comparisons()}


def test_independent_rows_are_not_refuted() -> None:
    found = compared_rows(ChainVerifier())
    assert set(found) == {"rows 1 apart", "rows 2 apart", "rows 8 apart", "rows 64 apart"}
    assert min(found.values()) > 1e-9


@pytest.mark.parametrize("distance", [1, 8, 64])
def test_rows_that_repeat_others_are_found_at_their_distance(distance: int) -> None:
    """All 1,200 pairs of one kind are equal, by chance a third or so."""
    found = compared_rows(Repeating(distance))
    assert found[f"rows {distance} apart"] < 1e-12


def test_pairs_are_counted_once_for_each_distance() -> None:
    tables = Tables.of(small_scenario())
    neighbours, step = Neighbours(tables), Driver(ChainVerifier(), tables, 0).step(0, 300)
    neighbours.add(step)
    kinds, tokens = step.kinds.tolist(), step.emitted[:, 0].tolist()
    for comparison, distance in zip(neighbours.comparisons(), (1, 2, 8, 64), strict=True):
        whole = 300 // (2 * distance) * 2 * distance
        pairs = [(i, i + distance) for i in range(whole) if i // distance % 2 == 0]
        same = [(i, j) for i, j in pairs if kinds[i] == kinds[j]]
        assert comparison.result.pairs == len(same)
        assert comparison.result.observed == sum(tokens[i] == tokens[j] for i, j in same)


def test_the_chance_of_equals_is_that_of_the_first_token() -> None:
    tables = Tables.of(small_scenario())
    first = tables.target[:, 0, 0]
    assert chance_of_equals(tables) == pytest.approx((first**2).sum(-1).numpy())


class SameSeed(ChainVerifier):
    """Ignores the seed of the call."""

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        return super().verify(batch, seed=0, uniforms=uniforms)


def test_calls_with_one_stream_are_found() -> None:
    tables = Tables.of(small_scenario())
    exact = compare_calls(Driver(ChainVerifier(), tables, 0), tables)
    assert exact.result.p_value > 1e-9
    assert exact.result.pairs == CALLS // 2 * 128
    assert compare_calls(Driver(SameSeed(), tables, 0), tables).result.p_value < 1e-12
    assert compare_calls(Driver(ChainVerifier(), tables, 0), tables, 3).result.pairs == CALLS // 2 * 3
