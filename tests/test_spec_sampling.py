"""Sampling parameters, truncations and what they refuse."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.spec.laws import check_law, normalised
from tokenlaw.spec.models import in_floats, random_table_model
from tokenlaw.spec.processors import (
    add_bias,
    allow_only,
    min_p,
    presence_and_frequency_penalty,
    repetition_penalty,
    scale_by_temperature,
    softmax,
    top_k,
    top_p,
)
from tokenlaw.spec.sampling import (
    ProcessedModel,
    SamplingParameters,
    draw,
    next_token_law,
    sample,
    target_only_law,
)

NAN, INFINITY = math.nan, math.inf


def fractions(*numbers: str) -> tuple[Fraction, ...]:
    return tuple(Fraction(number) for number in numbers)


@st.composite
def laws(draw_value: st.DrawFn) -> tuple[Fraction, ...]:
    weights = draw_value(st.lists(st.integers(0, 5), min_size=2, max_size=6).filter(any))
    return normalised([Fraction(weight) for weight in weights])


def kept(law: tuple[Fraction, ...]) -> set[int]:
    return {token for token, probability in enumerate(law) if probability > 0}


def test_temperature_sharpens_and_zero_takes_the_first_of_equal_logits() -> None:
    logits = np.array([0.0, math.log(2.0), math.log(2.0)])
    assert next_token_law(logits, SamplingParameters()) == pytest.approx((0.2, 0.4, 0.4))
    assert next_token_law(logits, SamplingParameters(temperature=0.5)) == pytest.approx((1 / 9, 4 / 9, 4 / 9))
    assert next_token_law(logits, SamplingParameters(temperature=0.0)) == (0.0, 1.0, 0.0)


def test_temperature_zero_is_the_limit_of_small_temperatures() -> None:
    logits = np.array([1.0, 3.0, 2.0])
    assert softmax(scale_by_temperature(logits, 1e-3)) == softmax(scale_by_temperature(logits, 0.0))


def test_softmax_survives_large_logits() -> None:
    assert softmax(np.array([1e4, 1e4, -1e4])) == (0.5, 0.5, 0.0)


@given(law=laws(), k=st.integers(1, 8))
def test_top_k_keeps_k_tokens_and_those_that_tie_with_the_last(law: tuple[Fraction, ...], k: int) -> None:
    larger = [sum(other > probability for other in law) for probability in law]
    wanted = {token for token, rank in enumerate(larger) if rank < k}
    assert kept(top_k(law, k)) == wanted & kept(law)


@given(law=laws(), threshold=st.fractions("1/50", 1, max_denominator=50))
def test_top_p_keeps_the_smallest_set_that_reaches_p(law: tuple[Fraction, ...], threshold: Fraction) -> None:
    survivors = kept(top_p(law, threshold))
    assert sum(law[token] for token in survivors) >= threshold
    smallest = min(survivors, key=lambda token: (law[token], -token))
    if threshold < 1:
        assert sum(law[token] for token in survivors - {smallest}) < threshold
    for dropped in kept(law) - survivors:
        assert (law[smallest], -smallest) > (law[dropped], -dropped)


@given(law=laws(), share=st.fractions(0, 1, max_denominator=6))
def test_min_p_keeps_a_share_of_the_largest(law: tuple[Fraction, ...], share: Fraction) -> None:
    assert kept(min_p(law, share)) == {t for t in kept(law) if law[t] >= share * max(law)}


@given(law=laws())
def test_truncations_keep_the_ratios_of_what_they_keep(law: tuple[Fraction, ...]) -> None:
    for truncated in (top_k(law, 2), top_p(law, Fraction(1, 2)), min_p(law, Fraction(1, 2))):
        check_law(truncated, "truncated law")
        mass = sum(law[token] for token in kept(truncated))
        assert all(truncated[token] == law[token] / mass for token in kept(truncated))


def test_top_p_of_one_keeps_a_tail_that_float_sums_lose() -> None:
    law = (1.0, 1e-20)
    assert law[0] + law[1] == 1.0
    assert top_p(law, 1.0) == law


def test_min_p_before_top_p_keeps_fewer_tokens() -> None:
    """The order of vLLM differs from ours, which is that of transformers, on this law."""
    law, threshold, share = (
        fractions("50/100", "30/100", "15/100", "5/100"),
        Fraction(82, 100),
        Fraction(1, 5),
    )
    assert kept(min_p(top_p(law, threshold), share)) == {0, 1, 2}
    assert kept(top_p(min_p(law, share), threshold)) == {0, 1}


def test_order_is_temperature_top_k_top_p_min_p() -> None:
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    # At temperature 1/2 the law is 16 : 9 : 4 : 1 of 30.
    assert next_token_law(logits, SamplingParameters(0.5)) == pytest.approx((16 / 30, 9 / 30, 4 / 30, 1 / 30))
    # top-p 0.6 takes two tokens of the whole law, but one of the two that top-k leaves (16 of 25).
    assert next_token_law(logits, SamplingParameters(0.5, top_p=0.6)) == pytest.approx((0.64, 0.36, 0, 0))
    assert next_token_law(logits, SamplingParameters(0.5, top_k=2, top_p=0.6)) == (1, 0, 0, 0)
    # min-p 0.5 drops 4 and 1; before temperature it would keep 0.4, 0.3 and 0.2.
    assert next_token_law(logits, SamplingParameters(0.5, min_p=0.5)) == pytest.approx((0.64, 0.36, 0, 0))


def test_penalties_see_prompt_or_output() -> None:
    logits = np.array([1.0, 1.0, -1.0])
    assert repetition_penalty(logits, 2.0, (0, 2)).tolist() == [0.5, 1.0, -2.0]
    assert presence_and_frequency_penalty(logits, 0.25, 0.5, (1, 1)).tolist() == [1.0, -0.25, -1.0]
    seen_in_prompt = ProcessedModel(
        lambda _: (0.5, 0.5), SamplingParameters(presence_penalty=1.0), prompt_length=2
    )
    assert seen_in_prompt((0, 0)) == (0.5, 0.5)
    assert seen_in_prompt((0, 0, 0)) == pytest.approx((1 / (1 + math.e), math.e / (1 + math.e)))
    repeated = ProcessedModel(
        lambda _: (0.5, 0.5), SamplingParameters(repetition_penalty=2.0), prompt_length=2
    )
    assert repeated((0, 0)) == pytest.approx((1 / 3, 2 / 3))


def test_the_repetition_penalty_comes_before_the_presence_penalty() -> None:
    parameters = SamplingParameters(repetition_penalty=2.0, presence_penalty=3.0)
    law = next_token_law(np.array([4.0, 0.0]), parameters, generated=(0,))
    assert law == pytest.approx(softmax(np.array([4.0 / 2.0 - 3.0, 0.0])))


def test_bias_and_masks() -> None:
    logits = np.zeros(3)
    assert add_bias(logits, {2: 1.5, 0: -INFINITY}).tolist() == [-INFINITY, 0.0, 1.5]
    assert allow_only(logits, {1}).tolist() == [-INFINITY, 0.0, -INFINITY]
    assert next_token_law(logits, SamplingParameters(allowed_tokens=frozenset({0, 2}))) == (0.5, 0.0, 0.5)
    # A mask also holds at temperature 0, and against a bias.
    greedy = SamplingParameters(temperature=0.0, logit_bias={1: 9.0}, allowed_tokens=frozenset({0, 2}))
    assert next_token_law(logits, greedy) == (1.0, 0.0, 0.0)


def test_parameters_that_do_nothing_leave_the_law_alone() -> None:
    model = in_floats(random_table_model(4, 1, seed=8))
    processed = ProcessedModel(model, SamplingParameters())
    for context in model.rows:
        assert processed(context) == pytest.approx(tuple(model(context)), abs=1e-15)


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ((), "the draft law is empty"),
        ((0.5, NAN), "gives token 1 the probability nan"),
        ((-0.5, 1.5), "gives token 0 the probability -0.5"),
        ((INFINITY, 0.0), "sum to inf instead of 1"),
        ((0.5, 0.5 + 2e-9), "instead of 1"),
        (fractions("1/3", "2/3", "1/1000000000000"), "instead of 1"),
    ],
)
def test_what_is_not_a_law_is_refused(law: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_law(law, "draft law")


def test_rounding_of_floats_is_allowed() -> None:
    check_law((0.5, 0.5 + 5e-10), "draft law")


@pytest.mark.parametrize(
    "call",
    [
        lambda: random_table_model(2, 1, seed=0)((2,)),
        lambda: repetition_penalty(np.zeros(2), 1.5, [2]),
        lambda: presence_and_frequency_penalty(np.zeros(2), 1.0, 1.0, [-1]),
        lambda: add_bias(np.zeros(2), {2: 1.0}),
        lambda: allow_only(np.zeros(2), {0, 5}),
    ],
)
def test_tokens_outside_the_vocabulary_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"token -?\d is outside the vocabulary 0\.\.1"):
        call()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"temperature": -0.5}, "temperature must be finite and at least 0, but is -0.5"),
        ({"temperature": NAN}, "temperature must be finite"),
        ({"repetition_penalty": 0.0}, "repetition penalty must be finite and above 0, but is 0.0"),
        ({"top_k": 0}, "top_k must be at least 1, but is 0"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1, but is 0.0"),
        ({"top_p": NAN}, "top_p must be above 0"),
        ({"min_p": 1.5}, "min_p must be between 0 and 1, but is 1.5"),
        ({"allowed_tokens": frozenset()}, "no token is left"),
        ({"allowed_tokens": frozenset(), "temperature": 0.0}, "no token is left"),
        ({"logit_bias": {0: NAN}}, "token 0 has the logit nan"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        next_token_law(np.zeros(2), SamplingParameters(**parameters))


def test_other_refusals() -> None:
    with pytest.raises(ValueError, match="token 0 has the logit inf"):
        next_token_law(np.array([INFINITY, 0.0]), SamplingParameters())
    with pytest.raises(ValueError, match=r"model's law after \(0,\) sum to 0.9"):
        target_only_law(lambda tokens: (0.5, 0.4) if tokens else (1.0, 0.0), (), 2)
    with pytest.raises(ValueError, match="number of tokens must be at least 0, but is -1"):
        sample(lambda _: (1.0,), (), -1, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"uniform number lies in \[0, 1\), but got 1.0"):
        draw((0.5, 0.5), 1.0)
