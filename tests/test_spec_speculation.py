"""Speculative sampling in rational arithmetic: closed forms, the theorem, refusals."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.spec.block_verification import block_verification
from tokenlaw.spec.laws import Tokens, normalised
from tokenlaw.spec.models import TableModel, in_floats, random_table_model
from tokenlaw.spec.sampling import ProcessedModel, SamplingParameters, target_only_law
from tokenlaw.spec.speculation import (
    StepOutcome,
    VerificationRule,
    acceptance_probability,
    chain_verification,
    deterministic_verification,
    emitted_law,
    residual,
)
from tokenlaw.spec.steps import accepted_length_law, completed_law, expected_tokens, mean_emitted, step_law

Law = Sequence[Fraction]
Model = TableModel[Fraction]
EXACT_RULES = [chain_verification, deterministic_verification, block_verification]


def fractions(*numbers: str) -> tuple[Fraction, ...]:
    return tuple(Fraction(number) for number in numbers)


@st.composite
def laws(draw: st.DrawFn, size: int) -> tuple[Fraction, ...]:
    """A law with small integer weights: zeros, ties and one-hot laws are frequent."""
    weights = draw(st.lists(st.integers(0, 6), min_size=size, max_size=size).filter(any))
    return normalised([Fraction(weight) for weight in weights])


@st.composite
def law_pairs(draw: st.DrawFn) -> tuple[Law, Law]:
    """A target law and a draft law: unrelated, equal, or with disjoint supports."""
    size = draw(st.integers(2, 5))
    target = draw(laws(size))
    kind = draw(st.sampled_from(["unrelated", "equal", "disjoint"]))
    if kind == "equal":
        return target, target
    other = draw(laws(size))
    if kind == "disjoint":
        outside = [Fraction(0) if mine else weight for mine, weight in zip(target, other, strict=True)]
        other = normalised(outside) if any(outside) else other
    return target, other


@st.composite
def model_pairs(draw: st.DrawFn) -> tuple[Model, Model]:
    size = draw(st.integers(2, 3))
    seed = draw(st.integers(0, 10_000))
    return random_table_model(size, 1, seed), random_table_model(size, 1, seed + 1)


@pytest.mark.parametrize(
    ("draft", "target", "acceptance"),
    [
        ("0.5", "0.8", "1"),
        ("0.8", "0.9", "1"),
        ("0.7", "0.8", "1"),
        ("0.6", "0.2", "1/3"),
        ("0.5", "0.1", "0.2"),
    ],
)
def test_acceptance_probability(draft: str, target: str, acceptance: str) -> None:
    assert acceptance_probability(draft=Fraction(draft), target=Fraction(target)) == Fraction(acceptance)
    in_double = acceptance_probability(draft=float(draft), target=float(target))
    assert in_double == pytest.approx(float(Fraction(acceptance)), rel=1e-15)


@pytest.mark.parametrize(
    ("draft", "target"),
    [(0.0, 0.5), (0.5, -0.1), (1.5, 0.5), (0.5, 1.5), (float("nan"), 0.5), (0.5, float("nan"))],
)
def test_acceptance_probability_needs_probabilities(draft: float, target: float) -> None:
    with pytest.raises(ValueError, match="needs probabilities"):
        acceptance_probability(draft=draft, target=target)


def test_residual_is_what_the_draft_lacks() -> None:
    target, draft = fractions("1/2", "3/10", "1/5"), fractions("1/5", "1/5", "3/5")
    assert residual(target=target, draft=draft) == fractions("3/4", "1/4", "0")


@given(pair=law_pairs())
def test_one_position_emits_the_target_law(pair: tuple[Law, Law]) -> None:
    target, draft = pair
    assert emitted_law(target=target, draft=draft) == tuple(target)


@given(p=st.fractions(0, 1), q=st.fractions(0, 1))
def test_two_tokens_emit_the_target_law(p: Fraction, q: Fraction) -> None:
    assert emitted_law(target=(p, 1 - p), draft=(q, 1 - q)) == (p, 1 - p)


def test_worked_example_of_one_position() -> None:
    target, draft = fractions("7/10", "3/10"), fractions("1/2", "1/2")
    assert residual(target=target, draft=draft) == fractions("1", "0")
    assert emitted_law(target=target, draft=draft) == fractions("7/10", "3/10")


@given(pair=law_pairs())
def test_a_drafted_token_is_accepted_with_the_overlap_of_the_laws(pair: tuple[Law, Law]) -> None:
    target, draft = pair
    step = step_law(
        chain_verification, target=lambda _: target, draft=lambda _: draft, prompt=(), draft_length=1
    )
    overlap = sum(min(mine, other) for mine, other in zip(target, draft, strict=True))
    assert accepted_length_law(step).get(1, 0) == overlap


@pytest.mark.parametrize(("rate", "expected"), [("0.5", "1.9375"), ("0.8", "3.3616"), ("1", "5")])
def test_expected_tokens_in_closed_form(rate: str, expected: str) -> None:
    assert expected_tokens(Fraction(rate), 4) == Fraction(expected)
    assert expected_tokens(float(rate), 4) == pytest.approx(float(expected), rel=1e-14)


@pytest.mark.parametrize("draft_length", [1, 2, 3, 4])
@pytest.mark.parametrize("rate", ["0", "1/2", "4/5", "1"])
def test_closed_form_is_the_mean_of_the_enumerated_step(rate: str, draft_length: int) -> None:
    """A draft that is certain of token 0 is accepted with the constant probability target(0)."""
    acceptance = Fraction(rate)
    step = step_law(
        chain_verification,
        target=lambda _: (acceptance, 1 - acceptance),
        draft=lambda _: fractions("1", "0"),
        prompt=(),
        draft_length=draft_length,
    )
    assert mean_emitted(step) == expected_tokens(acceptance, draft_length)
    without_the_targets_token = sum(acceptance**accepted for accepted in range(draft_length))
    assert mean_emitted(step) == without_the_targets_token + acceptance**draft_length
    if acceptance > 0:
        assert mean_emitted(step) != without_the_targets_token


@pytest.mark.parametrize("rule", EXACT_RULES)
@pytest.mark.parametrize("draft_length", [1, 2, 3])
@given(models=model_pairs())
def test_exact_rules_keep_the_target_law(
    rule: VerificationRule[Fraction], draft_length: int, models: tuple[Model, Model]
) -> None:
    target, draft = models
    step = step_law(rule, target=target, draft=draft, prompt=(0,), draft_length=draft_length)
    assert sum(step.values()) == 1
    completed = completed_law(step, target=target, prompt=(0,), num_tokens=draft_length + 1)
    assert completed == target_only_law(target, (0,), draft_length + 1)


@pytest.mark.parametrize("rule", EXACT_RULES)
def test_floats_follow_the_fractions(rule: VerificationRule[Any]) -> None:
    target, draft = random_table_model(3, 1, seed=5), random_table_model(3, 1, seed=6)
    exact = step_law(rule, target=target, draft=draft, prompt=(), draft_length=3)
    double = step_law(rule, target=in_floats(target), draft=in_floats(draft), prompt=(), draft_length=3)
    for outcome in exact.keys() | double.keys():
        assert double.get(outcome, 0.0) == pytest.approx(float(exact.get(outcome, 0)), abs=1e-15)


@pytest.mark.parametrize("rule", EXACT_RULES)
def test_a_greedy_target_emits_its_greedy_tokens(rule: VerificationRule[Any]) -> None:
    model = in_floats(random_table_model(3, 1, seed=9))
    greedy, draft = (
        ProcessedModel(model, SamplingParameters(temperature=0.0)),
        random_table_model(3, 1, seed=7),
    )
    step = step_law(rule, target=greedy, draft=in_floats(draft), prompt=(), draft_length=2)
    assert len(accepted_length_law(step)) > 1
    (tokens, probability), *others = completed_law(step, target=greedy, prompt=(), num_tokens=3).items()
    assert not others
    assert probability == pytest.approx(1.0, abs=1e-12)
    assert target_only_law(greedy, (), 3) == {tokens: 1.0}


def test_equal_laws_accept_everything() -> None:
    """Block verification's acceptance is 0 / 0 there."""
    model = random_table_model(3, 1, seed=4)
    for rule in (chain_verification, block_verification):
        step = step_law(rule, target=model, draft=model, prompt=(), draft_length=3)
        assert accepted_length_law(step) == {3: 1}


def test_no_drafts_give_one_target_token() -> None:
    target = random_table_model(3, 1, seed=4)
    for rule in EXACT_RULES:
        step = step_law(rule, target=target, draft=target, prompt=(1,), draft_length=0)
        assert completed_law(step, target=target, prompt=(1,), num_tokens=1) == target_only_law(
            target, (1,), 1
        )


HALF = (0.5, 0.5)


@pytest.mark.parametrize(
    ("drafts", "target", "draft", "message"),
    [
        ((0,), [HALF], [HALF], "1 drafts need 1 draft laws and 2 target laws, but got 1 and 1"),
        ((0,), [HALF, HALF], [], "1 drafts need 1 draft laws"),
        ((2,), [HALF, HALF], [HALF], r"token 2 is outside the vocabulary 0\.\.1"),
        ((-1,), [HALF, HALF], [HALF], r"token -1 is outside"),
        ((0,), [HALF, (0.2, 0.3, 0.5)], [HALF], "sizes are 2, 3, 2"),
        ((0,), [HALF, (0.5, 0.4)], [HALF], "target law sum to 0.9 instead of 1"),
        ((0,), [HALF, HALF], [(1.5, -0.5)], "draft law gives token 1 the probability -0.5"),
        ((0,), [HALF, (float("nan"), 1.0)], [HALF], "target law gives token 0 the probability nan"),
    ],
)
@pytest.mark.parametrize("rule", EXACT_RULES)
def test_a_step_refuses_bad_input(
    rule: VerificationRule[Any], drafts: Tokens, target: Any, draft: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        rule(drafts, target=target, draft=draft)


@pytest.mark.parametrize("rule", [chain_verification, block_verification])
def test_a_draft_that_its_law_never_gives_is_refused(rule: VerificationRule[Any]) -> None:
    with pytest.raises(ValueError, match=r"above 0|never gives"):
        rule((1,), target=[HALF, HALF], draft=[(1.0, 0.0)])


def test_other_refusals() -> None:
    model = random_table_model(2, 1, seed=0)
    with pytest.raises(ValueError, match="draft length must be at least 0"):
        step_law(chain_verification, target=model, draft=model, prompt=(), draft_length=-1)
    with pytest.raises(ValueError, match="draft length must be at least 0"):
        expected_tokens(0.5, -1)
    with pytest.raises(ValueError, match=r"acceptance rate lies in 0\.\.1, but got 1\.5"):
        expected_tokens(1.5, 2)
    step = {StepOutcome(1, (0, 0)): Fraction(1)}
    with pytest.raises(ValueError, match="emits up to 2 tokens, more than the 1"):
        completed_law(step, target=model, prompt=(), num_tokens=1)
    for law in (residual, emitted_law):
        with pytest.raises(ValueError, match="draft law sum to 2/3 instead of 1"):
            law(target=fractions("1/2", "1/2"), draft=fractions("1/3", "1/3"))
