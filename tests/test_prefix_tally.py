"""Tokens by classes of prefixes: the right cells, no false alarm, and faults that nothing else here sees.

Exact verifiers fail a test here with a probability below 1e-6 in all: an e-value reaches 1e9 with a
probability of at most 1e-9.
"""

import math
from typing import Any

import numpy as np
import pytest
import torch

from support.law_runs import audited, implementation
from tokenlaw.impl.speculative import ChainVerifier
from tokenlaw.impl.speculative.block import BlockVerifier
from tokenlaw.impl.speculative.sample_and_match import SampleAndMatchVerifier
from tokenlaw.spec.generation_contracts import EXACT, TEXTBOOK, VerifyBatch
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.chain_laws import KindLaws, chain_joint
from tokenlaw.stats.driver import Driver, Step
from tokenlaw.stats.prefix_cells import CLASSES, PrefixCells
from tokenlaw.stats.prefix_tally import PrefixTally, chain_masses
from tokenlaw.stats.protocol import check_emitted
from tokenlaw.stats.row_kinds import many_drafts, wide
from tokenlaw.stats.scenario import Scenario, Tables
from tokenlaw.stats.scenarios import make_scenario
from tokenlaw.stats.trial import kind_laws
from tokenlaw.stats.verifier_checks import PREFIXES, WIDE
from tokenlaw.stats.verifier_suite import VerifierSuite
from tokenlaw.stats.wide_trial import WideTrial

NEEDED = 9 * math.log(10)
OPTIONS: dict[str, Any] = {"share": 1.0, "ragged": False, "wide": True}
MANY = make_scenario("many drafts", (many_drafts,), vocabulary=32, drafts=4, seed=0, **OPTIONS)
LARGE = make_scenario("large", (wide,), vocabulary=512, drafts=1, seed=0, **OPTIONS)
CONTEXTS = 16


def tried(verifier: Any, scenario: Scenario, claims: str, seed: int = 1, mean: float = 4_000.0) -> WideTrial:
    trial = WideTrial(verifier, scenario, claims=claims, seed=seed, device="cpu")
    trial.run(mean, 1_000, lambda: None)
    return trial


def test_the_laws_multiply_to_the_joint_law() -> None:
    """Over all prefixes of a small table, with the rounding of ties left out in both."""
    target = np.random.default_rng(0).dirichlet([1.0] * 3, (3, 3))
    draft = np.random.default_rng(1).dirichlet([1.0] * 3, (2, 3))
    draft[1, 2] = target[1, 2]
    laws = KindLaws(target, draft)
    masses, doubtful = chain_masses(laws)
    joint, rounding = chain_joint(laws)
    goes_on, ends = masses[:, 0], masses[:, 1]
    for first in range(3):
        assert joint[1 + first, 0, 0] == pytest.approx(ends[0, 0, first])
        for second in range(3):
            reached = goes_on[0, 0, first]
            assert joint[1 + first, 1 + second, 0] == pytest.approx(reached * ends[1, first, second])
            assert (rounding[1 + first, 1 + second, 0] > 0) == (doubtful[1, 1, first, second] > 0)
            for last in range(3):
                mass = reached * goes_on[1, first, second] * goes_on[2, second, last]
                assert joint[1 + first, 1 + second, 1 + last] == pytest.approx(mass)


def test_every_class_of_a_context_has_its_law() -> None:
    tables = Tables.of(MANY)
    (laws,) = kind_laws(tables)
    tally = PrefixTally(tables, laws, claims=EXACT, seed=0)
    assert tally.laws.shape == (5, CLASSES, 32)
    np.testing.assert_allclose(tally.laws.reshape(5, CONTEXTS, 4, 32), laws.target[:, :, None].repeat(4, 2))
    chain = PrefixTally(tables, laws, claims=TEXTBOOK, seed=0).laws
    np.testing.assert_allclose(chain.sum(-1), 1)
    np.testing.assert_allclose(chain[..., :32] + chain[..., 32:], tally.laws)
    grouped = PrefixTally(Tables.of(LARGE), *kind_laws(Tables.of(LARGE)), claims=EXACT, seed=0).laws
    assert grouped.shape == (2, CLASSES, 61)
    first = kind_laws(Tables.of(LARGE))[0].target[0, 0]
    np.testing.assert_allclose(grouped[0, 0, 5], first[5::61].sum())


def test_tokens_are_counted_behind_their_context_and_prefix() -> None:
    """What is counted is counted where the context says, and equal prefixes share a class."""
    tables = Tables.of(MANY)
    step = Driver(ChainVerifier(), tables, 0).step(0, 400)
    tally = PrefixTally(tables, *kind_laws(tables), claims=TEXTBOOK, seed=0)
    tally.add(step)
    counts = tally.counts().reshape(5, CONTEXTS, 4, 2, 32)
    expected = np.zeros((5, CONTEXTS, 2, 32), dtype=np.int64)
    for row in step.emitted.tolist():
        tokens = [token for token in row if token >= 0]
        for place, token in enumerate(tokens):
            ends = place == len(tokens) - 1 and place < 4
            expected[place, tokens[place - 1] % CONTEXTS if place else 0, int(ends), token] += 1
    np.testing.assert_array_equal(counts.sum(2), expected)
    assert tally.tokens() == expected.sum()
    assert tally.tokens(first=1) == expected[1:].sum()
    assert (counts[1].sum((-1, -2)) > 0).sum() <= 32
    assert (counts[4].sum((-1, -2)) > 0).sum() > 40


@pytest.mark.parametrize("claims", [TEXTBOOK, EXACT])
def test_counts_are_the_same_for_any_size_of_the_calls(claims: str) -> None:
    tables = Tables.of(MANY)
    step = Driver(ChainVerifier(), tables, 0).step(0, 400)
    whole, split = (PrefixTally(tables, *kind_laws(tables), claims=claims, seed=0) for _ in range(2))
    whole.add(step)
    for part in (slice(0, 1), slice(1, 260), slice(260, 400)):
        batch, emitted = step.batch.rows(part), step.emitted[part]
        split.add(Step(step.kinds[part], batch, emitted, check_emitted(emitted, batch)))
    np.testing.assert_array_equal(whole.counts(), split.counts())


def test_equal_prefixes_share_a_class_and_others_are_spread() -> None:
    """Of 3 contexts: 16 classes each, the largest power of two that 64 has room for."""
    cells = PrefixCells(3, 7, 3, 7, ends=False, seed=5, device=torch.device("cpu"))
    tokens = torch.randint(7, (6_000, 3), generator=torch.Generator().manual_seed(0))
    found = torch.stack(list(cells.of([column + 1 for column in tokens.int().unbind(1)])), 1)
    assert cells.shape == (3, 48, 8)
    assert set((found[:, 2] // 8 - 96).tolist()) <= set(range(48))
    owners: dict[tuple[int, ...], set[int]] = {}
    for row, place in zip(tokens.tolist(), found[:, 2].tolist(), strict=True):
        assert place % 8 == row[2]
        assert (place // 8 - 96) // 16 == row[1] % 3
        owners.setdefault(tuple(row[:2]), set()).add(place // 8)
    assert all(len(classes) == 1 for classes in owners.values())
    assert len(set.union(*owners.values())) > 24


def test_rows_are_completed_where_the_rule_is_free() -> None:
    tables = Tables.of(MANY)
    tally = PrefixTally(tables, *kind_laws(tables), claims=EXACT, seed=0)
    tally.add(Driver(ChainVerifier(), tables, 0).step(0, 400))
    assert tally.counts().sum((1, 2)).tolist() == [400] * 5


@pytest.mark.parametrize("scenario", [MANY, LARGE], ids=["many drafts", "large vocabulary"])
@pytest.mark.parametrize(
    ("make", "claims"),
    [
        (ChainVerifier, TEXTBOOK),
        (ChainVerifier, EXACT),
        (BlockVerifier, EXACT),
        (SampleAndMatchVerifier, EXACT),
    ],
)
def test_exact_verifiers_are_not_refuted(make: Any, claims: str, scenario: Scenario) -> None:
    """In four seeds each; an e-value of 1e9 in any of them has a probability of at most 4e-9."""
    for seed in range(4):
        assert tried(make(), scenario, claims, seed, mean=1_000.0).prefixes.log_e() < NEEDED


def test_alarms_are_as_rare_as_promised() -> None:
    """An e-value of 20 in at most 10 of 40 seeds: an honest one fails this with a probability below 3e-6.

    Power: one that alarms in 60 % of the runs is found out with a probability above 0.999.
    """
    alarms = sum(
        tried(ChainVerifier(), MANY, TEXTBOOK, seed, mean=300.0).prefixes.log_e() >= math.log(20)
        for seed in range(40)
    )
    assert alarms <= 10


class Crossed(ChainVerifier):
    """The last tokens of rows that accepted equally many drafts change places, between two contexts.

    Whatever is counted without a look at the token before stays as it is, to the last count.
    """

    def __init__(self, least: int) -> None:
        self.least = least

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        emitted = super().verify(batch, seed=seed, uniforms=uniforms)
        if batch.shape[2] not in (32, 50):
            return emitted
        last = (emitted >= 0).sum(-1) - 1
        for place in range(self.least, emitted.shape[1]):
            before = emitted[:, place - 1] % (batch.shape[2] // 2)
            one, other = (((last == place) & (before == context)).nonzero()[:, 0] for context in (3, 8))
            pairs = min(len(one), len(other))
            rows, others = torch.cat([one[:pairs], other[:pairs]]), torch.cat([other[:pairs], one[:pairs]])
            emitted[rows, place] = emitted[others, place]
        return emitted


@pytest.mark.parametrize(("claims", "least"), [(TEXTBOOK, 1), (TEXTBOOK, 4), (EXACT, 1), (EXACT, 4)])
def test_laws_of_two_classes_that_change_places_are_found(claims: str, least: int) -> None:
    """Power: with the rows of a default run, and bonus tokens alone, the log e-value was 102 to 175 in twelve
    seeds where rows are completed (mean 146, deviation 25) and 316 to 491 under the textbook's rule.

    So 20.7, which refutes, is missed with a probability below 1e-5. Recovered tokens may be impossible in the
    other context, which refutes at once.
    """
    right, wrong = (tried(one, MANY, claims, mean=12_000.0) for one in (ChainVerifier(), Crossed(least)))
    assert right.log_es() == wrong.log_es()
    assert right.prefixes.log_e() < NEEDED < wrong.prefixes.log_e()
    assert "where the token before is" in wrong.prefixes.finding()


class Sorted(ChainVerifier):
    """Bonus tokens are handed to the rows in order: the larger the draft, the larger the bonus token."""

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        emitted = super().verify(batch, seed=seed, uniforms=uniforms)
        if batch.shape[1] == 1:
            full = (emitted[:, 1] >= 0).nonzero()[:, 0]
            emitted[full[emitted[full, 0].argsort()], 1] = emitted[full, 1].sort().values
        return emitted


@pytest.mark.parametrize("claims", [TEXTBOOK, EXACT])
def test_a_dependence_that_no_single_token_shows_is_found(claims: str) -> None:
    """With one context all bonus tokens have one law; in order they depend on the draft as much as can be.

    Power: the log e-value was 68 to 124 in twelve seeds (mean 99, deviation 17); 20.7 is missed with a
    probability below 1e-3.
    """
    right, wrong = tried(ChainVerifier(), LARGE, claims), tried(Sorted(), LARGE, claims)
    assert right.log_es() == wrong.log_es()
    assert max(right.log_es().values()) < NEEDED
    assert right.prefixes.log_e() < NEEDED < wrong.prefixes.log_e()
    assert "hash" in wrong.prefixes.finding()
    assert "modulo 61" in wrong.prefixes.finding()


def test_an_impossible_token_is_named_first() -> None:
    class Foreign(ChainVerifier):
        def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
            emitted = super().verify(batch, seed=seed, uniforms=uniforms)
            ends = (emitted[:, 1] < 0) & (batch.draft_probs[:, 0] > batch.target_probs[:, 0]).any(-1)
            wrong = (batch.draft_probs[:, 0] - batch.target_probs[:, 0]).argmax(-1)
            emitted[ends, 0] = wrong[ends]
            return emitted

    prefixes = tried(Foreign(), MANY, TEXTBOOK).prefixes
    assert prefixes.log_e() == math.inf
    assert "in place of a rejected draft" in prefixes.finding().split("\n")[1]


def test_a_run_refutes_it_and_a_replay_again() -> None:
    found = audited(lambda: Crossed(4), only=frozenset({WIDE, PREFIXES}), budget=60_000)
    assert found[WIDE].verdict is Verdict.HOLDS
    assert found[PREFIXES].verdict is Verdict.REFUTED
    assert found[PREFIXES].message.startswith("Scenario 'many drafts', tokens by classes of prefixes: log10")
    statistics = found[PREFIXES].statistics
    assert statistics is not None
    (shown,) = statistics["laws_shown"]
    assert shown["where"].startswith("scenario 'many drafts', tokens at position ")
    assert "where the token before is" in shown["where"]
    worst = found[PREFIXES].message.split("\n")[2].split(":")[0].strip()
    assert worst in {one["outcome"] for one in shown["outcomes"]}
    assert "laws_shown" not in (found[WIDE].statistics or {})
    counterexample = found[PREFIXES].counterexample
    assert counterexample is not None
    (again,) = VerifierSuite().replay(implementation(lambda: Crossed(4)), counterexample)
    assert again.message == found[PREFIXES].message
    (healed,) = VerifierSuite().replay(implementation(ChainVerifier), counterexample)
    assert healed.verdict is Verdict.HOLDS
