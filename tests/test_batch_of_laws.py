"""Batches from probabilities: logits that give these laws, and a refusal of what is no law."""

from dataclasses import replace

import pytest
import torch

import tokenlaw
from tokenlaw.impl.speculative import ChainVerifier
from tokenlaw.spec.generation_contracts import as_logits
from tokenlaw.spec.row_laws import RowParameters

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((1, 2, 0), NAN, "draft probabilities, row 1, position 2, token 0: nan is no probability"),
        ((0, 1, 3), -0.25, "draft probabilities, row 0, position 1, token 3: -0.25 is no probability"),
        ((1, 0, 0), INF, "draft probabilities, row 1, position 0, token 0: inf is no probability"),
        ((1, 1, 2), 0.5, "draft probabilities, row 1, position 1: the law sums to 1.25 instead of 1"),
    ],
)
def test_probabilities_that_are_none_are_refused(place: tuple[int, ...], value: float, message: str) -> None:
    laws = torch.full((2, 3, 4), 0.25)
    torch.testing.assert_close(as_logits(laws, "draft probabilities").exp(), laws.double())
    laws[place] = value
    with pytest.raises(ValueError, match="draft probabilities") as caught:
        as_logits(laws, "draft probabilities")
    assert str(caught.value) == message


def test_a_batch_of_laws_has_these_laws() -> None:
    target = torch.tensor([[[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]]]).expand(2, -1, -1)
    batch = tokenlaw.batch_of_laws(torch.tensor([[1], [0]]), target, target[:, :1])
    torch.testing.assert_close(batch.target_probs, target.double())
    torch.testing.assert_close(batch.draft_probs, target[:, :1].double())
    assert batch.num_draft_tokens.tolist() == [1, 1]
    emitted = ChainVerifier().verify(batch, seed=3)
    assert emitted[:, 0].tolist() == [1, 0]
    looked_up = tokenlaw.batch_of_laws(batch.draft_tokens, target, num_draft_tokens=torch.tensor([0, 1]))
    assert looked_up.draft_logits is None
    greedy = replace(RowParameters.default(2), temperature=torch.zeros(2, dtype=torch.float64))
    cold = tokenlaw.batch_of_laws(batch.draft_tokens, target, params=greedy)
    assert cold.target_probs[0, 1].tolist() == [0, 0, 1]


def test_a_batch_of_what_is_no_law_is_refused() -> None:
    laws = torch.full((1, 2, 2), 0.5)
    with pytest.raises(
        ValueError, match=r"^target law, row 0, position 1: the law sums to 0.75 instead of 1"
    ):
        tokenlaw.batch_of_laws(torch.tensor([[0]]), laws * torch.tensor([[[1.0], [0.75]]]))
    negative = laws.clone()
    negative[0, 1] = torch.tensor([1.5, -0.5])
    with pytest.raises(ValueError, match=r"^target law, row 0, position 1, token 1: -0.5 is no probability"):
        tokenlaw.batch_of_laws(torch.tensor([[0]]), negative)
    with pytest.raises(ValueError, match="draft must have the shape"):
        tokenlaw.batch_of_laws(torch.tensor([[0]]), laws, laws)
    with pytest.raises(ValueError, match=r"row 0 has num_draft_tokens 2, outside 0 \.\. 1"):
        tokenlaw.batch_of_laws(torch.tensor([[0]]), laws, num_draft_tokens=torch.tensor([2]))
