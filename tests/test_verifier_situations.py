"""Situations that engines treat in ways of their own, and that a default audit of a verifier has to ask."""

import numpy as np
import pytest
import torch

from support.law_runs import small_scenario
from tokenlaw.impl.speculative.tree import TreeVerifier
from tokenlaw.spec.generation_contracts import TreeBatch
from tokenlaw.spec.row_laws import OFF_TOP_K, UNSEEDED
from tokenlaw.stats.driver import PADDING, Driver
from tokenlaw.stats.proving_cases import chain_cases
from tokenlaw.stats.row_kinds import plain, shifted, wide
from tokenlaw.stats.scenario import Kind, Scenario, Tables
from tokenlaw.stats.scenarios import TREE_FILTERS, make_scenario, scenarios
from tokenlaw.stats.tree_trial import ROOT, SHAPES, TREE_NAMES, WAYS, TreeTrial, tree_kinds


def asked(seed: int = 0) -> list[Scenario]:
    return scenarios(seed, own_drafter=True, seeded=True)


def kinds_of_rows() -> list[Kind]:
    """Of the sampled scenarios, and of the proof."""
    proved = [case.scenario for case in chain_cases(0, own_drafter=True)]
    return [kind for scenario in (*asked(), *proved) for kind in scenario.kinds]


def kept(kind: Kind, temperature: float) -> torch.Tensor:
    """Which tokens of the target min-p keeps, if it looks at the law at this temperature."""
    law = (kind.target_logits.double() / temperature).softmax(-1)
    return law >= kind.min_p * law.amax(-1, keepdim=True)


def test_min_p_comes_with_a_temperature_that_moves_it() -> None:
    found = [kind for kind in kinds_of_rows() if kind.min_p and kind.temperature not in (0, 1)]
    moved = [not torch.equal(kept(kind, 1.0), kept(kind, kind.temperature)) for kind in found]
    assert len(found) >= 2
    assert all(moved)


def test_greedy_rows_come_with_truncations() -> None:
    greedy = [kind for kind in kinds_of_rows() if kind.temperature == 0]
    assert sum(kind.top_p < 1 and kind.min_p > 0 and kind.top_k != OFF_TOP_K for kind in greedy) >= 2
    assert any(kind.top_p == 1 for kind in greedy)


def test_logits_of_some_rows_are_large_and_laws_are_none_the_wiser() -> None:
    generator = np.random.default_rng
    still, large = plain(generator(0), 4, 3), shifted(plain)(generator(0), 4, 3)
    for before, after in (
        (still.target_logits, large.target_logits),
        (still.draft_logits, large.draft_logits),
    ):
        assert (after.exp().isinf().all(-1) | (after.exp() == 0).all(-1) | (after == before).all(-1)).all()
        assert (before.softmax(-1) - after.softmax(-1)).abs().max() < 1e-5
    for scenario in asked():
        rows = [kind.target_logits[..., 0].flatten() for kind in scenario.kinds]
        if not scenario.wide and scenario.name != "ratios near one":
            assert any(float(row.min()) < -90 and float(row.max()) > 90 for row in rows), scenario.name


def test_logits_of_every_second_call_are_a_view_of_longer_rows() -> None:
    for scenario in (small_scenario(), small_scenario((wide,), ragged=False, vocabulary=300)):
        driver = Driver(None, Tables.of(scenario), seed=0)
        kinds, numbers = driver.drawn(0, 16)
        plainly, view = (driver.batch(kinds, numbers, seed) for seed in (2, 3))
        for left, right in (
            (plainly.target_logits, view.target_logits),
            (plainly.draft_logits, view.draft_logits),
        ):
            assert left is not None
            assert right is not None
            assert torch.equal(left, right)
            assert left[0].is_contiguous()
            assert right.stride(1) == right.shape[2] + PADDING


def test_seeds_of_half_of_the_rows_count_up_and_looked_up_drafts_have_seeds_too() -> None:
    assert [one.seeded for one in asked() if one.name in ("mixed rows", "looked-up drafts")] == [True, True]
    driver = Driver(None, Tables.of(small_scenario(seeded=True)), 0)
    seeds = driver.batch(*driver.drawn(0, 1_000), 0).params.seeds
    assert seeds is not None
    following = seeds[1:] == seeds[:-1] + 1
    assert 450 < int(following.sum()) < 550
    assert int((seeds == UNSEEDED).sum()) > 200


def test_sizes_between_those_of_kernels_are_asked() -> None:
    """Top-k beyond 8 and 16, a vocabulary beyond 32 and 33 .. 4100, four drafts and more of one token."""
    assert any(kind.top_k > 16 for kind in kinds_of_rows())
    assert any(33 < scenario.vocabulary < 4_100 for scenario in asked())
    assert any(one.vocabulary > 33 for one in scenarios(0, own_drafter=False, seeded=False, refused=TOP_K))
    close = next(one for one in asked() if one.name == "ratios near one")
    assert close.drafts >= 4
    likely = Tables.of(close).draft.argmax(-1)
    assert (likely == likely[:, :1, :1]).all()


def test_trees_have_truncations_greedy_rows_depth_first_numbers_and_a_fourth_candidate() -> None:
    for names in (WAYS, SHAPES):
        for name in names:
            truncated = [tree_kinds(tree) == TREE_FILTERS for tree in TREE_NAMES if name in tree]
            assert set(truncated) == {True, False}
    made = make_scenario("tree", TREE_FILTERS, vocabulary=5, drafts=1, share=1.0, seed=0, ragged=False)
    features = frozenset.union(*(kind.features(1) for kind in made.kinds))
    assert {"greedy", "temperature", "top_k", "top_p", "min_p"} <= features
    assert any(list(parents) != sorted(parents) for parents in SHAPES.values())
    assert max(parents.count(ROOT) for parents in SHAPES.values()) >= 4


def test_a_tree_has_no_rows_that_its_verifier_refuses() -> None:
    class Watching(TreeVerifier):
        def verify_tree(self, batch: TreeBatch, *, seed: int) -> torch.Tensor:
            assert not (batch.params.top_k != OFF_TOP_K).any()
            return super().verify_tree(batch, seed=seed)

    name = next(tree for tree in TREE_NAMES if tree_kinds(tree) == TREE_FILTERS)
    assert TreeTrial(Watching(), name, seed=0, device="cpu", refused=TOP_K).run(300.0, 100).samples
    with pytest.raises(AssertionError):
        TreeTrial(Watching(), name, seed=0, device="cpu").run(300.0, 100)


TOP_K = frozenset({"top_k"})
