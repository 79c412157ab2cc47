"""What a verifier may return: legal answers pass, all else is one message that names row and position."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.spec.generation_contracts import NO_TOKEN, TreeBatch, VerifyBatch
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.stats.protocol import ProtocolError, check_drafts, check_emitted, check_tree

V, K = 3, 2
CPU = torch.device("cpu")


def batch(lengths: list[int]) -> VerifyBatch:
    rows = len(lengths)
    return VerifyBatch(
        torch.ones(rows, K, dtype=torch.int64),
        torch.tensor(lengths, dtype=torch.int64),
        torch.zeros(rows, K + 1, V),
        torch.zeros(rows, K, V),
        RowParameters.default(rows),
    )


def tree(rows: int) -> TreeBatch:
    parents = (-1, -1, 0)
    logits = torch.zeros(rows, 4, V)
    return TreeBatch(
        torch.ones(rows, 3, dtype=torch.int64), parents, logits, logits, True, RowParameters.default(rows)
    )


@st.composite
def answers(draw: st.DrawFn) -> tuple[list[int], list[list[int]]]:
    """Numbers of drafts, and legal rows for them."""
    lengths = draw(st.lists(st.integers(0, K), min_size=0, max_size=6))
    rows = []
    for length in lengths:
        tokens = draw(st.lists(st.integers(0, V - 1), min_size=1, max_size=length + 1))
        rows.append(tokens + [NO_TOKEN] * (K + 1 - len(tokens)))
    return lengths, rows


def as_tokens(rows: list[list[int]]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.int64).reshape(len(rows), K + 1)


@given(answer=answers())
def test_legal_answers_pass(answer: tuple[list[int], list[list[int]]]) -> None:
    lengths, rows = answer
    check_emitted(as_tokens(rows), batch(lengths))
    check_tree(as_tokens(rows), tree(len(rows)))


@given(answer=answers().filter(lambda answer: bool(answer[0])), data=st.data())
def test_one_wrong_number_is_found_and_its_row_is_named(
    answer: tuple[list[int], list[list[int]]], data: st.DataObject
) -> None:
    lengths, rows = answer
    row = data.draw(st.integers(0, len(rows) - 1))
    emitted = sum(token != NO_TOKEN for token in rows[row])
    wrong = [(place, value) for place in range(K + 1) for value in (V, V + 7, -2)]
    wrong += [(place, 0) for place in range(lengths[row] + 1, K + 1)]  # more tokens than drafts and one
    wrong += [(0, NO_TOKEN)]
    wrong += [(place, 0) for place in range(emitted + 1, K + 1)]  # a hole
    place, rows[row][place] = data.draw(st.sampled_from(wrong).map(lambda pair: (pair[0], pair[1])))
    with pytest.raises(ProtocolError) as caught:
        check_emitted(as_tokens(rows), batch(lengths))
    assert f"row {row} of {len(rows)}, position " in str(caught.value)
    assert f"emitted {rows[row]} with {lengths[row]} drafts" in str(caught.value)
    assert "\n" not in str(caught.value)


BAD: list[tuple[Any, str]] = [
    (None, "verify returned None instead of an int64 tensor [2, 3]"),
    ([[0, -1, -1]] * 2, "verify returned a list instead of an int64 tensor [2, 3]"),
    (
        torch.zeros(2, 2, dtype=torch.int64),
        "verify returned torch.int64 [2, 2] on cpu instead of torch.int64 [2, 3]",
    ),
    (
        torch.zeros(3, 3, dtype=torch.int64),
        "verify returned torch.int64 [3, 3] on cpu instead of torch.int64 [2, 3]",
    ),
    (
        torch.zeros(2, 3, dtype=torch.int32),
        "verify returned torch.int32 [2, 3] on cpu instead of torch.int64 [2, 3]",
    ),
    (
        torch.zeros(2, 3, dtype=torch.int64).to_sparse(),
        "verify returned a tensor of layout torch.sparse_coo instead of a dense one [2, 3]",
    ),
    (
        lambda: torch.nested.nested_tensor([torch.zeros(2, 3, dtype=torch.int64)], layout=torch.jagged),
        "verify returned a nested tensor instead of a dense one [2, 3]",
    ),
    ((token for token in [0]), "verify returned a generator instead of an int64 tensor [2, 3]"),
    (torch.zeros(2, 3).numpy(), "verify returned a ndarray instead of an int64 tensor [2, 3]"),
    (torch.zeros(2, 3), "verify returned torch.float32 [2, 3] on cpu instead of torch.int64 [2, 3]"),
    (
        torch.zeros(2, 3, dtype=torch.int64, device="meta"),
        "[2, 3] on meta instead of torch.int64 [2, 3] on cpu",
    ),
    (
        as_tokens([[0, -1, -1], [0, 3, -1]]),
        "row 1 of 2, position 1: 3 is no token (0 .. 2, or -1 behind the last one)",
    ),
    (as_tokens([[-2, 0, -1], [0, 1, -1]]), "row 0 of 2, position 0: -2 is no token"),
    (as_tokens([[0, -1, 1], [0, 1, -1]]), "row 0 of 2, position 2: there is a token behind -1"),
    (as_tokens([[-1, -1, -1], [0, 1, -1]]), "row 0 of 2, position 0: no token was emitted"),
    (as_tokens([[0, 1, 2], [0, 1, 2]]), "row 1 of 2, position 2: 3 tokens were emitted from 1 drafts"),
]


@pytest.mark.parametrize(("emitted", "message"), BAD)
def test_bad_answers_are_one_message(emitted: Any, message: str) -> None:
    """What is made when it is asked for takes torch seconds."""
    answer = emitted() if callable(emitted) else emitted
    with pytest.raises(ProtocolError) as caught:
        check_emitted(answer, batch([2, 1]))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_message_tells_the_whole_row() -> None:
    with pytest.raises(ProtocolError, match=r"the row emitted \[0, 1, 2\] with 1 drafts \[1, 1\]"):
        check_emitted(as_tokens([[0, 1, 2]]), batch([1]))


TREE_BAD: list[tuple[Any, str]] = [
    (7, "verify_tree returned an int instead of an int64 tensor [2, 3]"),
    (torch.zeros(2, 4, dtype=torch.int64), "verify_tree returned torch.int64 [2, 4]"),
    (as_tokens([[0, 1, 2], [0, -1, 2]]), "row 1 of 2, position 2: verify_tree emitted [0, -1, 2]"),
    (as_tokens([[-1, -1, -1], [0, -1, -1]]), "row 0 of 2, position 0: verify_tree emitted [-1, -1, -1]"),
    (as_tokens([[0, 3, -1], [0, -1, -1]]), "row 0 of 2, position 1: verify_tree emitted [0, 3, -1]"),
]


@pytest.mark.parametrize(("emitted", "message"), TREE_BAD)
def test_bad_answers_about_trees_are_one_message(emitted: Any, message: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        check_tree(emitted, tree(2))
    assert message in str(caught.value)


def test_drafts_are_checked() -> None:
    check_drafts(torch.tensor([0, 2]), 1, 2, V, CPU)
    check_drafts(torch.zeros(0, dtype=torch.int64), 0, 0, V, CPU)
    with pytest.raises(ProtocolError, match=r"draft at position 1, row 1 of 2: -1 is no token \(0 \.\. 2\)"):
        check_drafts(torch.tensor([0, -1]), 1, 2, V, CPU)
