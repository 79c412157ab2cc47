"""Whole speculative steps: wrong rules that the completed law refutes, and other exact rules."""

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.spec.block_verification import block_verification, prefix_acceptance, prefix_factors
from tokenlaw.spec.laws import Tokens, collect, normalised
from tokenlaw.spec.models import TableModel, random_table_model
from tokenlaw.spec.sampling import target_only_law
from tokenlaw.spec.speculation import (
    StepOutcome,
    VerificationRule,
    acceptance_probability,
    chain_verification,
    deterministic_verification,
    residual,
    then_one_token,
)
from tokenlaw.spec.steps import completed_law, mean_accepted, step_law

Rows = Sequence[Sequence[Fraction]]
Model = TableModel[Fraction]
StepLaw = dict[StepOutcome, Fraction]


def table(*weights: tuple[int, int, int]) -> Model:
    """Order-1 model over three tokens, or order 0 if one row is given; rows are weights."""
    rows = [normalised([Fraction(weight) for weight in row]) for row in weights]
    return TableModel(order=len(rows) // 4, rows=dict(zip([(), (0,), (1,), (2,)], rows, strict=False)))


TARGET = table((3, 2, 1), (1, 2, 3), (2, 5, 1), (1, 1, 4))
DRAFT = table((1, 2, 2), (1, 3, 2), (1, 1, 4), (3, 2, 1))


@st.composite
def model_pairs(draw: st.DrawFn) -> tuple[Model, Model]:
    """A target and a draft of order 1 over two or three tokens."""
    size = draw(st.integers(2, 3))
    seed = draw(st.integers(0, 10_000))
    return random_table_model(size, 1, seed), random_table_model(size, 1, seed + 1)


def sample_and_match(drafts: Tokens, *, target: Rows, draft: Rows) -> StepLaw:
    """Draw from the target at every position; go on while the draft is equal; emit what was drawn."""
    law: list[tuple[StepOutcome, Fraction]] = []
    reached = Fraction(1)
    for position, token in enumerate(drafts):
        row = target[position]
        other = [Fraction(0) if drawn == token else row[drawn] for drawn in range(len(row))]
        law += then_one_token(drafts[:position], other, reached)
        reached *= row[token]
    return collect(law + then_one_token(drafts, target[-1], reached))


@given(models=model_pairs())
def test_sample_and_match_has_the_law_of_the_deterministic_rule(models: tuple[Model, Model]) -> None:
    target, draft = models
    matched, deterministic = (
        step_law(rule, target=target, draft=draft, prompt=(), draft_length=2)
        for rule in (sample_and_match, deterministic_verification)
    )
    assert matched == deterministic


def bonus_after_a_rejection(drafts: Tokens, *, target: Rows, draft: Rows) -> StepLaw:
    """Wrong: the bonus token is appended although the last draft was rejected."""
    law: list[tuple[StepOutcome, Fraction]] = []
    for outcome, weight in chain_verification(drafts, target=target, draft=draft).items():
        if outcome.accepted == len(drafts) - 1:
            appended = [(*outcome.tokens, token) for token in range(len(target[-1]))]
            law += [
                (StepOutcome(outcome.accepted, tokens), weight * probability)
                for tokens, probability in zip(appended, target[-1], strict=True)
            ]
        else:
            law.append((outcome, weight))
    return collect(law)


def target_in_place_of_residual(drafts: Tokens, *, target: Rows, draft: Rows) -> StepLaw:
    """Wrong: a rejected token is replaced by a plain draw from the target."""
    law: list[tuple[StepOutcome, Fraction]] = []
    reached = Fraction(1)
    for position, token in enumerate(drafts):
        acceptance = acceptance_probability(draft=draft[position][token], target=target[position][token])
        law += then_one_token(drafts[:position], target[position], reached * (1 - acceptance))
        reached *= acceptance
    return collect(law + then_one_token(drafts, target[-1], reached))


def block_with_residual_of_one_token(drafts: Tokens, *, target: Rows, draft: Rows) -> StepLaw:
    """Wrong: block verification's acceptance with the residual law of token-by-token verification."""
    factors = prefix_factors(drafts, target=target, draft=draft)
    law: list[tuple[StepOutcome, Fraction]] = []
    longer_fail = Fraction(1)
    for length in range(len(drafts), -1, -1):
        passes = prefix_acceptance(length, factors, target=target, draft=draft)
        last = length == len(drafts)
        added = target[-1] if last else residual(target=target[length], draft=draft[length])
        law += then_one_token(drafts[:length], added, longer_fail * passes)
        longer_fail *= 1 - passes
    return collect(law)


@pytest.mark.parametrize(
    ("wrong_rule", "first_token_is_right"),
    [
        (bonus_after_a_rejection, True),
        (target_in_place_of_residual, False),
        (block_with_residual_of_one_token, True),
    ],
)
@pytest.mark.parametrize("draft_length", [2, 3])
def test_completed_law_refutes_wrong_rules(
    wrong_rule: VerificationRule[Fraction], first_token_is_right: bool, draft_length: int
) -> None:
    step = step_law(wrong_rule, target=TARGET, draft=DRAFT, prompt=(0,), draft_length=draft_length)
    completed = completed_law(step, target=TARGET, prompt=(0,), num_tokens=draft_length + 1)
    wanted = target_only_law(TARGET, (0,), draft_length + 1)
    assert sum(completed.values()) == 1
    assert completed != wanted
    assert (first_token_law(completed) == first_token_law(wanted)) == first_token_is_right


def test_a_target_without_context_hides_the_bonus_after_a_rejection() -> None:
    """So scenarios need a next-token law that depends on the last token."""
    target, draft = table((3, 2, 1)), table((1, 2, 2))
    step = step_law(bonus_after_a_rejection, target=target, draft=draft, prompt=(), draft_length=2)
    assert completed_law(step, target=target, prompt=(), num_tokens=3) == target_only_law(target, (), 3)


def first_token_law(law: dict[Tokens, Fraction]) -> dict[int, Fraction]:
    return collect((tokens[0], probability) for tokens, probability in law.items())


def test_block_verification_of_the_papers_example() -> None:
    """Sun et al. 2024: 11/9 accepted drafts instead of 10/9; so with two drafts the rules differ already."""
    third = Fraction(1, 3)
    block, chain = (
        step_law(
            rule,
            target=lambda _: (third, 2 * third),
            draft=lambda _: (2 * third, third),
            prompt=(),
            draft_length=2,
        )
        for rule in (block_verification, chain_verification)
    )
    assert (mean_accepted(block), mean_accepted(chain)) == (Fraction(11, 9), Fraction(10, 9))


@given(models=model_pairs(), draft_length=st.integers(1, 3))
def test_block_verification_accepts_no_less(models: tuple[Model, Model], draft_length: int) -> None:
    target, draft = models
    block, chain = (
        step_law(rule, target=target, draft=draft, prompt=(), draft_length=draft_length)
        for rule in (block_verification, chain_verification)
    )
    assert mean_accepted(block) >= mean_accepted(chain)
    if draft_length == 1:
        assert block == chain


@given(models=model_pairs())
def test_prefix_factor_is_the_probability_of_accepting_the_prefix(models: tuple[Model, Model]) -> None:
    target, draft = models
    step = step_law(block_verification, target=target, draft=draft, prompt=(), draft_length=3)
    for drafts, weight in target_only_law(draft, (), 2).items():
        prefixes = [drafts[:length] for length in range(3)]
        factors = prefix_factors(
            drafts,
            target=[target(prefix) for prefix in prefixes],
            draft=[draft(prefix) for prefix in prefixes[:-1]],
        )
        accepted = sum(
            probability
            for outcome, probability in step.items()
            if outcome.accepted >= 2 and outcome.tokens[:2] == drafts
        )
        assert accepted == weight * factors[2]
