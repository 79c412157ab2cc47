"""The bound on attention in low precision is the derived formula, worked out once more number by number.

Implementations that stay within a bound can't tell that it is larger than derived; mutation testing found
most of its constants untested.
"""

import math
from typing import Any, NamedTuple

import pytest
import torch

from tokenlaw.spec.attention_bound import ACCUMULATE, SMALLEST, UNIT_ROUNDOFF, error_bound, gamma

HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32
EXACT = 1e-9
"""Relative rounding of the same formula in another order of float64 operations: a logarithm near 1 in it."""

Case = dict[str, Any]


class Key(NamedTuple):
    """A visible key, or the sink: its score, the error of the score, its value."""

    score: float
    error: float
    value: list[float]


def random_case(dtype: torch.dtype, queries: int, length: int, size: float, **options: Any) -> Case:
    """Four query heads on two KV heads of size 3."""
    generator = torch.Generator().manual_seed(length)
    shapes = {"query": (queries, 4, 3), "keys": (length, 2, 3), "values": (length, 2, 3)}
    made = {name: size * torch.randn(*shape, generator=generator) for name, shape in shapes.items()}
    made["query"][0, 0, 0] = 0.0  # one number that nothing may be divided by
    return {name: tensor.to(dtype).double() for name, tensor in made.items()} | {"scale": -0.75} | options


def growth(roundings: int, unit: float) -> float:
    return roundings * unit / (1 - roundings * unit)


def roundoff(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps / 2


def of_sums(dtype: torch.dtype) -> float:
    """U: tensor cores may cut off what they add up for the short dtypes."""
    return roundoff(SINGLE) * (1 if dtype == SINGLE else 2)


def lost(dtype: torch.dtype) -> float:
    """Error of underflow."""
    found = torch.finfo(dtype)
    return found.tiny * found.eps / 2 if dtype == HALF else found.tiny


def keys_of(case: Case, dtype: torch.dtype, score_dtype: torch.dtype, query: int, head: int) -> list[Key]:
    """Step 1 of the derivation for everything that one query and head sees."""
    single, store = of_sums(dtype), max(of_sums(dtype), roundoff(score_dtype))
    underflow = 8 * lost(score_dtype)
    numbers = case["query"][query, head].tolist()
    found = []
    for at in range(len(case["keys"])):
        distance = at - (len(case["keys"]) - len(case["query"]) + query)
        if distance > 0 or -distance >= case.get("window", math.inf):
            continue
        key, value = case["keys"][at, head // 2].tolist(), case["values"][at, head // 2].tolist()
        score = case["scale"] * sum(a * b for a, b in zip(numbers, key, strict=True))
        total = abs(case["scale"]) * sum(abs(a * b) for a, b in zip(numbers, key, strict=True))
        raw, two = abs(score), growth(2, store)
        error = (growth(len(key) + 4, single) + two) * total + two * raw
        if "softcap" in case:
            error += (growth(3, store) + growth(8, single)) * raw
            score = case["softcap"] * math.tanh(score / case["softcap"])
        if "alibi_slopes" in case:
            bias = case["alibi_slopes"][head].item() * distance
            error += two * abs(bias) + store * (raw + abs(bias))
            score += bias
        found.append(Key(score, error + underflow, value))
    if "sinks" in case and (sink := case["sinks"][head].item()) > -math.inf:
        found.append(Key(sink, store * abs(sink) + underflow, [0.0, 0.0, 0.0]))
    return found


def by_hand(
    case: Case, dtype: torch.dtype, score_dtype: torch.dtype, query: int, head: int
) -> tuple[list[float], float]:
    """Steps 2 to 5: bounds on the output and on the log-sum-exp of one query and head."""
    keys = keys_of(case, dtype, score_dtype, query, head)
    unit, single, count = roundoff(dtype), of_sums(dtype), len(case["keys"]) + 1
    largest, log_count = max(abs(key.score) for key in keys), math.log(len(keys))
    theta = [key.error + 8 * single * (abs(key.score) + largest + 2 * log_count + 2) for key in keys]
    lse = math.log(sum(math.exp(key.score) for key in keys))
    weights = [math.exp(key.score - lse) for key in keys]
    # log sum w exp(theta), without rounding at 1, since the weights sum to 1
    whole = math.log1p(sum(w * math.expm1(error) for w, error in zip(weights, theta, strict=True)))
    bounds = []
    for dimension in range(3):
        sizes = [abs(key.value[dimension]) for key in keys]
        pairs = list(zip(weights, sizes, strict=True))
        average = sum(w * size for w, size in pairs)
        exact = sum(w * key.value[dimension] for w, key in zip(weights, keys, strict=True))
        shift = sum(w * s * math.expm1(e + whole) for (w, s), e in zip(pairs, theta, strict=True))
        ceiling = case["values"][:, head // 2, dimension].abs().max().item() + average
        error = min(shift, ceiling)
        relative = (1 + unit) * (1 + growth(4 * count + 16, single)) - 1
        before = error + relative * (average + error) + lost(dtype) * sum(sizes) + count * 2.0**-126
        bounds.append(before + unit * (abs(exact) + before) + lost(dtype))
    return bounds, whole + growth(2 * count + 16, single) + 8 * single * (1 + largest + abs(lse))


SLOPES = torch.tensor([0.5, 0.125, -0.25, -0.75], dtype=torch.float64)
SINKS = torch.tensor([0.0, 3.0, -50.0, -math.inf], dtype=torch.float64)
OPTIONS: dict[str, Case] = {
    "plain": {},
    "window": {"window": 3},
    "softcap": {"softcap": 1.5},
    "alibi": {"alibi_slopes": SLOPES},
    "softcap and alibi": {"softcap": 1.5, "alibi_slopes": SLOPES},
    "sinks": {"sinks": SINKS},
    "everything": {"window": 4, "softcap": 2.0, "alibi_slopes": SLOPES, "sinks": SINKS},
}


def check(case: Case, dtype: torch.dtype, score_dtype: torch.dtype) -> None:
    output, lse = error_bound(dtype, **case, score_dtype=score_dtype)
    for query in range(len(case["query"])):
        for head in range(4):
            bounds, of_lse = by_hand(case, dtype, score_dtype, query, head)
            assert output[query, head].tolist() == pytest.approx(bounds, rel=EXACT, abs=0.0)
            assert lse[query, head].item() == pytest.approx(of_lse, rel=EXACT, abs=0.0)


@pytest.mark.parametrize(
    ("dtype", "score_dtype"), [(SINGLE, SINGLE), (BRAIN, SINGLE), (BRAIN, BRAIN), (HALF, HALF)], ids=str
)
@pytest.mark.parametrize("options", OPTIONS)
def test_the_bound_is_the_derived_formula(options: str, dtype: torch.dtype, score_dtype: torch.dtype) -> None:
    """Five queries of which the first sees one key, and two of six; small scores and large ones."""
    for queries, length, size in ((5, 5, 0.5), (2, 6, 3.0)):
        check(random_case(dtype, queries, length, size, **OPTIONS[options]), dtype, score_dtype)


@pytest.mark.parametrize("dtype", [SINGLE, BRAIN, HALF], ids=str)
def test_where_all_values_are_zero_underflow_is_left(dtype: torch.dtype) -> None:
    case = random_case(dtype, 2, 6, 1.0)
    case["values"] = torch.zeros_like(case["values"])
    check(case, dtype, SINGLE)


def test_no_weight_can_be_wrong_by_more_than_its_values() -> None:
    """Scores in the hundreds, kept in bfloat16: the errors of their exponents bound nothing any more."""
    case = random_case(BRAIN, 2, 6, 12.0)
    check(case, BRAIN, BRAIN)
    output, _ = error_bound(BRAIN, **case, score_dtype=BRAIN)
    assert (output < 2.2 * case["values"].abs().max()).all()


def test_units_and_underflows_are_those_of_the_dtypes() -> None:
    for dtype in (HALF, BRAIN, SINGLE):
        assert UNIT_ROUNDOFF[dtype] == roundoff(dtype)
        assert SMALLEST[dtype] == lost(dtype)
        assert ACCUMULATE[dtype] == of_sums(dtype)


def test_a_query_before_all_keys_is_exact() -> None:
    """Of three queries and one key the first two see nothing."""
    output, lse = error_bound(BRAIN, **random_case(BRAIN, 3, 1, 1.0))
    seen = torch.tensor([False, False, True])
    assert torch.equal((output > 0).all(-1).all(-1), seen)
    assert torch.equal((output == 0).all(-1).all(-1), ~seen)
    assert torch.equal(lse > 0, seen[:, None].expand(3, 4))


@pytest.mark.parametrize("count", [7, 8, 9])
def test_as_many_roundings_as_there_are_units_in_one_bound_nothing(count: int) -> None:
    if count < 8:
        assert gamma(count, 1 / 8) == count
    else:
        with pytest.raises(ValueError, match=f"{count} roundings with unit roundoff 0.125"):
            gamma(count, 1 / 8)


def test_what_the_dtype_cannot_hold_is_refused_by_name() -> None:
    third = torch.full((1, 2, 3), 1 / 3, dtype=torch.float64)
    for name in ("query", "keys", "values"):
        case: Case = random_case(BRAIN, 1, 1, 1.0)
        case[name] = third.repeat_interleave(2, 1) if name == "query" else third
        with pytest.raises(ValueError, match=f"{name} isn't exactly representable in torch.bfloat16"):
            error_bound(BRAIN, **case)
