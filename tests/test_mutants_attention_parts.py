"""What the checkers of attention stand on: comparing, merging and its bound, scopes, counts."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from msgspec.structs import replace as changed
from torch import Tensor

from support.attention_kernels import Kernel
from tokenlaw.properties import attention_rules as rules
from tokenlaw.properties.attention_cases import AttentionCase
from tokenlaw.properties.attention_checks import ATTENTION_CHECKS, SHAPES
from tokenlaw.properties.attention_findings import (
    Difference,
    RuleBrokenError,
    check_pair,
    check_tensor,
    compare,
)
from tokenlaw.properties.attention_merge import merge_of_parts
from tokenlaw.properties.attention_subject import Subject
from tokenlaw.spec.attention import attend
from tokenlaw.spec.attention_bound import error_bound

HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32
PARTS = AttentionCase(
    lengths=(9, 0, 3), num_queries=1, kv_heads=2, group_size=2, head_size=3, splits=(7, 3), dtype="float16"
)
"""Cut into 0, 3, 7, 9; into nothing; and into 0, 3, 3, 3."""


def test_nothing_differs_from_nothing() -> None:
    nothing = torch.zeros(0)
    assert compare("output", nothing, nothing, nothing) == Difference(0.0, "", 0.0, 0.0, 0.0, 0.0)
    assert not RuleBrokenError("here", "this", "that").excusable


@pytest.mark.parametrize(
    ("tensor", "dtype", "words"),
    [
        (7, None, "expected a tensor, found int"),
        (torch.zeros(3), None, "expected shape [2], found shape [3]"),
        (torch.zeros(2), BRAIN, "expected dtype torch.bfloat16, found torch.float32"),
        (torch.zeros(2, dtype=torch.int32), None, "expected dtype of floating point, found torch.int32"),
        (torch.zeros(2, dtype=torch.int32), torch.int32, "expected dtype torch.int32, found torch.int32"),
    ],
)
def test_what_is_no_such_tensor_is_told(tensor: Any, dtype: torch.dtype | None, words: str) -> None:
    check_tensor("x", torch.zeros(2), (2,), None)
    check_tensor("x", torch.zeros(2), (2,), SINGLE)
    with pytest.raises(RuleBrokenError) as caught:
        check_tensor("x", tensor, (2,), dtype)
    assert str(caught.value) == f"x: {words}"


@pytest.mark.parametrize("result", [(1,), (1, 2, 3), torch.zeros(2), 7, "ab"])
def test_a_pair_is_a_tuple_or_a_list_of_two(result: Any) -> None:
    assert check_pair("merge", (1, 2)) == check_pair("merge", [1, 2]) == (1, 2)
    with pytest.raises(RuleBrokenError, match="the result of merge: expected a pair"):
        check_pair("merge", result)


class Merges(Kernel):
    """Honest; keeps what it was asked, and may be wrong in the merges of these numbers."""

    def __init__(self, wrong: Sequence[int] = (), of_lse: bool = False) -> None:
        self.wrong, self.of_lse = wrong, of_lse
        self.asked: list[list[int]] = []
        self.parts: list[Tensor] = []

    def attend(self, query: Tensor, *paged: Any, **options: Any) -> Any:
        self.asked.append(paged[3].tolist())
        return super().attend(query, *paged, **options)

    def merge(self, outputs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
        output, lse = super().merge(outputs, lses)
        self.parts.append(lses)
        off = len(self.parts) - 1 in self.wrong
        return (output, lse + off) if self.of_lse else (output + off, lse)


@pytest.mark.parametrize(
    ("capabilities", "asked"),
    [({"empty"}, [[3, 0, 3], [4, 0, 0], [2, 0, 0]]), (set(), [[3, 3], [4], [2]])],
)
def test_rows_without_keys_are_asked_only_of_those_who_take_them(
    capabilities: set[str], asked: list[list[int]]
) -> None:
    merges = Merges()
    subject = Subject(lambda: merges, frozenset(capabilities))
    rules.merge(subject, PARTS)
    assert merges.asked == asked * 2
    assert (subject.counts["merged parts"], subject.counts["empty parts"]) == (18, 10)
    in_order, backward = merges.parts
    assert torch.equal(in_order.flip(0), backward)
    assert (in_order == -math.inf)[:, :, 0, 0].tolist() == [[False, True, False], *[[False, True, True]] * 2]


def test_a_part_that_no_row_has_is_not_asked() -> None:
    merges = Merges()
    rules.merge(Subject(lambda: merges, frozenset()), changed(PARTS, lengths=(3, 3), splits=(3,)))
    assert merges.asked == [[3, 3]] * 2


def test_heads_of_one_channel_have_a_state_without_keys_as_well() -> None:
    rules.merge(Subject(Merges, frozenset()), changed(PARTS, head_size=1))


def test_rows_whose_parts_have_moved_share_no_blocks() -> None:
    case = AttentionCase(lengths=(13, 12, 14), splits=(5,), placement=3, shared_blocks=2)
    rules.merge(Subject(Merges, frozenset()), case)


@pytest.mark.parametrize("of_lse", [False, True])
@pytest.mark.parametrize(("wrong", "order"), [((0,), "in order"), ((1,), "last part first")])
def test_both_orders_and_both_results_of_a_merge_are_judged(
    wrong: tuple[int], order: str, of_lse: bool
) -> None:
    with pytest.raises(RuleBrokenError) as caught:
        rules.merge(Subject(lambda: Merges(wrong, of_lse), frozenset()), PARTS)
    assert caught.value.at == f"merged {'lse' if of_lse else 'output'} of " + caught.value.at.split(" of ")[1]
    assert caught.value.notes[-1] == f"merge: the parts were given {order}"


def test_a_merged_log_sum_exp_has_one_number_for_each_head() -> None:
    class Flat(Merges):
        def merge(self, outputs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
            output, lse = super().merge(outputs, lses)
            return output, lse.flatten(1)

    with pytest.raises(
        RuleBrokenError, match=r"merged lse: expected shape \[3, 1, 4\], found shape \[3, 4\]"
    ):
        rules.merge(Subject(Flat, frozenset()), PARTS)


@pytest.mark.parametrize(
    ("dtype", "scores"), [("float16", SINGLE), ("float16", HALF), ("bfloat16", BRAIN), ("float32", SINGLE)]
)
def test_the_bound_on_a_merge_is_the_derived_formula(dtype: Any, scores: torch.dtype) -> None:
    """Worked out once more for each number; the row without keys and the small values show underflow."""
    case, kind = changed(PARTS, dtype=dtype), getattr(torch, dtype)
    subject = Subject(Merges, frozenset())
    whole = subject.make(case)
    whole.values[2].mul_(2.0**-9)
    _, bounds = merge_of_parts(subject, case, whole, reverse=False)
    output, lse = bounds(scores)
    rounding = torch.finfo(kind).eps / 2
    unit = torch.finfo(SINGLE).eps / (2 if kind == SINGLE else 1)
    lost = 2.0**-25 if kind == HALF else torch.finfo(kind).tiny
    for row, cuts in enumerate([(0, 3, 7, 9), (0, 0, 0, 0), (0, 3, 3, 3)]):
        query = whole.query[row].double()
        keys, values = whole.keys[row].double(), whole.values[row].double()
        _, total = attend(query, keys, values, whole.scale)
        spans = [slice(low, high) for low, high in pairwise(cuts)]
        states = [attend(query, keys[one], values[one], whole.scale) for one in spans]
        errors = [
            error_bound(kind, query, keys[one], values[one], whole.scale, score_dtype=scores) for one in spans
        ]
        for head in range(4):
            sums = [state[1][0, head].item() for state in states]
            finite = [abs(one) for one in sums if one > -math.inf]
            theta = max(error[1][0, head].item() for error in errors) + 8 * unit * (
                max(finite, default=0) + 8
            )
            weights = [math.exp(one - total[0, head].item()) if finite else 0.0 for one in sums]
            assert lse[row, 0, head].item() == pytest.approx(theta + 10 * unit, rel=1e-12)
            for channel in range(3):
                place = (0, head, channel)
                inherited = sum(w * error[0][place].item() for w, error in zip(weights, errors, strict=True))
                held = [w * abs(state[0][place].item()) for w, state in zip(weights, states, strict=True)]
                relative = math.expm1(2 * theta) + rounding + 10 * unit
                bound = inherited + relative * (1 + relative) * (sum(held) + inherited) + lost
                assert output[row, 0, head, channel].item() == pytest.approx(bound, rel=1e-12)


def test_each_check_is_asked_on_cases_that_can_break_it() -> None:
    scopes = {one.check.id.removeprefix("attention/"): one.scope for one in ATTENTION_CHECKS}
    assert [name for name, scope in scopes.items() if scope.moves] == ["placement"]
    assert [name for name, scope in scopes.items() if scope.merges] == ["merge"]
    assert scopes["window"].extra == SHAPES | {"softcap", "sinks"}
    assert scopes["lse"].extra == SHAPES | {"window", "softcap", "sinks", "empty"}
    assert scopes["independence"].extra == SHAPES | {"window"}


def counted(**fields: Any) -> dict[str, int]:
    subject = Subject(Kernel, frozenset())
    rules.numerics(subject, AttentionCase(**fields))
    return {name: int(count) for name, count in subject.counts.items() if count}


def test_a_case_is_counted_by_what_it_exercises() -> None:
    """Among them rows that end on a boundary, and rows as long as the window or as the queries."""
    basic = {"calls": 1, "float32 calls": 1}
    assert counted(lengths=(4, 4)) == basic | {"boundary lengths": 2}
    assert counted(lengths=(0, 0, 1, 2), alibi=True, sinks=True) == basic | {
        "boundary lengths": 1, "partly filled blocks": 2, "ragged batches": 1, "empty rows": 2,
        "sinks": 1, "alibi rows": 1,
    }  # fmt: skip
    assert counted(
        lengths=(2, 3, 6, 7, 12), num_queries=2, group_size=2, window=3, layout="padded", dtype="float16"
    ) == {
        "calls": 1, "float16 calls": 1, "boundary lengths": 1, "partly filled blocks": 4, "ragged batches": 1,
        "grouped heads": 1, "queries with cached prefix": 4, "windowed rows": 3, "views": 1,
    }  # fmt: skip
    assert counted(lengths=(4, 8), softcap=1.0) == basic | {
        "boundary lengths": 2, "ragged batches": 1, "softcapped": 1
    }  # fmt: skip
