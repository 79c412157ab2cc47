"""What is no batch, and what is no part of one, is refused with its name and what was expected."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import tokenlaw
from tokenlaw.spec.batch_checks import check_batch
from tokenlaw.spec.generation_contracts import VerifyBatch, as_logits
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.tensor_checks import require_device

NAN = float("nan")
DRAFTS = torch.tensor([[1]])
LAWS = torch.full((1, 2, 2), 0.5)
FLOATS = "float64, float32, bfloat16 or float16"
SHAPE = "target must have the shape [B, K + 1, V] with at least one position and one token, but has"

WRONG_ARGUMENTS: list[tuple[str, Any, str]] = [
    (
        "draft_tokens",
        [[1]],
        "draft_tokens must be a tensor of int64, but is a list; torch.as_tensor makes one",
    ),
    (
        "draft_tokens",
        np.array([[1]]),
        "draft_tokens must be a tensor of int64, but is a ndarray; torch.as_ten",
    ),
    ("draft_tokens", None, "draft_tokens must be a tensor of int64, but is None"),
    ("draft_tokens", "1", "draft_tokens must be a tensor of int64, but is a str"),
    (
        "draft_tokens",
        torch.tensor(1),
        "draft_tokens must have the shape [1, 1], from target [1, 2, 2], but has []",
    ),
    (
        "draft_tokens",
        torch.tensor([1]),
        "draft_tokens must have the shape [1, 1], from target [1, 2, 2], but has",
    ),
    ("draft_tokens", DRAFTS.int(), "draft_tokens must be int64, but is int32"),
    ("draft_tokens", DRAFTS > 0, "draft_tokens must be int64, but is bool"),
    (
        "draft_tokens",
        DRAFTS.to_sparse(),
        "draft_tokens must be a dense tensor, but has the layout sparse_coo",
    ),
    ("draft_tokens", DRAFTS.to("meta"), "draft_tokens is on meta, but target on cpu"),
    (
        "target",
        LAWS.tolist(),
        f"target must be a tensor of {FLOATS}, but is a list; torch.as_tensor makes one",
    ),
    ("target", LAWS.numpy(), f"target must be a tensor of {FLOATS}, but is a ndarray; torch.as_tensor makes"),
    ("target", None, f"target must be a tensor of {FLOATS}, but is None"),
    ("target", torch.tensor(0.5), f"{SHAPE} []"),
    ("target", LAWS[0, 0], f"{SHAPE} [2]"),
    ("target", LAWS[0], f"{SHAPE} [2, 2]"),
    ("target", LAWS[None], f"{SHAPE} [1, 1, 2, 2]"),
    ("target", LAWS[:, :, :0], f"{SHAPE} [1, 2, 0]"),
    ("target", LAWS[:, :0], f"{SHAPE} [1, 0, 2]"),
    ("target", LAWS.to(torch.complex64), f"target must be {FLOATS}, but is complex64"),
    ("target", torch.eye(2, dtype=torch.int64)[None], f"target must be {FLOATS}, but is int64"),
    ("target", LAWS > 0, f"target must be {FLOATS}, but is bool"),
    ("target", LAWS.to_sparse(), "target must be a dense tensor, but has the layout sparse_coo"),
    ("target", LAWS.to("meta"), "target is on the device meta, where tensors have no numbers"),
    ("draft", LAWS.tolist(), f"draft must be a tensor of {FLOATS}, but is a list; torch.as_tensor makes one"),
    ("draft", LAWS, "draft must have the shape [1, 1, 2], from target [1, 2, 2], but has [1, 2, 2]"),
    ("draft", torch.tensor(0.5), "draft must have the shape [1, 1, 2], from target [1, 2, 2], but has []"),
    ("draft", LAWS[:, :1].to(torch.complex64), f"draft must be {FLOATS}, but is complex64"),
    (
        "num_draft_tokens",
        [1],
        "num_draft_tokens must be a tensor of int64, but is a list; torch.as_tensor makes",
    ),
    ("num_draft_tokens", 1, "num_draft_tokens must be a tensor of int64, but is an int"),
    ("num_draft_tokens", torch.ones(1), "num_draft_tokens must be int64, but is float32"),
    (
        "params",
        {"top_k": 1},
        "params must be a RowParameters, but is a dict; RowParameters.default(B) makes one",
    ),
    (
        "params",
        RowParameters,
        "params must be a RowParameters, but is the class RowParameters; RowParameters.",
    ),
    ("params", RowParameters.default(2), "params.temperature must have the shape [1], from target [1, 2, 2]"),
    (
        "params",
        replace(RowParameters.default(1), top_k=[1]),
        "params.top_k must be a tensor of int64, but is a list; torch.as_tensor makes one of it",
    ),
    (
        "params",
        replace(RowParameters.default(1), min_p=None),
        "params.min_p must be a tensor of float64, but is",
    ),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG_ARGUMENTS)
def test_a_wrong_argument_is_named_with_what_was_expected(name: str, value: Any, message: str) -> None:
    arguments: dict[str, Any] = {"draft_tokens": DRAFTS, "target": LAWS, name: value}
    with pytest.raises((TypeError, ValueError)) as caught:
        tokenlaw.batch_of_laws(**arguments)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("value", "found"),
    [(None, "None"), ({}, "a dict"), (LAWS, "a Tensor"), (VerifyBatch, "the class VerifyBatch")],
)
def test_what_is_no_batch_is_refused(value: Any, found: str) -> None:
    with pytest.raises(TypeError) as caught:
        check_batch(value)
    assert str(caught.value) == f"a batch must be a VerifyBatch, but is {found}"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (-1, "rows must be 0 or more, but is -1"),
        (1.5, "rows must be a whole number, but is a float"),
        (True, "rows must be a whole number, but is a bool"),
        (None, "rows must be a whole number, but is None"),
    ],
)
def test_default_parameters_are_for_a_number_of_rows(rows: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        RowParameters.default(rows)
    assert str(caught.value) == message


@pytest.mark.parametrize("device", ["nosuch", "", "meta", 1.5])
def test_a_device_that_is_not_there_is_refused(device: Any) -> None:
    with pytest.raises(ValueError, match=f"^device {device!r} can't be used: "):
        require_device(device)


def test_laws_without_tokens_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"law must have tokens in its last dimension, but has the shape \[\]"
    ):
        as_logits(torch.tensor(1.0), "law")
