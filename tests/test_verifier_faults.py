"""Planted faults of verifiers: each one shows where it is said to, and only there; the base is exact."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from support.fault_kinds import KINDS
from support.step_situations import SEED, SITUATIONS, plain
from tokenlaw.impl.faults import VERIFIER_FAULTS, ChainVerifier, Fault
from tokenlaw.impl.faults.planted import planted
from tokenlaw.spec.generation_contracts import NO_TOKEN, Verifier
from tokenlaw.spec.row_laws import RowParameters

SHOWN_AND_HIDDEN = {
    "ratio_inverted": ("plain", "equal laws"),
    "accept_det": ("plain", "equal laws"),
    "accept_always": ("plain", "equal laws"),
    "last_pos_always": ("plain", "equal laws"),
    "first_unchecked": ("plain", "equal laws"),
    "tie_reject": ("equal laws", "plain"),
    "p0_accept": ("zeros", "plain"),
    "threshold_0.7": ("plain", "equal laws"),
    "draft_zeroed_first": ("lookup", "plain"),
    "ratio_x1.01": ("near one", "equal laws"),
    "ratio_x1.003": ("near one", "equal laws"),
    "block_token_residual": ("plain", "one draft"),
    "no_residual": ("plain", "equal laws"),
    "resid_abs": ("plain", "equal laws"),
    "resid_swapped": ("plain", "equal laws"),
    "resid_unnorm": ("plain", "equal laws"),
    "residual_floor": ("wide", "equal laws"),
    "last_vocab": ("plain", "greedy"),
    "resid_row0": ("plain", "one law"),
    "next_row_used": ("plain", "equal laws"),
    "sum_not_cumprod": ("plain", "one draft"),
    "no_stop": ("plain", "equal laws"),
    "bias_1pct": ("plain", "greedy"),
    "bias_0.3pct": ("plain", "greedy"),
    "bias_0.1pct": ("near one", "greedy"),
    "bonus_draft": ("plain", "greedy"),
    "bonus_argmax": ("plain", "greedy"),
    "bonus_row_off": ("plain", "one law"),
    "off_by_one": ("plain", "one law"),
    "ragged_stride": ("ragged", "longest first"),
    "neighbour_q": ("plain", "one law"),
    "mixed_greedy": ("mixed", "greedy"),
    "vocabulary_shift": ("plain", "greedy"),
    "temp_p_ignored": ("cool", "plain"),
    "temp_q_ignored": ("cool", "plain"),
    "topk_q_raw": ("top-k", "cool"),
    "temperature_twice": ("cool", "plain"),
    "min_p_ignored": ("min-p", "top-k"),
    "top_p_ignored": ("top-p", "top-k"),
    "filter_order": ("top-k and top-p", "top-p"),
    "top_p_edge": ("top-p", "top-k"),
    "greedy_always": ("plain", "greedy"),
    "typical_acceptance": ("plain", "greedy"),
    "reuse_u": ("plain", "equal laws"),
    "pos_shared_u": ("plain", "one draft"),
    "dup_rows": ("plain", "greedy"),
    "draft_accept_u": ("plain", "equal laws"),
    "seeds_dropped": ("seeded", "all seeded"),
    "fp16_cumsum": ("wide", "equal laws"),
    "u_bf16": ("near one", "greedy"),
    "long_runs_unchecked": ("many drafts", "plain"),
    "last_tile_lost": ("odd vocabulary", "wide"),
    "low_temp_greedy": ("cold", "cool"),
}
"""Fault -> the situation in which its tokens differ from the base's, and one in which they don't."""

CLASSES = {
    "C01": "argmax_draft",
    "C02": "temp_p_ignored",
    "C03": "greedy_always",
    "C04": "bonus_argmax",
    "C05": "no_residual",
    "C06": "accept_always",
    "C07": "reuse_u",
    "C08": "restarted_stream",
    "C09": "block_token_residual",
    "C10": "typical_acceptance",
    "C11": "neighbour_q",
    "C12": "stale_lengths",
    "C19": "top_p_edge",
    "C20": "vocabulary_shift",
}
"""Classes of reports that a verifier alone can show, and a fault distilled from one of each."""

ELSEWHERE = {
    "u0_accept",
    "stale_lengths",
    "argmax_draft",
    "seed_corr_gumbel",
    "restarted_stream",
    "draft_restarted",
    "draft_bf16",
    "tree_with_replacement",
    "tree_without_replacement",
    "tree_not_renormalised",
}
"""Faults that need more than one call of verify; each has a test of its own below."""


def test_every_kind_is_planted_and_every_fault_is_tested() -> None:
    assert len(KINDS) == 35
    assert set(KINDS) <= VERIFIER_FAULTS.keys()
    assert SHOWN_AND_HIDDEN.keys() | ELSEWHERE == VERIFIER_FAULTS.keys()
    assert not SHOWN_AND_HIDDEN.keys() & ELSEWHERE


@pytest.mark.parametrize(("number", "name"), CLASSES.items())
def test_every_class_of_reports_has_a_fault(number: str, name: str) -> None:
    fault = VERIFIER_FAULTS[name]
    assert number in fault.classes
    assert any(character.isdigit() for character in fault.report)


def test_the_classes_are_those_that_a_verifier_can_show() -> None:
    """The others need a decoder (C14 to C17, C22), several ranks (C13), or lose acceptance only (C18)."""
    assert CLASSES.keys() == {f"C{number:02}" for number in (*range(1, 13), 19, 20)}
    planted_for = {one for fault in VERIFIER_FAULTS.values() for one in fault.classes}
    assert planted_for == CLASSES.keys()


@pytest.mark.parametrize("fault", VERIFIER_FAULTS.values(), ids=VERIFIER_FAULTS)
def test_faults_are_described_and_fulfil_the_contract(fault: Fault) -> None:
    assert all(len(one) == 3 and one.startswith("C") and 1 <= int(one[1:]) <= 22 for one in fault.classes)
    assert fault.report
    assert fault.effect
    assert fault.weakest_check
    assert isinstance(fault.make(), Verifier)


def test_a_fault_without_description_is_refused() -> None:
    with pytest.raises(ValueError, match="ChainVerifier: the docstring lacks Classes, Report, Effect"):
        planted("nothing", ChainVerifier)


def tokens_of(verifier: Verifier, situation: str) -> Tensor:
    return verifier.verify(SITUATIONS[situation](), seed=SEED)


@pytest.mark.parametrize(("name", "shown", "hidden"), [(k, *v) for k, v in SHOWN_AND_HIDDEN.items()])
def test_fault_shows_where_it_is_said_to(name: str, shown: str, hidden: str) -> None:
    """Same inputs, same noise: the tokens differ from the base's in one situation, and not in the other."""
    make = VERIFIER_FAULTS[name].make
    assert not torch.equal(tokens_of(make(), shown), tokens_of(ChainVerifier(), shown))
    assert torch.equal(tokens_of(make(), hidden), tokens_of(ChainVerifier(), hidden))


@pytest.mark.parametrize("fault", VERIFIER_FAULTS.values(), ids=VERIFIER_FAULTS)
@pytest.mark.parametrize("situation", ["no drafts", "ragged", "mixed", "seeded", "lookup", "one law"])
def test_fault_emits_legal_tokens(fault: Fault, situation: str) -> None:
    """One to K + 1 tokens, nothing behind the first padding: faults are wrong laws, not broken shapes."""
    batch = SITUATIONS[situation]()
    emitted = fault.make().verify(batch, seed=SEED)
    there = emitted != NO_TOKEN
    assert emitted.shape == (batch.shape[0], batch.shape[1] + 1)
    assert ((emitted >= NO_TOKEN) & (emitted < batch.shape[2])).all()
    assert there[:, 0].all()
    assert (there[:, 1:] <= there[:, :-1]).all()
    assert (there.sum(1) <= batch.num_draft_tokens + 1).all()


def test_number_zero_accepts_an_impossible_draft() -> None:
    batch = SITUATIONS["zeros"]()
    batch = replace(batch, draft_tokens=torch.zeros_like(batch.draft_tokens))
    lowest = torch.zeros(batch.draft_tokens.shape, dtype=torch.float64)
    faulty = VERIFIER_FAULTS["u0_accept"].make()
    assert (faulty.verify(batch, seed=SEED, uniforms=lowest)[:, :3] == 0).all()
    assert (ChainVerifier().verify(batch, seed=SEED, uniforms=lowest)[:, 0] != 0).all()
    assert torch.equal(
        faulty.verify(batch, seed=SEED, uniforms=lowest + 2**-53),
        ChainVerifier().verify(batch, seed=SEED, uniforms=lowest + 2**-53),
    )


def test_lengths_of_the_last_step() -> None:
    faulty, ragged = VERIFIER_FAULTS["stale_lengths"].make(), SITUATIONS["ragged"]()
    faulty.verify(ragged, seed=SEED)
    assert torch.equal(faulty.verify(ragged, seed=SEED), ChainVerifier().verify(ragged, seed=SEED))
    lengths = (faulty.verify(SITUATIONS["equal laws"](), seed=SEED) != NO_TOKEN).sum(1) - 1
    assert torch.equal(lengths, ragged.num_draft_tokens)


def test_restarted_streams_repeat_themselves() -> None:
    batch, logits = plain(), plain().target_logits[:, 0]
    params = RowParameters.default(len(logits))
    verifying, drafting = (VERIFIER_FAULTS[name].make() for name in ("restarted_stream", "draft_restarted"))
    for verifier, repeats in [(verifying, True), (ChainVerifier(), False)]:
        assert torch.equal(verifier.verify(batch, seed=1), verifier.verify(batch, seed=2)) == repeats
    for verifier, repeats in [(drafting, True), (ChainVerifier(), False)]:
        drafts = [verifier.draft(logits, params, position=1, seed=seed) for seed in (1, 2)]
        assert torch.equal(*drafts) == repeats


def test_drafters_that_draw_from_another_law() -> None:
    logits, params = plain().target_logits[:, 0], RowParameters.default(len(plain().target_logits))
    drafts = VERIFIER_FAULTS["argmax_draft"].make().draft(logits, params, position=0, seed=SEED)
    assert torch.equal(drafts, logits.argmax(-1))
    coarse = VERIFIER_FAULTS["draft_bf16"].make()
    law = torch.softmax(logits.to(torch.bfloat16).double(), -1)
    torch.testing.assert_close(coarse.drafting_law(logits, params), law, rtol=1e-12, atol=0)
    assert (law - ChainVerifier().drafting_law(logits, params)).abs().max() > 1e-4
