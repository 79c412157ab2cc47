"""Rules of paged attention asked alone, of objects that answer what they were told: what is judged."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from support.attention_kernels import Kernel
from tokenlaw.properties import attention_rules as rules
from tokenlaw.properties.attention_cases import AttentionCase
from tokenlaw.properties.attention_findings import RuleBrokenError
from tokenlaw.properties.attention_subject import Expected, Subject
from tokenlaw.properties.attention_tensors import Call

Rule = Callable[[Subject, AttentionCase], None]
SHORT = AttentionCase(dtype="bfloat16", lengths=(3, 6))


class Told:
    """An honest kernel that keeps what it was asked; its answers may be changed in place."""

    def __init__(self, change: Callable[[Tensor], None] = lambda output: None) -> None:
        self.kernel, self.change = Kernel(), change
        self.calls: list[Any] = []

    def attend(self, query: Tensor, *paged: Any, **options: Any) -> Any:
        self.calls.append((query.clone(), paged[2].clone(), paged[3].tolist(), paged[4], options))
        found = self.kernel.attend(query, *paged, **options)
        self.change(found)
        return found


class Says:
    """Answers with the next of these numbers everywhere, or of pairs (number, log-sum-exp)."""

    def __init__(self, *numbers: Any, declared: bool = False) -> None:
        self.numbers, self.scores_in_input_dtype = list(numbers), declared

    def attend(self, query: Tensor, *_: Any, return_lse: bool = False, **__: Any) -> Any:
        number = self.numbers.pop(0)
        if return_lse:
            return torch.full_like(query, number[0]), torch.full(query.shape[:-1], number[1])
        return torch.full_like(query, number)


@dataclass
class Bounded(Subject):
    """Expects zeros; bounds by the dtype of scores."""

    bounds: dict[torch.dtype, float] = field(default_factory=dict)

    def expect(self, case: AttentionCase, call: Call, score_dtype: torch.dtype | None = None) -> Expected:
        output = torch.zeros(call.query.shape, dtype=torch.float64)
        bound = output + self.bounds.get(score_dtype or self.score_dtype(case), 0.5)
        return Expected(output, output[..., 0], bound, bound[..., 0])


def bounded(says: Says, *capabilities: str, **bounds: float) -> Bounded:
    named = {getattr(torch, name): bound for name, bound in bounds.items()}
    return Bounded(lambda: says, frozenset(capabilities), bounds=named)


def broken(rule: Rule, subject: Subject, case: AttentionCase = SHORT) -> RuleBrokenError:
    with pytest.raises(RuleBrokenError) as caught:
        rule(subject, case)
    return caught.value


def test_the_plain_case_has_blocks_in_order_and_no_random_entries() -> None:
    case = AttentionCase(placement=7, layout="padded", poison="nan", unused="garbage")
    assert rules.plain(case) == AttentionCase(unused="no-block")
    assert rules.plain(AttentionCase(unused="none")) == AttentionCase()


@pytest.mark.parametrize("number", [0.0, 0.25, 0.5, -0.5])
def test_an_error_as_large_as_its_bound_is_within(number: float) -> None:
    subject = bounded(Says(number))
    rules.numerics(subject, SHORT)
    assert subject.worst == 2 * abs(number)


@pytest.mark.parametrize(
    ("wide", "excusable", "ending"),
    [
        (0.25, False, "with scores kept in bfloat16 this error would still be beyond its bound"),
        (0.375, False, "with scores kept in bfloat16 this error would still be beyond its bound"),
        (0.5, True, "this error would be within its bound (declare scores_in_input_dtype)"),
        (1.0, True, "this error would be within its bound (declare scores_in_input_dtype)"),
    ],
)
def test_what_a_declaration_would_excuse_is_within_the_wider_bound(
    wide: float, excusable: bool, ending: str
) -> None:
    error = broken(rules.numerics, bounded(Says(0.5, 0.5), float32=0.4, bfloat16=wide))
    assert (error.excusable, error.found) == (excusable, "0.5, off by 0.5")
    assert error.notes[0].endswith(ending)


def test_where_scores_are_as_wide_as_they_may_be_nothing_is_excused() -> None:
    declared = broken(rules.numerics, bounded(Says(1.5, 0, declared=True), bfloat16=1.0))
    assert (declared.excusable, declared.notes[0]) == (
        False,
        "bound: scores in bfloat16 (scores_in_input_dtype is declared), sums in float32",
    )
    single = broken(rules.numerics, bounded(Says(1.5, 0)), AttentionCase())
    assert (single.excusable, single.notes[0]) == (False, "bound: scores and sums in float32")


@pytest.mark.parametrize(("calm", "ending"), [(0.75, ", so where blocks lie isn't the cause"), (0.5, "0.5")])
def test_what_is_as_wrong_with_blocks_in_order_is_no_matter_of_placement(calm: float, ending: str) -> None:
    note = broken(rules.numerics, bounded(Says(0.75, calm))).notes[1]
    assert note.startswith(f"placement: the same kernel with blocks in order errs by {calm}")
    assert note.endswith(ending)


@pytest.mark.parametrize(("says", "at"), [((0.0, 1.0), "lse of row 0"), ((1.0, 0.0), "output of row 0")])
def test_the_log_sum_exp_and_its_output_are_both_judged(says: tuple[float, float], at: str) -> None:
    rules.lse(bounded(Says((0.5, 0.5))), SHORT)
    assert broken(rules.lse, bounded(Says(says))).at.startswith(at)


@pytest.mark.parametrize(
    ("says", "what"),
    [
        ((0.0, 1.25, 0.0), "the same call with blocks in order"),
        ((0.0, 0.0, 1.25), "the same call with its rows in reverse order"),
    ],
)
def test_two_answers_to_one_question_may_be_two_bounds_apart(says: tuple[float, ...], what: str) -> None:
    rules.placement(bounded(Says(0.0, 1.0, -1.0)), SHORT)
    error = broken(rules.placement, bounded(Says(*says)))
    assert error.expected == f"1.25 within 1 (two bounds), the output of {what}"


def test_equal_bits_are_equal() -> None:
    rules.placement(bounded(Says(0.5, 0.5, 0.5), "bitwise"), SHORT)
    error = broken(rules.placement, bounded(Says(0.5, 0.5, 0.5 + 2**-8), "bitwise"))
    assert error.expected.startswith("0.50390625 in every bit (bitwise is claimed)")


def test_blocks_and_rows_that_were_moved_are_counted() -> None:
    told = Told()
    subject = Subject(lambda: told, frozenset({"bitwise"}))
    rules.placement(subject, AttentionCase(lengths=(5, 4, 9), placement=3, unused="garbage"))
    assert (subject.counts["moved blocks"], subject.counts["permuted rows"]) == (6, 2)
    (first, tables, lengths, *_), _, (query, permuted, reversed_lengths, *_) = told.calls
    assert (lengths, reversed_lengths) == ([5, 4, 9], [9, 4, 5])
    assert torch.equal(query, first.flip(0))
    assert torch.equal(permuted, tables.flip(0))


def test_the_first_number_that_poison_reached_is_named() -> None:
    def infinite(output: Tensor) -> None:
        output[1, 0, 3, 5] = torch.inf
        output[1, 1, 0, 0] = torch.nan

    case = AttentionCase(lengths=(3, 6), num_queries=2, kv_heads=2, group_size=2, head_size=8, poison="nan")
    subject = Subject(lambda: Told(infinite), frozenset())
    error = broken(rules.poison, subject, case)
    assert (error.at, error.found) == ("output of row 1, query 0, head 3, channel 5", "inf")
    assert subject.counts["poisoned slots"] == 3
    rules.poison(Subject(Told, frozenset()), case)


def test_the_first_changed_byte_is_named_also_outside_of_a_view() -> None:
    class Writes(Told):
        def attend(self, query: Tensor, *paged: Any, **options: Any) -> Any:
            found = super().attend(query, *paged, **options)
            raw = torch.empty(0, dtype=torch.uint8).set_(paged[1].untyped_storage())
            raw[[70, 65, 90]] += 1  # a page of four slots ends at 64, its padding at 112
            return found

    case = AttentionCase(lengths=(6, 3), layout="padded")
    error = broken(rules.inputs, Subject(Writes, frozenset()), case)
    assert (error.at, error.found) == (
        "byte 65 of the memory of value_cache",
        "3 changed bytes, this one the first",
    )
    honest = Subject(Told, frozenset())
    rules.inputs(honest, case)
    assert honest.counts["compared arguments"] == 5


@pytest.mark.parametrize(
    ("capabilities", "window", "windows"),
    [({"window"}, None, [1]), ({"window"}, 3, [3] * 5), (set(), None, []), (set(), 3, [3] * 5)],
)
def test_what_a_used_object_is_asked_before(
    capabilities: set[str], window: int | None, windows: list[int]
) -> None:
    """A larger batch of other content; the same shapes with another scale; the same with a window of one."""
    built: list[Told] = []

    def build() -> Told:
        built.append(Told())
        return built[-1]

    subject = Subject(build, frozenset(capabilities))
    case = AttentionCase(lengths=(3, 6), kv_heads=2, head_size=8, window=window)
    rules.independence(subject, case)
    _, fresh, used, anew = built
    ((query, _, lengths, scale, _),) = fresh.calls
    assert [one[2] for one in used.calls] == [[10, 16] * 2, *[lengths] * (len(used.calls) - 1)]
    assert not torch.equal(used.calls[0][0][:2], query)
    other = used.calls[2]
    assert (other[3], anew.calls[0][3]) == (2 * scale, 2 * scale)
    assert torch.equal(other[0], -query)
    assert [one[4]["window"] for one in used.calls if "window" in one[4]] == windows
    names = ("small batch after big batch", "same shape, other scale", "repeated calls")
    assert [subject.counts[name] for name in names] == [1, 1, 1]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (1, "this one was asked about rows of [10, 16, 10, 16] tokens before"),
        (2, "this one was asked the same shapes with another scale before"),
        (3, "this one was asked the same shapes with another scale before"),
        (4, "the same call a moment ago"),
    ],
)
def test_the_call_that_an_answer_depends_on_is_named(wrong: int, words: str) -> None:
    numbers = [float(index == wrong) for index in range(5)]
    objects = iter([Says(), Says(0.0), Says(*numbers), Says(0.0)])
    subject = Bounded(lambda: next(objects), frozenset(), bounds={torch.float32: 0.25})
    assert words in broken(rules.independence, subject).expected
