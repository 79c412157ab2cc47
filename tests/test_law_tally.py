"""Counts equal a recount row by row; completions keep totals, follow the target, and cost no memory.

Statistical tests: 5 chi-squares at alpha 1e-9, false alarms below 1e-8 in all.
"""

from collections import Counter

import numpy as np
import pytest
import torch

from support.law_runs import small_scenario
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.spec.generation_contracts import NO_TOKEN
from tokenlaw.stats.chain_laws import KindLaws
from tokenlaw.stats.chi_square import chi_square
from tokenlaw.stats.driver import Driver, Step
from tokenlaw.stats.scenario import Scenario, Tables
from tokenlaw.stats.tally import JointTally, complete, of_kind
from tokenlaw.stats.trial import kind_laws


def tallied(scenario: Scenario, samples: int = 3000) -> tuple[Tables, JointTally, list[Step]]:
    tables = Tables.of(scenario)
    tally, steps = JointTally(tables, 0), list(Driver(ChainVerifier(), tables, 0).steps(0, samples, 700))
    for step in steps:
        tally.add(step)
    return tables, tally, steps


@pytest.mark.parametrize("own_drafter", [False, True])
def test_counts_equal_a_recount(own_drafter: bool) -> None:
    scenario = small_scenario(own_drafter=own_drafter)
    _, tally, steps = tallied(scenario)
    outcomes, pairs, drafts = np.zeros_like(tally.outcomes()), np.zeros_like(tally.pairs()), Counter()
    for step in steps:
        for row, kind in enumerate(step.kinds.tolist()):
            emitted = step.emitted[row].tolist()
            outcomes[(kind, *(token + 1 for token in emitted))] += 1
            accepted = sum(token != NO_TOKEN for token in emitted) - 1
            if accepted < scenario.kinds[kind].length:
                pairs[kind, accepted, step.batch.draft_tokens[row, accepted], emitted[accepted]] += 1
            drafts[(kind, *step.batch.draft_tokens[row].tolist())] += 1
    assert (outcomes == tally.outcomes()).all()
    assert (pairs == tally.pairs()).all()
    found = tally.drafts()
    if own_drafter:
        assert all(found[cell] == drafts[cell] for cell in np.ndindex(found.shape))
    else:
        assert found.shape == (len(scenario.kinds), 0)


def test_counts_of_a_kind_have_an_axis_for_each_of_its_positions() -> None:
    scenario = small_scenario()
    _, tally, _ = tallied(scenario)
    for index, kind in enumerate(scenario.kinds):
        counts = of_kind(tally.outcomes(), index, kind.length)
        assert counts.shape == (5,) * (kind.length + 1)
        assert counts.sum() == tally.outcomes()[index].sum() > 0


def test_memory_does_not_grow_with_samples() -> None:
    tables, tally, steps = tallied(small_scenario(own_drafter=True), 500)
    sizes = {name: len(part) for name, part in vars(tally).items() if isinstance(part, torch.Tensor)}
    for step in Driver(ChainVerifier(), tables, 0).steps(500, 20_000, 1000):
        tally.add(step)
    assert sizes == {name: len(part) for name, part in vars(tally).items() if isinstance(part, torch.Tensor)}
    assert len(sizes) == 3
    assert sum(len(step.kinds) for step in steps) == 500


def laws() -> KindLaws:
    """Two drafts, three tokens, of which one is impossible after some others."""
    weights = np.array(
        [[[2, 1, 1]] * 3, [[1, 0, 3], [0, 1, 0], [1, 1, 1]], [[3, 1, 0], [1, 1, 2], [0, 1, 1]]]
    )
    target = weights / weights.sum(-1, keepdims=True)
    return KindLaws(target, target[:2])


def outcomes(**cells: int) -> np.ndarray:
    """Counts by the digits of the emitted tokens: ``_01`` for token 0, then 1."""
    counts = np.zeros((4, 4, 4), dtype=np.int64)
    for tokens, count in cells.items():
        place = [int(token) + 1 for token in tokens[1:]]
        counts[(*place, *(0,) * (3 - len(place)))] = count
    return counts


def test_completions_keep_what_was_emitted() -> None:
    done = complete(outcomes(_0=1000, _02=500, _201=70), laws(), 1)
    assert done.shape == (3, 3, 3)
    assert done.sum() == 1570
    assert done[0].sum() == 1500
    assert done[2].sum() == done[2, 0, 1] == 70
    assert done[0, 2].sum() >= 500


def test_completions_follow_the_target() -> None:
    """After nothing but token 0: positions 1 and 2 are drawn; their law is known."""
    exact, count = laws(), 1_000_000
    done = complete(outcomes(_0=count), exact, 7)[0]
    law = exact.target[1, 0][:, None] * exact.target[2]
    assert not done[law == 0].any()
    assert chi_square(done.ravel(), law.ravel()).p_value > 1e-9
    done = complete(outcomes(_02=count), exact, 7)[0]
    assert done[2].sum() == count
    assert chi_square(done[2], exact.target[2, 2]).p_value > 1e-9


@pytest.mark.parametrize("seed", range(30))
def test_completions_draw_no_impossible_token(seed: int) -> None:
    """Laws whose probabilities don't sum to one exactly, with impossible tokens at their ends."""
    generator = np.random.default_rng(seed)
    weights = generator.random((2, 6, 6)) * (generator.random((2, 6, 6)) > 0.5)
    weights[..., 3] += 1e-3
    weights[:, ::2, -1] = 0
    target = weights / weights.sum(-1, keepdims=True) * (1 - 1e-13)
    counts = np.zeros((7, 7), dtype=np.int64)
    counts[1:, 0] = 10_000_000
    done = complete(counts, KindLaws(target, target[:1]), seed)
    assert done.sum() == 60_000_000
    assert not done[target[1] == 0].any()


def test_completions_depend_on_their_names_alone() -> None:
    counts = outcomes(_0=1000, _1=300)
    first = complete(counts, laws(), 1, "a", 0)
    assert (first == complete(counts, laws(), 1, "a", 0)).all()
    assert (first != complete(counts, laws(), 1, "a", 1)).any()


def test_completed_steps_of_a_verifier_have_the_law_of_the_target() -> None:
    tables, tally, _ = tallied(small_scenario(seed=2), 60_000)
    for index in (0, 1, 3):
        exact = kind_laws(tables)[index]
        law = exact.target[0, 0][:, None] * exact.target[1]
        done = complete(of_kind(tally.outcomes(), index, exact.length), exact, index)
        pairs = done.reshape(4, 4, -1).sum(-1)
        assert chi_square(pairs.ravel(), law.ravel() / law.sum()).p_value > 1e-9
