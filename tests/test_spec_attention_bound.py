"""Implementations in low precision stay within the error bound; a wrong mask leaves it."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tokenlaw.spec.attention import attend
from tokenlaw.spec.attention_bound import error_bound, gamma

LOW_PRECISION = (torch.float32, torch.bfloat16, torch.float16)
ONE = torch.ones(1, 1, 1, dtype=torch.float64)

Case = dict[str, Any]
"""Arguments of `attend` by name."""


def low_precision_case(dtype: torch.dtype, kind: str, length: int, **options: Any) -> Case:
    """Rounded inputs: independent normal numbers, or with an outlier channel, an offset and huge values."""
    generator = torch.Generator().manual_seed(length)
    query = torch.randn(min(4, length), 4, 64, generator=generator)
    keys, values = (torch.randn(length, 2, 64, generator=generator) for _ in range(2))
    if kind == "outliers":
        query[..., 0] *= 3
        keys[..., 0] *= 20
        values[::7] *= 50
        values += 5
    tensors = {"query": query, "keys": keys, "values": values}
    return {name: x.to(dtype).double() for name, x in tensors.items()} | {"scale": 0.125} | options


def scores_in(case: Case, dtype: torch.dtype, *, late: int) -> Tensor:
    """Scores in ``dtype``, heads first. The causal mask hides the last ``late`` visible keys too."""
    query, keys = case["query"].to(dtype).transpose(0, 1), case["keys"].to(dtype).repeat_interleave(2, 1)
    scores = (query @ keys.permute(1, 2, 0)) * case["scale"]
    if "softcap" in case:
        scores = case["softcap"] * torch.tanh(scores / case["softcap"])
    num_queries, length = scores.shape[1:]
    distance = torch.arange(length) - (length - num_queries + torch.arange(num_queries))[:, None]
    if "alibi_slopes" in case:
        scores = scores + case["alibi_slopes"][:, None, None].to(dtype) * distance
    if "window" in case:
        scores = scores.masked_fill(distance <= -case["window"], -math.inf)
    return scores.masked_fill(distance > -late, -math.inf)


def naive(
    case: Case, dtype: torch.dtype, score_dtype: torch.dtype = torch.float32, *, late: int = 0
) -> tuple[Tensor, Tensor]:
    """What people write: matmul, softmax, matmul."""
    scores = scores_in(case, score_dtype, late=late).float()
    length = scores.shape[-1]
    if "sinks" in case:
        sinks = case["sinks"][:, None, None].float().expand(-1, scores.shape[1], 1)
        scores = torch.cat([scores, sinks], -1)
    weights = torch.softmax(scores, -1)[..., :length].to(dtype)
    values = case["values"].to(dtype).repeat_interleave(2, 1).transpose(0, 1)
    return (weights @ values).transpose(0, 1).double(), torch.logsumexp(scores, -1).T.double()


def online(case: Case, dtype: torch.dtype, tile: int = 16) -> tuple[Tensor, Tensor]:
    """One tile after the other with a running maximum, as fused kernels do; the last query only."""
    query = case["query"][-1].float() * case["scale"]
    keys, values = (case[name].float().repeat_interleave(2, 1) for name in ("keys", "values"))
    top = torch.full((query.shape[0],), -math.inf)
    total, output = torch.zeros(query.shape[0]), torch.zeros_like(query)
    for part, part_values in zip(keys.split(tile), values.split(tile), strict=True):
        scores = torch.einsum("hd,khd->hk", query, part)
        new_top = torch.maximum(top, scores.amax(-1))
        weights, rescale = torch.exp(scores - new_top[:, None]), torch.exp(top - new_top)
        total = total * rescale + weights.sum(-1)
        new = torch.einsum("hk,khd->hd", weights.to(dtype).float(), part_values)
        output, top = output * rescale[:, None] + new, new_top
    return (output / total[:, None]).to(dtype).double()[None], (top + total.log()).double()[None]


def error_ratios(
    case: Case, dtype: torch.dtype, got: tuple[Tensor, Tensor], score_dtype: torch.dtype = torch.float32
) -> tuple[float, float]:
    """Largest observed error as a share of the bound at the same element: output, then lse."""
    last = slice(-got[0].shape[0], None)
    bounds = error_bound(dtype, **case, score_dtype=score_dtype)
    output, lse = (
        ((observed - exact[last]).abs() / bound[last]).max().item()
        for observed, exact, bound in zip(got, attend(**case), bounds, strict=True)
    )
    return output, lse


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"window": 9},
    "softcap": {"softcap": 20.0},
    "alibi": {"alibi_slopes": torch.tensor([0.5, 0.1, -0.3, -0.7], dtype=torch.float64)},
    "sinks": {"sinks": torch.tensor([0.0, 3.0, -50.0, -math.inf], dtype=torch.float64)},
}


@pytest.mark.parametrize("dtype", LOW_PRECISION, ids=str)
@pytest.mark.parametrize("kind", ["normal", "outliers"])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("length", [1, 17, 300])
def test_naive_implementations_stay_within_the_bound(
    dtype: torch.dtype, kind: str, options: str, length: int
) -> None:
    case = low_precision_case(dtype, kind, length, **OPTIONS[options])
    assert max(error_ratios(case, dtype, naive(case, dtype))) <= 1
    eager = naive(case, dtype, score_dtype=dtype)
    assert max(error_ratios(case, dtype, eager, score_dtype=dtype)) <= 1


@pytest.mark.parametrize("dtype", LOW_PRECISION, ids=str)
@pytest.mark.parametrize("kind", ["normal", "outliers"])
@pytest.mark.parametrize("length", [1, 17, 300, 2000])
def test_an_online_softmax_stays_within_the_bound(dtype: torch.dtype, kind: str, length: int) -> None:
    case = low_precision_case(dtype, kind, length)
    assert max(error_ratios(case, dtype, online(case, dtype))) <= 1


@pytest.mark.parametrize("dtype", LOW_PRECISION, ids=str)
@pytest.mark.parametrize("kind", ["normal", "outliers"])
@pytest.mark.parametrize("length", [17, 300])
def test_an_off_by_one_mask_leaves_the_bound(dtype: torch.dtype, kind: str, length: int) -> None:
    """The lse as well, where the missing key has weight enough, as in independent normal data."""
    case = low_precision_case(dtype, kind, length)
    output, lse = error_ratios(case, dtype, naive(case, dtype, late=1))
    assert output > 2
    assert kind == "outliers" or lse > 2


@pytest.mark.parametrize(
    ("dtype", "looseness"), [(torch.float32, 1e3), (torch.bfloat16, 10), (torch.float16, 10)], ids=str
)
@pytest.mark.parametrize("kind", ["normal", "outliers"])
@pytest.mark.parametrize("length", [17, 300])
def test_the_bound_is_not_absurdly_loose(
    dtype: torch.dtype, looseness: float, kind: str, length: int
) -> None:
    """The largest error comes within this factor of the bound: worst cases add up, real errors cancel."""
    case = low_precision_case(dtype, kind, length)
    output, lse = error_ratios(case, dtype, naive(case, dtype))
    assert output > 1 / looseness
    assert lse > 1e-3


@pytest.mark.parametrize("unused", [torch.float64, torch.int32])
def test_bound_names_a_dtype_without_bound(unused: torch.dtype) -> None:
    with pytest.raises(ValueError, match="has no error bound"):
        error_bound(unused, ONE, ONE, ONE, 1.0)
    with pytest.raises(ValueError, match="has no error bound"):
        error_bound(torch.float32, ONE, ONE, ONE, 1.0, score_dtype=unused)


def test_bound_needs_inputs_that_are_already_rounded() -> None:
    with pytest.raises(ValueError, match="keys isn't exactly representable"):
        error_bound(torch.bfloat16, ONE, ONE * 1.001, ONE, 1.0)


def test_bound_is_zero_where_nothing_is_visible() -> None:
    empty = ONE[:0]
    bounds = error_bound(torch.float16, ONE, empty, empty, 1.0)
    assert [bound.flatten().tolist() for bound in bounds] == [[0.0], [0.0]]
    bounds = error_bound(torch.float16, ONE, empty, empty, 1.0, sinks=ONE[0, 0])
    assert 0 < bounds[1].item() < 1e-4


def test_bound_stays_finite_where_scores_are_huge() -> None:
    """The score error says nothing then, but both outputs are averages of the same values."""
    query = (ONE * 6e4).expand(1, 1, 8)
    keys = torch.cat([query, -query])
    values = keys.sign()
    values[..., 0] = 0
    output_bound, lse_bound = error_bound(torch.float16, query, keys, values, 1.0)
    assert output_bound.max().item() < 2.1
    assert math.isfinite(lse_bound.item())


def test_gamma_refuses_more_roundings_than_digits() -> None:
    with pytest.raises(ValueError, match="leave no correct digit"):
        gamma(2**11, 2.0**-11)
