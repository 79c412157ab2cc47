"""Reference verifiers refuse damaged batches, numbers and trees as `check_batch` does; empty batches pass."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tokenlaw.impl.speculative import VERIFIERS, ChainVerifier, TopKTreeVerifier, TreeVerifier
from tokenlaw.spec.generation_contracts import TreeBatch, VerifyBatch
from tokenlaw.spec.row_laws import RowParameters

NAN = float("nan")
FLOATS = "float64, float32, bfloat16 or float16"
NO_LOGIT = "nan is no logit; one is finite, or minus infinity if the token is impossible"


def some_batch(rows: int = 2, drafts: int = 2, vocabulary: int = 3, *, drawn: bool = True) -> VerifyBatch:
    """Random logits, and token 0 for every draft."""
    random = torch.Generator().manual_seed(0)
    return VerifyBatch(
        draft_tokens=torch.zeros(rows, drafts, dtype=torch.int64),
        num_draft_tokens=torch.full((rows,), drafts),
        target_logits=torch.randn(rows, drafts + 1, vocabulary, generator=random),
        draft_logits=torch.randn(rows, drafts, vocabulary, generator=random) if drawn else None,
        params=RowParameters.default(rows),
    )


def put(tensor: Tensor, place: tuple[int, ...], value: float) -> Tensor:
    changed = tensor.clone()
    changed[place] = value
    return changed


GOOD = some_batch()
assert GOOD.draft_logits is not None
DAMAGED: list[tuple[dict[str, Any], str]] = [
    ({"draft_tokens": put(GOOD.draft_tokens, (1, 1), 7)}, "row 1, draft 1: token 7 is outside 0 .. 2"),
    ({"draft_tokens": put(GOOD.draft_tokens, (1, 0), -1)}, "row 1, draft 0: token -1 is outside 0 .. 2"),
    ({"draft_tokens": GOOD.draft_tokens.int()}, "draft_tokens must be int64, but is int32"),
    (
        {"draft_tokens": GOOD.draft_tokens[:, :1]},
        "draft_tokens must have the shape [2, 2], from target_logits",
    ),
    ({"num_draft_tokens": torch.tensor([2, 3])}, "row 1 has num_draft_tokens 3, outside 0 .. 2"),
    (
        {"target_logits": put(GOOD.target_logits, (1, 2, 1), NAN)},
        f"target_logits, row 1, position 2, token 1: {NO_LOGIT}",
    ),
    (
        {"draft_logits": put(GOOD.draft_logits, (0, 1, 2), NAN)},
        f"draft_logits, row 0, position 1, token 2: {NO_LOGIT}",
    ),
    (
        {"params": replace(GOOD.params, temperature=torch.tensor([1.0, -1.0]).double())},
        "row 1 has the temperature -1.0; a temperature is finite, 0 or more",
    ),
]


@pytest.mark.parametrize("name", VERIFIERS)
@pytest.mark.parametrize(("changes", "message"), DAMAGED)
def test_every_verifier_refuses_a_damaged_batch(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        VERIFIERS[name]().verify(replace(GOOD, **changes), seed=0)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("name", VERIFIERS)
def test_every_verifier_refuses_what_is_no_batch(name: str) -> None:
    nothing: Any = None
    with pytest.raises(TypeError, match=r"^a batch must be a VerifyBatch, but is None$"):
        VERIFIERS[name]().verify(nothing, seed=0)


@pytest.mark.parametrize("name", VERIFIERS)
@pytest.mark.parametrize("drafts", [0, 2])
@pytest.mark.parametrize("drawn", [True, False])
def test_an_empty_batch_gives_no_tokens(name: str, drafts: int, drawn: bool) -> None:
    emitted = VERIFIERS[name]().verify(some_batch(0, drafts, drawn=drawn), seed=0)
    assert (emitted.dtype, emitted.shape) == (torch.int64, (0, drafts + 1))


@pytest.mark.parametrize("name", VERIFIERS)
def test_logits_of_a_model_may_keep_gradients(name: str) -> None:
    cold = replace(GOOD.params, temperature=torch.tensor([0.0, 0.5]).double())
    batch = replace(GOOD, params=cold)
    learned = replace(batch, target_logits=batch.target_logits.clone().requires_grad_())
    emitted = VERIFIERS[name]().verify(learned, seed=0)
    assert torch.equal(emitted, VERIFIERS[name]().verify(batch, seed=0))
    assert not emitted.requires_grad


@pytest.mark.parametrize("name", [name for name in VERIFIERS if name != "greedy"])
@pytest.mark.parametrize(("seed", "kind"), [(1.5, "a float"), ("x", "a str"), (None, "None")])
def test_a_seed_is_a_whole_number(name: str, seed: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"^seed must be a whole number, but is {kind}$"):
        VERIFIERS[name]().verify(GOOD, seed=seed)


GIVEN: list[tuple[dict[str, Any], str]] = [
    ({"uniforms": [[0.5] * 2] * 2}, "uniforms must be a tensor of float64, but is a list"),
    ({"uniforms": torch.zeros(2, 2)}, "uniforms must be float64, but is float32"),
    (
        {"uniforms": torch.zeros(2, 1).double()},
        "uniforms must have the shape [2, 2], from target_logits [2, 3, 3]",
    ),
    (
        {"uniforms": torch.tensor([[0.5, 0.5], [0.5, NAN]]).double()},
        "uniforms, row 1, position 1: nan; such a number is 0 or more, below 1",
    ),
    (
        {"uniforms": torch.tensor([[0.5, 1.5], [0.5, 0.5]]).double()},
        "uniforms, row 0, position 1: 1.5; such a number is 0 or more, below 1",
    ),
    (
        {"uniforms": torch.tensor([[-0.5, 0.5], [0.5, 0.5]]).double()},
        "uniforms, row 0, position 0: -0.5; such a number is 0 or more, below 1",
    ),
    (
        {"noise": torch.ones(2, 1, 3).double()},
        "noise must have the shape [2, 3, 3], from target_logits [2, 3, 3]",
    ),
    (
        {"noise": torch.zeros(2, 3, 3).double()},
        "noise, row 0, position 0, token 0: 0.0; such a number is above 0",
    ),
    (
        {"noise": torch.full((2, 3, 3), NAN).double()},
        "noise, row 0, position 0, token 0: nan; such a number is",
    ),
]


@pytest.mark.parametrize("name", ["chain", "block", "one-hot"])
@pytest.mark.parametrize(("given", "message"), GIVEN)
def test_given_random_numbers_are_looked_at(name: str, given: dict[str, Any], message: str) -> None:
    verifier: Any = VERIFIERS[name]()
    with pytest.raises((TypeError, ValueError)) as caught:
        verifier.verify(GOOD, seed=0, **given)
    assert str(caught.value).startswith(message)


def some_tree() -> TreeBatch:
    """A root with two children, the first of which has one more; the leaves' draft laws are nonsense."""
    logits = torch.zeros(2, 4, 3)
    drafts = put(logits, (1, 2, 0), NAN)
    tokens = torch.tensor([[0, 1, 2]] * 2)
    return TreeBatch(tokens, (-1, -1, 0), logits, drafts, True, RowParameters.default(2))


TREES: list[tuple[Callable[[TreeBatch], Any], str]] = [
    (lambda tree: None, "a batch must be a TreeBatch, but is None"),
    (lambda tree: GOOD, "a batch must be a TreeBatch, but is a VerifyBatch"),
    (
        lambda tree: replace(tree, parents=(-1, 0)),
        "parents must be a tuple of 3 whole numbers, from target_logits",
    ),
    (
        lambda tree: replace(tree, parents=(-1, "x", 0)),
        "parents must be a tuple of 3 whole numbers, from target",
    ),
    (lambda tree: replace(tree, parents=(-1, 1, 0)), "the parent of node 1 must be one of -1 .. 0, but is 1"),
    (lambda tree: replace(tree, tokens=tree.tokens + 1), "row 0, node 2: token 3 is outside 0 .. 2"),
    (
        lambda tree: replace(tree, tokens=tree.tokens[:1]),
        "tokens must have the shape [2, 3], from target_logits",
    ),
    (
        lambda tree: replace(tree, target_logits=put(tree.target_logits, (1, 3, 2), NAN)),
        f"target_logits, row 1, position 3, token 2: {NO_LOGIT}",
    ),
    (
        lambda tree: replace(tree, draft_logits=put(tree.target_logits, (1, 1, 2), NAN)),
        f"draft_logits, row 1, position 1, token 2: {NO_LOGIT}",
    ),
]


@pytest.mark.parametrize("verifier", [TreeVerifier(), TopKTreeVerifier()], ids=["tree", "top-k tree"])
@pytest.mark.parametrize(("change", "message"), TREES)
def test_a_damaged_tree_is_refused(
    verifier: TreeVerifier, change: Callable[[TreeBatch], Any], message: str
) -> None:
    assert verifier.verify_tree(some_tree(), seed=0).shape == (2, 3)
    with pytest.raises((TypeError, ValueError)) as caught:
        verifier.verify_tree(change(some_tree()), seed=0)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([[0.5, 0.5]], f"logits must be a tensor of {FLOATS}, but is a list"),
        (torch.zeros(3), "logits must have the shape [B, V] with at least one token, but has [3]"),
        (torch.zeros(3, 2), "params.temperature must have the shape [3], from logits [3, 2], but has [2]"),
        (torch.tensor([[0.0, 0.0], [0.0, NAN]]), f"logits, row 1, position 0, token 1: {NO_LOGIT}"),
    ],
)
def test_a_drafter_refuses_logits_that_are_none(logits: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        ChainVerifier().draft(logits, RowParameters.default(2), position=0, seed=0)
    assert str(caught.value).startswith(message)
