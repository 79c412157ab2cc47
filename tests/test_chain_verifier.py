"""The chain verifier number by number, batches whose rows share laws, and what all verifiers leave alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from support.verifier_requests import (
    DRAFT,
    REQUESTS,
    TARGET,
    VOCABULARY,
    batch_of,
    drawn_from_laws,
    p_value,
)
from tokenlaw.impl.speculative import VERIFIERS
from tokenlaw.impl.speculative.chain import ChainVerifier, residual_weights
from tokenlaw.impl.speculative.draws import draw, draw_from_table
from tokenlaw.spec.generation_contracts import NO_TOKEN, Verifier, VerifyBatch, as_logits
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.sampling import draw as scalar_draw
from tokenlaw.spec.speculation import StepOutcome, chain_verification, deterministic_verification
from tokenlaw.spec.steps import step_law

SMALLEST, LARGEST = 2.0**-24, 1 - 2.0**-24
ALL = pytest.mark.parametrize("verifier", [kind() for kind in VERIFIERS.values()], ids=list(VERIFIERS))


def one_draft(token: int, target: list[float], draft: list[float] | None) -> VerifyBatch:
    """One row, one draft; the bonus token is always 3."""
    laws = torch.tensor([[target, [0.0, 0.0, 0.0, 1.0]]], dtype=torch.float64)
    logits = None if draft is None else as_logits(torch.tensor([[draft]], dtype=torch.float64), "draft")
    return VerifyBatch(
        draft_tokens=torch.tensor([[token]]),
        num_draft_tokens=torch.tensor([1]),
        target_logits=as_logits(laws, "target"),
        draft_logits=logits,
        params=RowParameters.default(1),
    )


@pytest.mark.parametrize(
    ("target", "draft", "uniform", "accepted"),
    [
        # Powers of two, so that floats hold everything: p / q is a half for token 0.
        ([0.25, 0.5, 0.25, 0.0], [0.5, 0.25, 0.25, 0.0], 0.0, True),
        ([0.25, 0.5, 0.25, 0.0], [0.5, 0.25, 0.25, 0.0], SMALLEST, True),
        ([0.25, 0.5, 0.25, 0.0], [0.5, 0.25, 0.25, 0.0], np.nextafter(0.5, 0), True),
        ([0.25, 0.5, 0.25, 0.0], [0.5, 0.25, 0.25, 0.0], 0.5, False),
        ([0.25, 0.5, 0.25, 0.0], [0.5, 0.25, 0.25, 0.0], LARGEST, False),
        # p = q and p > q: always
        ([0.5, 0.5, 0.0, 0.0], [0.5, 0.25, 0.25, 0.0], LARGEST, True),
        ([0.75, 0.25, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], LARGEST, True),
        # p = 0: never
        ([0.0, 0.5, 0.5, 0.0], [0.5, 0.25, 0.25, 0.0], 0.0, False),
        ([0.0, 0.5, 0.5, 0.0], [0.5, 0.25, 0.25, 0.0], SMALLEST, False),
        # no draft law: accepted with the probability that the target gives
        ([0.25, 0.5, 0.25, 0.0], None, 0.0, True),
        ([0.25, 0.5, 0.25, 0.0], None, np.nextafter(0.25, 0), True),
        ([0.25, 0.5, 0.25, 0.0], None, 0.25, False),
        ([1.0, 0.0, 0.0, 0.0], None, LARGEST, True),
        ([0.0, 0.5, 0.5, 0.0], None, 0.0, False),
    ],
)
def test_which_numbers_accept(
    target: list[float], draft: list[float] | None, uniform: float, accepted: bool
) -> None:
    uniforms = torch.tensor([[uniform]], dtype=torch.float64)
    emitted = ChainVerifier().verify(one_draft(0, target, draft), seed=0, uniforms=uniforms)[0].tolist()
    if accepted:
        assert emitted == [0, 3]
    else:
        replacement, nothing = emitted
        assert nothing == NO_TOKEN
        assert target[replacement] > (draft or [1.0, 0.0, 0.0, 0.0])[replacement]


def test_injected_numbers_stop_at_the_first_rejection() -> None:
    """Numbers below or above every acceptance probability; three rows share one table of laws."""
    target, draft = torch.tensor([[0.5, 0.5]] * 4).double(), torch.tensor([[0.75, 0.25]] * 3).double()
    shared = VerifyBatch(
        draft_tokens=torch.zeros(4, 3, dtype=torch.int64),
        num_draft_tokens=torch.tensor([3, 3, 3, 2]),
        target_logits=as_logits(target, "target").expand(4, -1, -1),
        draft_logits=as_logits(draft, "draft").expand(4, -1, -1),
        params=RowParameters.default(4),
    )
    low, high = 0.1, 0.9
    uniforms = torch.tensor([[low, low, low], [low, high, low], [high, low, low], [low, low, high]]).double()
    for batch in (shared, replace(shared, target_logits=shared.target_logits.clone())):
        emitted = ChainVerifier().verify(batch, seed=0, uniforms=uniforms)
        assert (emitted != NO_TOKEN).sum(1).tolist() == [4, 2, 1, 3]
        assert emitted[1, 1] == emitted[2, 0] == 1


def test_residual_weights_of_equal_laws_are_the_target() -> None:
    laws = torch.tensor([[0.25, 0.75], [1.0, 0.0]]).double()
    assert torch.equal(residual_weights(laws, laws), laws)
    rejected = one_draft(0, [0.5, 0.5, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0])
    uniforms = torch.ones(1, 1, dtype=torch.float64)  # not below 1, as if rounding had rejected
    found = {int(ChainVerifier().verify(rejected, seed=seed, uniforms=uniforms)[0, 0]) for seed in range(30)}
    assert found == {0, 1}


@pytest.mark.parametrize("vocabulary", [1, 3, 50])
def test_both_ways_to_draw_are_the_rule_of_the_spec(vocabulary: int) -> None:
    generator = torch.Generator().manual_seed(vocabulary)
    weights = torch.randint(0, 3, (20, vocabulary), generator=generator).double()
    middle = vocabulary // 2
    weights[:, middle] += 128 - weights.sum(-1)  # sums of these are exact: numbers can lie on an edge
    laws = weights / 128
    edges = torch.tensor([0.0, 2.0**-53, 1 / 3, 0.5, 1 - 2.0**-53], dtype=torch.float64)
    uniforms = torch.cat([edges, torch.rand(15, generator=generator, dtype=torch.float64)])
    for law in laws:
        found = draw(law.expand(20, -1), uniforms)
        expected = [scalar_draw(law.tolist(), one) for one in uniforms.tolist()]
        assert found.tolist() == expected
    entries = torch.arange(20)
    assert bool((laws[entries, draw_from_table(laws, entries, uniforms)] > 0).all())
    random = uniforms[5:]
    assert torch.equal(draw_from_table(laws, entries[5:], random), draw(laws[5:], random))


def test_entries_that_nobody_asks_for_may_hold_anything() -> None:
    table = torch.tensor([[1.0, 3.0], [float("nan"), 1.0], [0.0, 0.0], [0.0, 1.0]]).double()
    found = draw_from_table(table, torch.tensor([0, 0, 3]), torch.tensor([0.2, 0.3, 0.0]).double())
    assert found.tolist() == [0, 1, 1]


def shared_batch(rows: int, draft_laws: bool) -> VerifyBatch:
    """All rows after token 0 with drafts of one law for each position; the last position isn't read."""
    target, draft = torch.tensor([[TARGET((token,)) for token in (0, 1, 2, 2)]]).double(), None
    drawn_from = torch.tensor([DRAFT((token,)) for token in (0, 1, 1)]).double()
    generator = torch.Generator().manual_seed(0)
    tokens = torch.multinomial(drawn_from, rows, replacement=True, generator=generator).T
    target_logits = as_logits(target, "target")
    target_logits[:, 3:] = float("nan")
    if draft_laws:
        draft = as_logits(drawn_from[None], "draft").expand(rows, -1, -1)
    lengths = torch.full((rows,), 2)
    return VerifyBatch(
        tokens, lengths, target_logits.expand(rows, -1, -1), draft, RowParameters.default(rows)
    )


@pytest.mark.parametrize("draft_laws", [True, False])
@pytest.mark.parametrize("verifier", [kind() for name, kind in VERIFIERS.items() if name != "greedy"])
def test_shared_tables_give_the_tokens_of_dense_ones(verifier: Verifier, draft_laws: bool) -> None:
    """Equal numbers pick equal tokens, but for numbers within 1e-14 of an edge: probability 1e-9 here."""
    batch = shared_batch(20_000, draft_laws)
    draft = None if batch.draft_logits is None else batch.draft_logits.clone()
    dense = replace(batch, target_logits=batch.target_logits.clone(), draft_logits=draft)
    assert torch.equal(verifier.verify(batch, seed=7), verifier.verify(dense, seed=7))


@pytest.mark.parametrize("draft_laws", [True, False])
def test_joint_law_of_shared_tables(draft_laws: bool) -> None:
    """Chi-square over 84 outcomes, false alarm 1e-8; 50,000 rows see a TV of 0.04 with probability 0.999."""
    emitted = ChainVerifier().verify(shared_batch(50_000, draft_laws), seed=7)
    assert bool((emitted[:, 3] == NO_TOKEN).all())
    law: dict[StepOutcome, float] = step_law(
        chain_verification if draft_laws else deterministic_verification,
        target=lambda tokens: TARGET((len(tokens),)),
        draft=lambda tokens: DRAFT((len(tokens),)),
        prompt=(),
        draft_length=2,
    )
    assert p_value({one.tokens: mass for one, mass in law.items()}, emitted[:, :3]) > 1e-8


@ALL
def test_what_stands_behind_the_last_draft_is_ignored(verifier: Verifier) -> None:
    batch = batch_of(REQUESTS, 700, drawn_from_laws(seed=1))
    assert batch.draft_logits is not None
    tokens, target, draft = (
        batch.draft_tokens.clone(),
        batch.target_logits.clone(),
        batch.draft_logits.clone(),
    )
    short, none = batch.num_draft_tokens <= 1, batch.num_draft_tokens == 0
    tokens[short, 1], tokens[none, 0] = -1, VOCABULARY + 95
    target[short, 2], target[none, 1] = float("nan"), -float("inf")
    draft[short, 1], draft[none, 0] = float("inf"), float("nan")
    spoiled = replace(batch, draft_tokens=tokens, target_logits=target, draft_logits=draft)
    assert torch.equal(verifier.verify(spoiled, seed=3), verifier.verify(batch, seed=3))


@ALL
def test_no_drafts_at_all(verifier: Verifier) -> None:
    """One token of the target for each row, from the only law there is."""
    target = torch.tensor([[[0.0, 1.0]], [[1.0, 0.0]]]).double()
    batch = VerifyBatch(
        draft_tokens=torch.empty(2, 0, dtype=torch.int64),
        num_draft_tokens=torch.zeros(2, dtype=torch.int64),
        target_logits=as_logits(target, "target"),
        draft_logits=torch.empty(2, 0, 2),
        params=RowParameters.default(2),
    )
    assert verifier.verify(batch, seed=0).tolist() == [[1], [0]]
    assert verifier.verify(replace(batch, draft_logits=None), seed=0).tolist() == [[1], [0]]
