"""Each way to break a batch is refused with one message that names row and position."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tokenlaw.spec.batch_checks import check_batch
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.row_laws import RowParameters

NAN, INF = float("nan"), float("inf")
ROWS, DRAFTS, VOCABULARY = 3, 2, 4


def good_batch() -> VerifyBatch:
    """Three rows with 2, 1 and 0 drafts; what nobody reads is filled with nonsense."""
    target = torch.zeros(ROWS, DRAFTS + 1, VOCABULARY)
    target[0, 1, 2] = -INF
    target[1, 2], target[2, 1:] = NAN, -INF
    draft = torch.zeros(ROWS, DRAFTS, VOCABULARY)
    draft[1, 1], draft[2] = INF, NAN
    return VerifyBatch(
        draft_tokens=torch.tensor([[0, 3], [1, 99], [-1, -1]]),
        num_draft_tokens=torch.tensor([2, 1, 0]),
        target_logits=target,
        draft_logits=draft,
        params=RowParameters.default(ROWS),
    )


def put(name: str, place: tuple[int, ...], value: float) -> Callable[[VerifyBatch], VerifyBatch]:
    """Changes one number of a tensor of the batch, or of its parameters."""

    def change(batch: VerifyBatch) -> VerifyBatch:
        owner: Any = batch.params if hasattr(batch.params, name) else batch
        tensor: Tensor = getattr(owner, name).clone()
        tensor[place] = value
        changed = replace(owner, **{name: tensor})
        return replace(batch, params=changed) if owner is batch.params else changed

    return change


def swap(name: str, made: Callable[[Tensor], Tensor]) -> Callable[[VerifyBatch], VerifyBatch]:
    """Replaces a whole tensor of the batch, or of its parameters."""

    def change(batch: VerifyBatch) -> VerifyBatch:
        owner: Any = batch.params if hasattr(batch.params, name) else batch
        changed = replace(owner, **{name: made(getattr(owner, name))})
        return replace(batch, params=changed) if owner is batch.params else changed

    return change


WRONG_VALUES = [
    (put("draft_tokens", (0, 1), 4), "row 0, draft 1: token 4 is outside 0 .. 3"),
    (put("draft_tokens", (1, 0), -1), "row 1, draft 0: token -1 is outside 0 .. 3"),
    (put("num_draft_tokens", (1,), 3), "row 1 has num_draft_tokens 3, outside 0 .. 2"),
    (put("num_draft_tokens", (2,), -1), "row 2 has num_draft_tokens -1, outside 0 .. 2"),
    (
        put("target_logits", (0, 2, 3), NAN),
        "target_logits, row 0, position 2, token 3: nan is no logit; one is finite, or minus infinity if the "
        "token is impossible",
    ),
    (
        put("target_logits", (2, 0, 1), INF),
        "target_logits, row 2, position 0, token 1: inf is no logit; one is finite, or minus infinity if the "
        "token is impossible",
    ),
    (
        put("draft_logits", (1, 0, 0), NAN),
        "draft_logits, row 1, position 0, token 0: nan is no logit; one is finite, or minus infinity if the "
        "token is impossible",
    ),
    (
        put("target_logits", (1, 1), -INF),
        "target_logits, row 1, position 1: no token is possible",
    ),
    (
        put("draft_logits", (0, 1), -INF),
        "draft_logits, row 0, position 1: no token is possible",
    ),
    (put("temperature", (1,), -0.5), "row 1 has the temperature -0.5; a temperature is finite, 0 or more"),
    (put("temperature", (2,), NAN), "row 2 has the temperature nan; a temperature is finite, 0 or more"),
    (put("temperature", (0,), INF), "row 0 has the temperature inf; a temperature is finite, 0 or more"),
    (put("top_k", (1,), -1), "row 1 has the top_k -1; a top_k is 0, which keeps every token, or more"),
    (put("top_p", (1,), 0.0), "row 1 has the top_p 0.0; a top_p is above 0, at most 1"),
    (put("top_p", (2,), 1.5), "row 2 has the top_p 1.5; a top_p is above 0, at most 1"),
    (put("top_p", (2,), NAN), "row 2 has the top_p nan; a top_p is above 0, at most 1"),
    (put("min_p", (0,), -0.1), "row 0 has the min_p -0.1; a min_p is between 0 and 1"),
    (put("min_p", (0,), NAN), "row 0 has the min_p nan; a min_p is between 0 and 1"),
]

WRONG_SHAPES = [
    ("draft_tokens", lambda one: one[:, :1], "[3, 2]", "[3, 1]"),
    ("draft_tokens", lambda one: one[:2], "[3, 2]", "[2, 2]"),
    ("num_draft_tokens", lambda one: one[:2], "[3]", "[2]"),
    ("num_draft_tokens", lambda one: one[:, None], "[3]", "[3, 1]"),
    ("draft_logits", lambda one: one[:, :, :3], "[3, 2, 4]", "[3, 2, 3]"),
    ("draft_logits", lambda one: one[:, :1], "[3, 2, 4]", "[3, 1, 4]"),
    ("temperature", lambda one: one[:2], "[3]", "[2]"),
    ("top_k", lambda one: one[:1], "[3]", "[1]"),
    ("top_p", lambda one: one[:, None], "[3]", "[3, 1]"),
    ("min_p", lambda one: one[0], "[3]", "[]"),
    ("seeds", lambda _: torch.arange(4), "[3]", "[4]"),
]

WRONG_TYPES = [
    ("draft_tokens", torch.int32, "draft_tokens must be int64, but is int32"),
    ("num_draft_tokens", torch.float32, "num_draft_tokens must be int64, but is float32"),
    (
        "target_logits",
        torch.int64,
        "target_logits must be float64, float32, bfloat16 or float16, but is int64",
    ),
    ("draft_logits", torch.int64, "draft_logits must be float64, float32, bfloat16 or float16, but is int64"),
    ("temperature", torch.float32, "params.temperature must be float64, but is float32"),
    ("top_k", torch.int32, "params.top_k must be int64, but is int32"),
    ("top_p", torch.float32, "params.top_p must be float64, but is float32"),
    ("min_p", torch.float16, "params.min_p must be float64, but is float16"),
]


def refusal(batch: VerifyBatch) -> tuple[type[Exception], str]:
    with pytest.raises((TypeError, ValueError)) as caught:
        check_batch(batch)
    return caught.type, str(caught.value)


def test_a_good_batch_passes() -> None:
    check_batch(good_batch())
    check_batch(replace(good_batch(), draft_logits=None))


def test_a_batch_without_drafts_passes() -> None:
    empty = torch.zeros(ROWS, 0)
    batch = VerifyBatch(
        draft_tokens=empty.to(torch.int64),
        num_draft_tokens=torch.zeros(ROWS, dtype=torch.int64),
        target_logits=torch.zeros(ROWS, 1, VOCABULARY),
        draft_logits=torch.zeros(ROWS, 0, VOCABULARY),
        params=RowParameters.default(ROWS),
    )
    check_batch(batch)


@pytest.mark.parametrize(("change", "message"), WRONG_VALUES, ids=[message for _, message in WRONG_VALUES])
def test_a_wrong_value_is_refused(change: Callable[[VerifyBatch], VerifyBatch], message: str) -> None:
    assert refusal(change(good_batch())) == (ValueError, message)


@pytest.mark.parametrize(("name", "made", "wanted", "found"), WRONG_SHAPES)
def test_a_wrong_shape_is_refused(
    name: str, made: Callable[[Tensor], Tensor], wanted: str, found: str
) -> None:
    kind, message = refusal(swap(name, made)(good_batch()))
    assert kind is ValueError
    assert f"{name} must have the shape {wanted}, from target_logits [3, 3, 4], but has {found}" in message


@pytest.mark.parametrize("shape", [(3, 4), (3, 0, 4), (3, 3, 0)])
def test_target_logits_give_the_sizes(shape: tuple[int, ...]) -> None:
    kind, message = refusal(replace(good_batch(), target_logits=torch.zeros(shape)))
    assert kind is ValueError
    assert message == (
        "target_logits must have the shape [B, K + 1, V] with at least one position and one token, "
        f"but has {list(shape)}"
    )


@pytest.mark.parametrize(("name", "dtype", "message"), WRONG_TYPES)
def test_a_wrong_type_is_refused(name: str, dtype: torch.dtype, message: str) -> None:
    assert refusal(swap(name, lambda one: one.nan_to_num().to(dtype))(good_batch())) == (TypeError, message)


def test_seeds_are_int64() -> None:
    params = replace(RowParameters.default(ROWS), seeds=torch.zeros(ROWS))
    assert refusal(replace(good_batch(), params=params)) == (
        TypeError,
        "params.seeds must be int64, but is float32",
    )


def test_tensors_are_on_one_device() -> None:
    elsewhere = torch.zeros(ROWS, dtype=torch.int64, device="meta")
    assert refusal(replace(good_batch(), num_draft_tokens=elsewhere)) == (
        ValueError,
        "num_draft_tokens is on meta, but target_logits on cpu",
    )


def shared_batch(length: int) -> VerifyBatch:
    """A million rows with one table of logits, position 2 of which holds a NaN; the last row reads it."""
    rows = 1_000_000
    table = torch.zeros(1, DRAFTS + 1, VOCABULARY)
    table[0, 2, 1] = NAN
    lengths = torch.ones(rows, dtype=torch.int64)
    lengths[-1] = length
    return VerifyBatch(
        draft_tokens=torch.zeros(1, DRAFTS, dtype=torch.int64).expand(rows, -1),
        num_draft_tokens=lengths,
        target_logits=table.expand(rows, -1, -1),
        draft_logits=None,
        params=RowParameters.default(rows),
    )


def test_rows_that_share_memory_are_told_apart() -> None:
    check_batch(shared_batch(1))
    _, message = refusal(shared_batch(2))
    assert message.startswith("target_logits, row 999999, position 2, token 1: nan is no logit")


def test_a_copy_of_a_batch_that_was_looked_at_is_looked_at_again() -> None:
    batch = good_batch()
    check_batch(batch)
    check_batch(batch)
    changed = replace(batch, num_draft_tokens=batch.num_draft_tokens + 9)
    assert refusal(changed) == (ValueError, "row 0 has num_draft_tokens 11, outside 0 .. 2")
