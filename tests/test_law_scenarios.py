"""What verifiers are asked: tables that vary what they should, draws that follow them, no edge for rounding.

Statistical tests: one chi-square at alpha 1e-9 for each of 20 laws, false alarms below 1e-7 in all; 50,000
draws of a law of up to 6 tokens show a total variation of 0.03 with probability 0.999 (non-centrality 180).
"""

from itertools import pairwise

import numpy as np
import pytest
import torch

from support.law_runs import single_laws, small_scenario
from tokenlaw.spec.philox import uniforms
from tokenlaw.stats.chi_square import chi_square
from tokenlaw.stats.row_kinds import cold, greedy, near_one, wide
from tokenlaw.stats.scenario import Inverse, Tables
from tokenlaw.stats.scenarios import scenarios
from tokenlaw.stats.tables import APART, TINY, spread, swapped, with_tiny, with_zeros

EDGES = torch.tensor([0.0, 2.0**-53, 0.5, 1 - 2.0**-24, 1 - 2.0**-40, 1 - 2.0**-53], dtype=torch.float64)


def random_rows(seed: int, rows: int, vocabulary: int) -> torch.Tensor:
    """Laws with impossible tokens anywhere, the last rows with them at both ends."""
    generator = np.random.default_rng(seed)
    weights = generator.random((rows, vocabulary)) * (generator.random((rows, vocabulary)) > 0.3)
    weights[:, 2] += 0.1
    weights[-2:, [0, -1]] = 0
    return torch.from_numpy(weights / weights.sum(-1, keepdims=True))


def test_draws_follow_their_laws_and_are_never_impossible() -> None:
    laws = random_rows(0, 20, 6)
    inverse = Inverse.of(laws[:, None, None])
    numbers = uniforms(3, torch.arange(20 * 50_000), 1)[:, 0]
    rows = torch.arange(20).repeat_interleave(50_000)
    drawn = inverse.draw(0, rows, numbers).reshape(20, -1)
    for law, tokens in zip(laws.numpy(), drawn, strict=True):
        counts = torch.bincount(tokens, minlength=6).numpy()
        assert not counts[law == 0].any()
        assert chi_square(counts, law).p_value > 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_no_number_draws_an_impossible_token(seed: int) -> None:
    """Zeros in front, behind and between; a last token of probability 1e-30; many rows in one search."""
    laws = random_rows(seed, 200, 7)
    laws[0] = torch.tensor([0, 0.5, 0, 0.5, 0, 0, 0])
    laws[1] = torch.tensor([0.25, 0.25, 0.5 - 1e-17, 0, 1e-30, 0, 0])
    rows = torch.arange(200).repeat_interleave(len(EDGES))
    drawn = Inverse.of(laws[:, None, None]).draw(0, rows, EDGES.repeat(200))
    assert ((drawn >= 0) & (drawn < 7)).all()
    assert (laws[rows, drawn] > 0).all()
    assert drawn[:6].tolist() == [1, 1, 3, 3, 3, 3]


def test_a_row_of_a_table_is_that_of_kind_and_context() -> None:
    tables = Tables.of(small_scenario())
    kinds, before = torch.tensor([0, 3, 3, 5]), torch.tensor([1, 0, 2, 3])
    rows = tables.row(kinds, 1, before)
    assert torch.equal(tables.target[:, 1].flatten(0, 1)[rows], tables.target[kinds, 1, before])
    first = tables.row(kinds, 0, before)
    assert torch.equal(tables.target[:, 0].flatten(0, 1)[first], tables.target[kinds, 0, 0])


def test_drafts_that_are_not_drawn_are_the_likeliest_tokens() -> None:
    tables = Tables.of(small_scenario(deterministic=True))
    assert torch.equal(tables.draft.argmax(-1), tables.draft_logits.argmax(-1))
    assert ((tables.draft == 0) | (tables.draft == 1)).all()
    assert (tables.draft.sum(-1) == 1).all()


def test_a_seed_makes_the_same_scenarios_again_and_another_one_others() -> None:
    one, again, other = (scenarios(seed, own_drafter=True, seeded=True) for seed in (1, 1, 2))
    for first, second, third in zip(one, again, other, strict=True):
        assert first.name == second.name == third.name
        for left, right, unlike in zip(first.kinds, second.kinds, third.kinds, strict=True):
            assert torch.equal(left.target_logits, right.target_logits)
            assert not torch.equal(left.target_logits, unlike.target_logits)


def test_scenarios_vary_what_they_should() -> None:
    found = scenarios(0, own_drafter=True, seeded=True)
    kinds = [kind for scenario in found for kind in scenario.kinds]
    assert len({scenario.name for scenario in found}) == len(found)
    assert {kind.length for kind in kinds} == {0, 1, 2, 3, 4, 8}
    assert any(kind.temperature == 0 for kind in kinds)
    assert any(kind.temperature not in (0, 1) for kind in kinds)
    assert any(0 < kind.temperature <= 0.1 for kind in kinds)
    assert any(kind.top_k for kind in kinds)
    assert any(kind.top_p < 1 for kind in kinds)
    assert any(kind.min_p > 0 for kind in kinds)
    for option in ("deterministic", "own_drafter", "seeded", "wide"):
        assert {getattr(scenario, option) for scenario in found} == {True, False}
    assert not any(one.own_drafter or one.seeded for one in scenarios(0, own_drafter=False, seeded=False))


@pytest.mark.parametrize("seed", range(4))
def test_single_precision_keeps_the_same_tokens(seed: int) -> None:
    """Truncations and the largest logit are far from ties: arithmetic in float32 finds the same support."""
    for scenario in scenarios(seed, own_drafter=True, seeded=True):
        tables = Tables.of(scenario)
        for logits, laws in ((tables.target_logits, tables.target), (tables.draft_logits, tables.draft)):
            if scenario.deterministic and laws is tables.draft:
                continue
            single = single_laws(logits.flatten(1, 2), tables.params).reshape(laws.shape)
            assert torch.equal(single > 0, laws > 0), scenario.name
            assert (single - laws).abs().max() < 1e-5


def test_logits_of_a_row_are_apart() -> None:
    logits = spread(np.random.default_rng(0), (50, 20, 16)).sort(-1).values
    assert float(logits.diff(dim=-1).min()) > 0.9 * APART
    kind = greedy(np.random.default_rng(1), 8, 2)
    assert float(kind.target_logits.sort(-1).values.diff(dim=-1).min()) > 0.9 * APART


def test_special_tables_are_special() -> None:
    generator = np.random.default_rng(2)
    logits = spread(generator, (3, 4, 5))
    zeros = with_zeros(generator, logits, share=0.9)
    assert (zeros.isinf().sum(-1) <= 3).all()
    assert zeros.isinf().any()
    tiny = torch.softmax(with_tiny(generator, logits).double(), -1)
    assert ((tiny.min(-1).values > 5e-9) & (tiny.min(-1).values < 1e-7)).all()
    assert np.exp(TINY) == pytest.approx(1e-8, rel=0.1)
    assert ((swapped(generator, logits) != logits).sum(-1) == 2).all()


@pytest.mark.parametrize("ratio", [0.9962, 0.9995])
def test_a_ratio_near_one_makes_rejections_as_rare(ratio: float) -> None:
    kind = near_one(ratio)(np.random.default_rng(3), 4, 2)
    target, draft = kind.target_logits[:2].double().softmax(-1), kind.draft_logits.double().softmax(-1)
    likely = draft.argmax(-1, keepdim=True)
    ratios = (target / draft).gather(-1, likely)
    assert (ratios - ratio).abs().max() < 1e-5


def test_many_drafts_are_reached_and_a_low_temperature_is_not_greedy() -> None:
    """A tenth of the rows gets behind the sixth draft; rows at temperature 0.1 are no more certain."""
    many = Tables.of(next(one for one in scenarios(0, own_drafter=False, seeded=False) if one.drafts == 8))
    accepted = torch.minimum(many.target[0, :6], many.draft[0, :6]).sum(-1).mean(-1)
    assert 0.1 < float(accepted.prod()) < 0.9
    kind = cold(np.random.default_rng(5), 8, 2)
    law = (kind.target_logits.double() / kind.temperature).softmax(-1)
    assert float(law.max(-1).values.mean()) < 0.7


def test_the_last_tile_of_a_wide_vocabulary_has_mass() -> None:
    found = scenarios(0, own_drafter=False, seeded=False)
    law = Tables.of(next(one for one in found if one.name == "wide vocabulary")).target[0, 0, 0]
    for tile in (64, 128, 1024, 4096):
        assert len(law) % tile
        assert float(law[len(law) // tile * tile :].sum()) > 0.02


def test_a_wide_kind_has_a_tail_that_the_draft_neglects() -> None:
    kind = wide(np.random.default_rng(4), 1024, 1)
    tails = [
        float(logits.double().softmax(-1)[0, 0, 4:].sum())
        for logits in (kind.target_logits, kind.draft_logits)
    ]
    assert tails == pytest.approx([0.3, 0.02], abs=1e-3)
    assert all(first > second for first, second in pairwise(tails))
