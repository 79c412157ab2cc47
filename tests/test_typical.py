"""Typical acceptance: its rule, and how far it is from the target's law, computed exactly."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from tokenlaw.impl.speculative.typical import TypicalAcceptance
from tokenlaw.spec.generation_contracts import APPROXIMATE, NO_TOKEN, Verifier, VerifyBatch, as_logits
from tokenlaw.spec.laws import Tokens, collect
from tokenlaw.spec.models import in_floats, random_table_model
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.sampling import target_only_law
from tokenlaw.spec.speculation import StepOutcome
from tokenlaw.spec.steps import completed_law

TARGET = (0.4, 0.3, 0.2, 0.06, 0.04)
"""Entropy 1.347 nats: the threshold is min(0.09, 0.3 * exp(-1.347)) = 0.078."""

DRAFT = (0.1, 0.2, 0.3, 0.2, 0.2)


def batch_of(drafts: Tensor, laws: Tensor, temperature: float = 1.0) -> VerifyBatch:
    rows = len(drafts)
    params = RowParameters.default(rows)
    return VerifyBatch(
        draft_tokens=drafts,
        num_draft_tokens=torch.full((rows,), drafts.shape[1]),
        target_logits=as_logits(laws, "target law"),
        draft_logits=None,
        params=replace(params, temperature=torch.full_like(params.temperature, temperature)),
    )


def emitted_for_every_draft(verifier: TypicalAcceptance, laws: Tensor) -> dict[Tokens, Tokens]:
    """What follows each sequence of drafts, whose laws are the same everywhere."""
    drafts = torch.tensor(list(product(range(laws.shape[-1]), repeat=len(laws) - 1)))
    emitted = verifier.verify(batch_of(drafts, laws.expand(len(drafts), *laws.shape)), seed=1)
    return {
        tuple(row): tuple(token for token in tokens if token != NO_TOKEN)
        for row, tokens in zip(drafts.tolist(), emitted.tolist(), strict=True)
    }


def test_a_draft_is_accepted_above_the_threshold() -> None:
    laws = torch.tensor([TARGET, TARGET], dtype=torch.float64)
    entropy = -sum(chance * math.log(chance) for chance in TARGET)
    assert min(0.09, 0.3 * math.exp(-entropy)) == pytest.approx(0.078, abs=1e-4)
    assert emitted_for_every_draft(TypicalAcceptance(), laws) == {
        (0,): (0, 0),
        (1,): (1, 0),
        (2,): (2, 0),
        (3,): (0,),
        (4,): (0,),
    }
    # A hard threshold of 0.05 accepts token 3 too, and a threshold of 0 everything.
    assert emitted_for_every_draft(TypicalAcceptance(epsilon=0.05), laws)[(3,)] == (3, 0)
    assert emitted_for_every_draft(TypicalAcceptance(epsilon=0.0), laws)[(4,)] == (4, 0)
    assert emitted_for_every_draft(TypicalAcceptance(delta=0.0), laws)[(4,)] == (4, 0)


def test_the_entropy_lowers_the_threshold_of_flat_laws() -> None:
    """All of 16 equally probable tokens are typical: 0.3 / 16 lies below 1 / 16, and 0.09 above it."""
    flat = torch.full((2, 16), 1 / 16, dtype=torch.float64)
    assert all(len(tokens) == 2 for tokens in emitted_for_every_draft(TypicalAcceptance(), flat).values())
    only_hard = TypicalAcceptance(delta=100.0)
    assert all(len(tokens) == 1 for tokens in emitted_for_every_draft(only_hard, flat).values())


def test_drafts_are_accepted_up_to_the_first_that_is_not_typical() -> None:
    laws = torch.tensor([TARGET] * 3, dtype=torch.float64)
    emitted = emitted_for_every_draft(TypicalAcceptance(), laws)
    assert (emitted[(2, 1)], emitted[(2, 4)], emitted[(4, 1)]) == ((2, 1, 0), (2, 0), (0,))


def test_typical_acceptance_is_not_exact() -> None:
    """The verifier is deterministic, so its law over all drafts is exact; no sampling.

    The first token is 0 where the draft is 0 (0.1) or isn't typical (0.4), 1 with 0.2 and 2 with 0.3; the
    target gives 0.4, 0.3, 0.2, 0.06, 0.04. An accepted draft is followed by token 0. Of two tokens, too
    probable are 00 with 0.26 (exact: 0.16), 10 with 0.2 (0.12) and 20 with 0.3 (0.08): total variation 0.4.
    """
    laws = torch.tensor([TARGET, TARGET], dtype=torch.float64)
    step = collect(
        (StepOutcome(len(emitted) - 1, emitted), DRAFT[draft])
        for (draft,), emitted in emitted_for_every_draft(TypicalAcceptance(), laws).items()
    )
    first = [
        sum(chance for outcome, chance in step.items() if outcome.tokens[0] == token) for token in range(5)
    ]
    assert first == pytest.approx([0.5, 0.2, 0.3, 0.0, 0.0])
    completed = completed_law(step, target=lambda _: TARGET, prompt=(), num_tokens=2)
    wanted = target_only_law(lambda _: TARGET, (), 2)
    deviation = sum(abs(completed.get(tokens, 0.0) - chance) for tokens, chance in wanted.items()) / 2
    assert deviation == pytest.approx(0.4)


def test_the_added_token_can_be_sampled() -> None:
    """After a draft that isn't typical every token comes; a typical draft stays for certain, so not exact.

    4000 draws; the least probable token, 0.04, is missing with probability 0.96^4000 < 1e-70.
    """
    laws = torch.tensor([TARGET, TARGET], dtype=torch.float64).expand(4000, 2, 5)
    batch = batch_of(torch.full((4000, 1), 4), laws)
    emitted = TypicalAcceptance(greedy=False).verify(batch, seed=2)
    assert set(emitted[:, 0].tolist()) == {0, 1, 2, 3, 4}
    assert bool((emitted[:, 1] == NO_TOKEN).all())
    assert torch.equal(emitted, TypicalAcceptance(greedy=False).verify(batch, seed=2))
    # Token 2 is drafted with 0.3 and always stays, though the target gives it 0.2.
    typical = batch_of(torch.full((4000, 1), 2), laws)
    assert bool((TypicalAcceptance(greedy=False).verify(typical, seed=3)[:, 0] == 2).all())


def test_greedy_requests_get_their_greedy_tokens() -> None:
    model = in_floats(random_table_model(4, 0, seed=3))
    laws = torch.tensor([model(())] * 3, dtype=torch.float64)
    best = max(range(4), key=lambda token: model(())[token])
    drafts = torch.tensor(list(product(range(4), repeat=2)))
    emitted = TypicalAcceptance().verify(batch_of(drafts, laws.expand(16, 3, 4), temperature=0.0), seed=4)
    assert set(emitted.flatten().tolist()) == {best, NO_TOKEN}
    matches = (drafts == best).long().cumprod(1).sum(1)
    assert torch.equal((emitted != NO_TOKEN).sum(1), matches + 1)


def test_it_claims_no_more_than_it_is() -> None:
    assert TypicalAcceptance.claims == APPROXIMATE
    assert isinstance(TypicalAcceptance(), Verifier)
