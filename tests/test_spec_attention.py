"""The float64 specification of attention against Python loops; merging; limits; messages."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tokenlaw.spec.attention import attend, merge, visible_keys


@dataclass(frozen=True)
class Case:
    """Arguments of `attend`; options that are None are off."""

    query: Tensor
    keys: Tensor
    values: Tensor
    scale: float = 0.5
    window: int | None = None
    softcap: float | None = None
    alibi_slopes: Tensor | None = None
    sinks: Tensor | None = None

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.query, self.keys, self.values

    def options(self) -> dict[str, Any]:
        names = ("window", "softcap", "alibi_slopes", "sinks")
        return {name: getattr(self, name) for name in names}

    def attend(self, **changes: Any) -> tuple[Tensor, Tensor]:
        return attend(*self.tensors(), self.scale, **(self.options() | changes))


@st.composite
def cases(draw: st.DrawFn, min_queries: int = 0, min_length: int = 0) -> Case:
    kv_heads, group = draw(st.integers(1, 2)), draw(st.sampled_from([1, 2, 3, 7]))
    heads, head_size = kv_heads * group, draw(st.integers(1, 4))
    num_queries, length = draw(st.integers(min_queries, 4)), draw(st.integers(min_length, 9))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([0.1, 1.0, 10.0]))

    def normal(*shape: int) -> Tensor:
        return spread * torch.randn(*shape, generator=generator, dtype=torch.float64)

    return Case(
        normal(num_queries, heads, head_size),
        normal(length, kv_heads, head_size),
        normal(length, kv_heads, head_size),
        scale=draw(st.sampled_from([-0.5, 0.0, 0.3, 1.0])),
        window=draw(st.none() | st.integers(1, 10)),
        softcap=draw(st.none() | st.sampled_from([0.5, 30.0])),
        alibi_slopes=draw(st.none() | st.just(normal(heads))),
        sinks=draw(st.none() | st.just(normal(heads))),
    )


def one_output(case: Case, query_index: int, head: int) -> tuple[list[float], float]:
    """The same formula again with Python floats and loops, sharing no code with the specification."""
    length, kv_heads, head_size = case.keys.shape
    num_queries, heads, _ = case.query.shape
    position, kv_head = length - num_queries + query_index, head * kv_heads // heads
    terms = []
    for key in range(length):
        if key > position or (case.window is not None and key <= position - case.window):
            continue
        score = case.scale * math.fsum(
            case.query[query_index, head, c].item() * case.keys[key, kv_head, c].item()
            for c in range(head_size)
        )
        if case.softcap is not None:
            score = math.tanh(score / case.softcap) * case.softcap
        if case.alibi_slopes is not None:
            score -= case.alibi_slopes[head].item() * (position - key)
        terms.append((score, key))
    logits = [score for score, _ in terms] + ([] if case.sinks is None else [case.sinks[head].item()])
    if not logits:
        return [0.0] * head_size, -math.inf
    top = max(logits)
    total = math.fsum(math.exp(logit - top) for logit in logits)
    output = [
        math.fsum(math.exp(score - top) / total * case.values[key, kv_head, c].item() for score, key in terms)
        for c in range(head_size)
    ]
    return output, top + math.log(total)


@given(cases())
def test_attention_equals_a_loop_of_python_floats(case: Case) -> None:
    output, lse = case.attend()
    assert output.shape == case.query.shape
    assert lse.shape == case.query.shape[:2]
    for index in range(case.query.shape[0]):
        for head in range(case.query.shape[1]):
            expected, expected_lse = one_output(case, index, head)
            assert output[index, head].tolist() == pytest.approx(expected, rel=1e-11, abs=1e-11)
            assert lse[index, head].item() == pytest.approx(expected_lse, rel=1e-12, abs=1e-12)


@given(cases(min_queries=1), st.data())
def test_merging_any_split_equals_the_whole(case: Case, data: st.DataObject) -> None:
    """Parts are consecutive pieces of what the last query sees; empty ones among them change nothing."""
    query, options = case.query[-1:], {"softcap": case.softcap}
    length = case.keys.shape[0]
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, length), max_size=4))), length]
    states = [
        attend(query, case.keys[a:b], case.values[a:b], case.scale, **options) for a, b in pairwise(cuts)
    ]
    order = data.draw(st.permutations(range(len(states))))
    merged, merged_lse = merge(
        torch.stack([states[part][0] for part in order]), torch.stack([states[part][1] for part in order])
    )
    output, lse = attend(query, case.keys, case.values, case.scale, **options)
    torch.testing.assert_close(merged, output, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(merged_lse, lse, rtol=1e-12, atol=1e-12)


@given(cases(min_queries=2, min_length=1), st.integers(0, 9))
def test_causal_tail_merges_with_the_prefix(case: Case, cut: int) -> None:
    """Chunked prefill with a cached prefix: every query sees all of the prefix and its share of the tail."""
    cut = min(cut, max(0, case.keys.shape[0] - case.query.shape[0]))
    tail = attend(case.query, case.keys[cut:], case.values[cut:], case.scale, sinks=case.sinks)
    prefix = [attend(query[None], case.keys[:cut], case.values[:cut], case.scale) for query in case.query]
    merged, merged_lse = merge(
        torch.stack([tail[0], torch.cat([output for output, _ in prefix])]),
        torch.stack([tail[1], torch.cat([lse for _, lse in prefix])]),
    )
    output, lse = attend(case.query, case.keys, case.values, case.scale, sinks=case.sinks)
    torch.testing.assert_close(merged, output, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(merged_lse, lse, rtol=1e-12, atol=1e-12)


@given(st.integers(0, 3))
def test_empty_parts_are_ignored_whatever_they_hold(parts: int) -> None:
    outputs = torch.full((parts + 1, 2, 3), math.nan, dtype=torch.float64)
    lses = torch.full((parts + 1, 2), -math.inf, dtype=torch.float64)
    merged, lse = merge(outputs, lses)
    assert merged.tolist() == [[0.0] * 3] * 2
    assert lse.tolist() == [-math.inf] * 2
    outputs[0], lses[0] = 7.0, -1000.0
    merged, lse = merge(outputs, lses)
    assert merged.tolist() == [[7.0] * 3] * 2
    assert lse.tolist() == [-1000.0] * 2


def test_merging_no_parts_at_all_is_empty() -> None:
    merged, lse = merge(torch.zeros(0, 2, 3).double(), torch.zeros(0, 2).double())
    assert (merged.tolist(), lse.tolist()) == ([[0.0] * 3] * 2, [-math.inf] * 2)


@given(cases())
def test_options_at_their_limits_change_nothing(case: Case) -> None:
    plain, plain_lse = case.attend(window=None, softcap=None, sinks=None)
    limits: dict[str, Any] = {
        "window": max(1, case.keys.shape[0]),
        "softcap": 1e9,
        "sinks": torch.full(case.query.shape[1:2], -math.inf, dtype=torch.float64),
    }
    for name, limit in limits.items():
        output, lse = case.attend(**{"window": None, "softcap": None, "sinks": None, name: limit})
        torch.testing.assert_close(output, plain, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(lse, plain_lse, rtol=1e-9, atol=1e-9)


@given(cases(min_queries=1))
def test_rows_that_see_nothing_are_zero(case: Case) -> None:
    output, lse = attend(case.query, case.keys[:0], case.values[:0], 1.0)
    assert bool((output == 0).all())
    assert bool((lse == -math.inf).all())
    sinks = torch.arange(case.query.shape[1], dtype=torch.float64)
    output, lse = attend(case.query, case.keys[:0], case.values[:0], 1.0, sinks=sinks)
    assert bool((output == 0).all())
    assert lse.tolist() == [sinks.tolist()] * case.query.shape[0]


def test_window_counts_the_query_itself() -> None:
    assert visible_keys(1, 5, window=1).tolist() == [[False, False, False, False, True]]
    assert visible_keys(3, 1).tolist() == [[False], [False], [True]]


ONE = torch.ones(1, 1, 1, dtype=torch.float64)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": ONE[0]}, r"query has shape \(1, 1\)"),
        ({"query": ONE.float()}, "query is torch.float32"),
        ({"keys": ONE.expand(2, 1, 1)}, "keys .* and values .* must have one shape"),
        ({"query": ONE.expand(1, 1, 2)}, "query has head size 2, keys have 1"),
        (
            {"keys": ONE.expand(1, 2, 1), "values": ONE.expand(1, 2, 1)},
            "1 query heads can't share 2 KV heads",
        ),
        ({"values": ONE * math.nan}, "values holds NaN or infinity"),
        ({"scale": math.inf}, "scale is inf"),
        ({"window": 0}, "window is 0"),
        ({"softcap": 0.0}, "softcap is 0.0"),
        ({"softcap": math.nan}, "softcap is nan"),
        ({"sinks": ONE}, r"sinks has shape \(1, 1, 1\)"),
        ({"sinks": ONE[0, 0] * math.inf}, "sinks holds NaN or infinity"),
        ({"sinks": ONE[0, 0].half()}, "sinks is torch.float16"),
        ({"alibi_slopes": ONE[0, 0] * -math.inf}, "alibi_slopes holds NaN or infinity"),
    ],
)
def test_wrong_arguments_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        attend(**({"query": ONE, "keys": ONE, "values": ONE, "scale": 1.0} | changes))


@pytest.mark.parametrize(
    ("outputs", "lses", "message"),
    [
        (ONE, ONE, "must have the shape of lses"),
        (ONE.float(), ONE[0].float(), "float64"),
        (ONE, ONE[0] * math.nan, "found NaN or plus infinity"),
        (ONE * math.nan, ONE[0], "outputs holds NaN"),
    ],
)
def test_wrong_states_are_named(outputs: Tensor, lses: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        merge(outputs, lses)
