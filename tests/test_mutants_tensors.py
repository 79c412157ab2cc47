"""What mutation testing of the specification of batches and streams found untested."""

import math
from dataclasses import replace

import pytest
import torch

from tokenlaw.spec.attention import attend, attention_scores, merge
from tokenlaw.spec.batch_checks import batch_of_laws, check_batch
from tokenlaw.spec.generation_contracts import VerifyBatch, as_logits
from tokenlaw.spec.philox import derived_key, uniforms
from tokenlaw.spec.row_laws import RowParameters


def batch_with(name: str, value: float) -> VerifyBatch:
    params = RowParameters.default(1)
    changed = replace(params, **{name: torch.tensor([value], dtype=torch.float64)})
    return replace(batch_of_laws(torch.tensor([[0]]), torch.full((1, 2, 2), 0.5)), params=changed)


def test_min_p_above_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"row 0 has the min_p 1\.5"):
        check_batch(batch_with("min_p", 1.5))


@pytest.mark.parametrize(("name", "value"), [("temperature", 0.0), ("min_p", 1.0), ("top_p", 1e-9)])
def test_the_ends_of_the_ranges_are_taken(name: str, value: float) -> None:
    check_batch(batch_with(name, value))


@pytest.mark.parametrize("wrong", [-0.25, float("nan"), float("inf")])
def test_what_is_no_probability_has_no_logit(wrong: float) -> None:
    laws = torch.tensor([[0.5, 0.5], [0.5, wrong]])
    with pytest.raises(ValueError, match=f"{wrong} is no probability"):
        as_logits(laws, "target law")


def test_laws_may_be_off_by_rounding_only() -> None:
    as_logits(torch.tensor([[0.5, 0.5 + 9e-6]]), "target law")
    with pytest.raises(ValueError, match=r"the law sums to 1\.00002"):
        as_logits(torch.tensor([[0.5, 0.5 + 2e-5]]), "target law")


def test_stream_zero_is_the_default() -> None:
    samples = torch.arange(3)
    assert torch.equal(uniforms(1, samples, 2), uniforms(1, samples, 2, stream=0))


def test_derived_keys_never_change() -> None:
    """Stored seeds must give the same run in every version; the value was computed with ``b2sum -l 64``."""
    assert derived_key(7, "law/joint") == 8326999499713168398


@pytest.mark.parametrize(("query_heads", "kv_heads"), [(0, 1), (1, 0), (0, 0), (3, 2)])
def test_heads_that_cannot_be_shared_evenly_are_refused(query_heads: int, kv_heads: int) -> None:
    query, keys = (torch.zeros(1, heads, 2, dtype=torch.float64) for heads in (query_heads, kv_heads))
    with pytest.raises(ValueError, match=f"{query_heads} query heads can't share {kv_heads} KV heads"):
        attend(query, keys, keys, 1.0)


def test_states_without_a_head_size_are_refused() -> None:
    number = torch.tensor(0.0, dtype=torch.float64)
    with pytest.raises(ValueError, match="one more dimension, the head size"):
        merge(number, number)


def test_the_smallest_window_and_a_small_softcap_are_taken() -> None:
    one = torch.ones(2, 1, 1, dtype=torch.float64)
    values = torch.tensor([[[1.0]], [[3.0]]], dtype=torch.float64)
    output, lse = attend(one, one, values, 1.0, window=1, softcap=0.5)
    assert output.flatten().tolist() == [1.0, 3.0]
    assert lse.flatten().tolist() == pytest.approx([0.5 * math.tanh(2.0)] * 2, rel=1e-15)


def test_alibi_counts_from_the_position_of_each_query() -> None:
    """Two queries, three heads, four keys: none of the numbers can stand for another."""
    query, keys = torch.zeros(2, 3, 1, dtype=torch.float64), torch.zeros(4, 1, 1, dtype=torch.float64)
    slopes = torch.tensor([1.0, 0.5, 0.0], dtype=torch.float64)
    scores = attention_scores(query, keys, 1.0, alibi_slopes=slopes)
    assert scores[:, 0].tolist() == [[-2.0, -1.0, 0.0, -math.inf], [-3.0, -2.0, -1.0, 0.0]]
    assert torch.equal(scores[:, 1], 0.5 * scores[:, 0])
    assert scores[1, 2].tolist() == [0.0] * 4


def test_head_sizes_that_differ_are_both_named() -> None:
    query, keys = (torch.zeros(1, 2, size, dtype=torch.float64) for size in (3, 4))
    with pytest.raises(ValueError, match="query has head size 3, keys have 4; they must agree"):
        attend(query, keys, keys, 1.0)
