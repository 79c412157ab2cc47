"""What mutation testing of batches, of trees of drafts, and of what drafters get, found untested."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from tokenlaw.spec import tensor_checks
from tokenlaw.spec.batch_checks import check_batch, check_drafting, check_tree_batch
from tokenlaw.spec.generation_contracts import NO_TOKEN, TreeBatch, VerifyBatch, as_logits
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.tensor_checks import kind_of, require_device, require_tensor

NAN = float("nan")


@pytest.mark.parametrize(
    ("parents", "depth"),
    [((), 0), ((-1,), 1), ((-1, -1), 1), ((-1, 0, 1), 3), ((-1, 0, -1, 2, 3), 3), ((-1, 0, 0), 2)],
)
def test_the_depth_of_a_tree_is_its_longest_path(parents: tuple[int, ...], depth: int) -> None:
    nodes = len(parents)
    logits = torch.zeros(2, nodes + 1, 3)
    tokens = torch.zeros(2, nodes, dtype=torch.int64)
    batch = TreeBatch(tokens, parents, logits, None, False, RowParameters.default(2))
    assert batch.depth == depth
    assert batch.draft_probs is None


def test_rows_of_a_batch_keep_what_belongs_to_them() -> None:
    generator = torch.Generator().manual_seed(1)
    target, draft = (torch.randn(3, size, 4, generator=generator) for size in (3, 2))
    tokens, lengths = torch.arange(6).reshape(3, 2) % 4, torch.tensor([0, 1, 2])
    params = RowParameters.default(3)
    for drafts in (draft, None):
        batch = VerifyBatch(tokens, lengths, target, drafts, params)
        chosen = batch.rows(torch.tensor([2, 0]))
        assert (batch.shape, chosen.shape) == ((3, 2, 4), (2, 2, 4))
        assert chosen.num_draft_tokens.tolist() == [2, 0]
        assert torch.equal(chosen.draft_tokens, tokens[[2, 0]])
        assert torch.equal(chosen.target_probs, batch.target_probs[[2, 0]])
        assert (chosen.draft_probs is None) == (drafts is None)


def test_a_single_law_has_logits_too() -> None:
    assert as_logits(torch.tensor([0.25, 0.75]), "law").exp().tolist() == pytest.approx([0.25, 0.75])
    for shape in ((1, 1), (0, 3), (2, 0, 3)):  # one token; no law at all
        assert as_logits(torch.ones(shape), "law").shape == shape
    for nothing in (torch.tensor(1.0), torch.empty(2, 0)):
        with pytest.raises(ValueError, match="law must have tokens in its last dimension"):
            as_logits(nothing, "law")


def test_the_padding_behind_the_last_token_never_changes() -> None:
    """Verifiers write the number itself."""
    assert NO_TOKEN == -1


def tree(**changes: Any) -> TreeBatch:
    """A root with one child, which has another one."""
    logits, tokens = torch.zeros(2, 3, 4), torch.zeros(2, 2, dtype=torch.int64)
    drafts = torch.zeros(2, 3, 4)
    drafts[:, 2] = NAN  # of a leaf
    return replace(TreeBatch(tokens, (-1, 0), logits, drafts, True, RowParameters.default(2)), **changes)


def damaged(entry: int) -> torch.Tensor:
    logits = torch.zeros(2, 3, 4)
    logits[1, entry, 3] = NAN
    return logits


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (tree(parents=[-1, 0]), "parents must be a tuple of 2 whole numbers"),
        (tree(parents=(-1, 0.0)), "parents must be a tuple of 2 whole numbers"),
        (tree(parents=(-1, 0, 0)), "parents must be a tuple of 2 whole numbers"),
        (tree(parents=(-1,)), "parents must be a tuple of 2 whole numbers"),
        (tree(tokens=torch.zeros(2, 3, dtype=torch.int64)), "tokens must have the shape [2, 2]"),
        (tree(tokens=torch.tensor([[0, 0], [4, 0]])), "row 1, node 0: token 4 is outside 0 .. 3"),
        (tree(draft_logits=torch.zeros(2, 2, 4)), "draft_logits must have the shape [2, 3, 4]"),
        (tree(draft_logits=damaged(0)), "draft_logits, row 1, position 0, token 3: nan is no logit"),
        (tree(draft_logits=damaged(1)), "draft_logits, row 1, position 1, token 3: nan is no logit"),
        (tree(target_logits=damaged(2)), "target_logits, row 1, position 2, token 3: nan is no logit"),
        (tree(params=RowParameters.default(3)), "params.temperature must have the shape [2]"),
    ],
)
def test_a_tree_that_breaks_its_contract_is_refused(batch: TreeBatch, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        check_tree_batch(batch)
    assert str(caught.value).startswith(message)


def test_a_tree_may_be_drawn_or_not_and_its_leaves_have_no_draft_law() -> None:
    check_tree_batch(tree())
    check_tree_batch(tree(draft_logits=None))
    check_tree_batch(tree(draft_logits=damaged(2)))


@pytest.mark.parametrize("shape", [(2,), (2, 0), (2, 1, 3)])
def test_a_drafter_gets_one_position_of_each_row(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"logits must have the shape \[B, V\] with at least one token"):
        check_drafting(torch.zeros(shape), RowParameters.default(2))
    check_drafting(torch.zeros(2, 1), RowParameters.default(2))
    check_drafting(torch.zeros(0, 3), RowParameters.default(0))


def infinite() -> torch.Tensor:
    logits = torch.zeros(4, 3, 5)
    logits[3, 2, 4] = torch.inf
    return logits


def test_of_several_faults_the_first_row_and_token_is_named() -> None:
    tokens, lengths = torch.zeros(4, 2, dtype=torch.int64), torch.tensor([2, 2, 2, 2])
    good = VerifyBatch(tokens, lengths, torch.zeros(4, 3, 5), None, RowParameters.default(4))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"num_draft_tokens": torch.tensor([0, 3, -1, 2])}, "row 1 has num_draft_tokens 3, outside 0 .. 2"),
        ({"target_logits": infinite()}, "target_logits, row 3, position 2, token 4: inf is no logit"),
        ({"draft_tokens": tokens + 9}, "row 0, draft 0: token 9 is outside 0 .. 4"),
        ({"draft_tokens": tokens - 1}, "row 0, draft 0: token -1 is outside 0 .. 4"),
        ({"draft_tokens": tokens + torch.tensor([[0], [9], [-3], [0]])}, "row 1, draft 0: token 9"),
        (
            {"params": replace(good.params, top_p=torch.tensor([1.0, 0.0, 2.0, 1.0]).double())},
            "row 1 has the top_p 0.0",
        ),
        (
            {"params": replace(good.params, temperature=torch.tensor([-1.0]).double().expand(4))},
            "row 0 has the temperature -1.0",
        ),
    ]
    check_batch(good)
    for changes, message in wrong:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            check_batch(replace(good, **changes))


def test_rows_are_looked_at_apart_unless_they_share_their_memory() -> None:
    """What positions or tokens share, or where rows lie next to each other, says nothing about rows."""
    alike, apart = torch.zeros(3, 2, 4), torch.zeros(4, 2, 3).permute(2, 1, 0)
    alike[2], apart[2] = NAN, NAN
    tokens, lengths = torch.zeros(3, 1, dtype=torch.int64), torch.ones(3, dtype=torch.int64)
    for logits in (alike[:, :1].expand(3, 2, 4), alike[:, :, :1].expand(3, 2, 4), apart):
        batch = VerifyBatch(tokens, lengths, logits, None, RowParameters.default(3))
        with pytest.raises(ValueError, match=r"^target_logits, row 2, position 0, token 0: nan is no logit"):
            check_batch(batch)
    shared = VerifyBatch(tokens, lengths, alike[2:].expand(3, 2, 4), None, RowParameters.default(3))
    with pytest.raises(ValueError, match=r"^target_logits, row 0, position 0, token 0: nan is no logit"):
        check_batch(shared)


def raising(error: Exception) -> Callable[..., None]:
    def made(*_: object, **__: object) -> None:
        raise error

    return made


@pytest.mark.parametrize("error", [RuntimeError, AssertionError, TypeError])
def test_a_device_that_torch_refuses_is_told_in_one_line(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch raises any of these, for an unknown name, for a missing build, for what is no name."""
    monkeypatch.setattr(tensor_checks.torch, "empty", raising(error("not\n  here")))
    with pytest.raises(ValueError, match=r"^device 'moon' can't be used: not here$"):
        require_device("moon")


def test_what_came_instead_of_a_tensor_is_named_with_a_hint_where_one_helps() -> None:
    assert [kind_of(one) for one in ((), "text", 1.0)] == ["a tuple", "a str", "a float"]
    for found, hint in (((1,), True), ([1], True), (3, False), (None, False)):
        with pytest.raises(TypeError, match="must be a tensor of int64, float64 or float32") as caught:
            require_tensor("it", found, [torch.int64, torch.float64, torch.float32])
        assert str(caught.value).endswith("torch.as_tensor makes one of it") == hint
