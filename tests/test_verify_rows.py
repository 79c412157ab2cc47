"""What adapters of verifiers share, on functions that stand for a package."""

from collections.abc import Callable, Sequence

import pytest
import torch

from support.verifier_requests import REQUESTS, batch_of, drawn_from_laws, smallest_p_value
from tokenlaw.impl.adapters.verify_rows import RowByRow, VerifyRow, draft_laws, packed, rows, rows_by_length
from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.speculation import chain_verification
from tokenlaw.spec.verifiers import as_verifier
from tokenlaw.stats.guarded import Guarded


def textbook(row: VerifyRow) -> Sequence[int]:
    """Chain rejection sampling of one row with torch's global random numbers."""
    for place, token in enumerate(row.drafts.tolist()):
        if torch.rand(()) * row.draft[place, token] >= row.target[place, token]:
            weights = (row.target[place] - row.draft[place]).clamp(min=0)
            return [*row.drafts[:place].tolist(), int(torch.multinomial(weights, 1))]
    return [*row.drafts.tolist(), int(torch.multinomial(row.target[-1], 1))]


def lenient(row: VerifyRow) -> Sequence[int]:
    """Takes the draft's probabilities for half of what they are."""
    return textbook(VerifyRow(row.drafts, row.target, row.draft / 2))


def small_batch(draft_logits: torch.Tensor | None) -> VerifyBatch:
    """Two rows, the second without drafts and with rubbish behind them."""
    logits = torch.zeros(2, 3, 4, dtype=torch.float64)
    drafts, lengths = torch.tensor([[3, 1], [-1, 99]]), torch.tensor([2, 0])
    return VerifyBatch(drafts, lengths, logits, draft_logits, RowParameters.default(2))


@pytest.mark.parametrize(("step", "right"), [(textbook, True), (lenient, False)])
def test_rows_reach_the_function_as_the_contract_means_them(
    step: Callable[[VerifyRow], Sequence[int]], right: bool
) -> None:
    """Ragged, greedy and truncated rows, 12,000 in all; the wrong step shows that the comparison can fail.

    False alarm: below 7e-6, for a threshold of 1e-6. Power: the wrong step accepts twice as often; 1,700 rows
    see it with probability above 0.999.
    """
    batch = batch_of(REQUESTS, 12_000, drawn_from_laws(3))
    p_value = smallest_p_value(RowByRow(step), chain_verification, batch, seed=5)
    assert (p_value > 1e-6) == right


def test_rows_are_cut_to_their_drafts() -> None:
    first, second = rows(small_batch(torch.zeros(2, 2, 4)))
    assert (first.drafts.tolist(), first.target.shape, first.draft.shape) == ([3, 1], (3, 4), (2, 4))
    assert (second.drafts.tolist(), second.target.shape, second.draft.shape) == ([], (1, 4), (0, 4))


def test_rows_are_grouped_by_their_number_of_drafts() -> None:
    groups = [(length, chosen.tolist()) for length, chosen in rows_by_length(small_batch(None))]
    assert groups == [(0, [1]), (2, [0])]


def test_drafts_that_were_not_drawn_have_one_hot_laws() -> None:
    laws = draft_laws(small_batch(None))
    assert laws[0].argmax(-1).tolist() == [3, 1]
    assert laws.sum(-1).eq(1).all()


def test_seeds_are_used_and_the_global_random_numbers_put_back() -> None:
    verifier, batch = RowByRow(textbook), batch_of(REQUESTS, 70, drawn_from_laws(3))
    before = torch.get_rng_state()
    first, second, other = (verifier.verify(batch, seed=seed) for seed in (-1, -1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_calls_of_slow_functions_stay_short() -> None:
    assert Guarded(as_verifier(RowByRow(textbook), "here")).at_most(100_000) == RowByRow.most_rows


def test_too_many_tokens_are_left_for_the_harness_to_see() -> None:
    batch = small_batch(None)
    assert packed([[1, 2, 3], [0]], batch).tolist() == [[1, 2, 3], [0, NO_TOKEN, NO_TOKEN]]
    assert packed([[1, 2, 3, 0], []], batch).tolist() == [[1, 2, 3, 0], [NO_TOKEN] * 4]
