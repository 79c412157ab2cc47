"""Trees of candidates in rational arithmetic: the theorem, its border, worked examples, refusals."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tree_shapes import SHAPES
from tokenlaw.spec.draft_trees import (
    Parents,
    SiblingLaw,
    most_probable,
    with_replacement,
    without_replacement,
)
from tokenlaw.spec.models import TableModel, in_floats, random_table_model
from tokenlaw.spec.sampling import target_only_law
from tokenlaw.spec.speculation import (
    StepOutcome,
    VerificationRule,
    chain_verification,
    deterministic_verification,
)
from tokenlaw.spec.steps import accepted_length_law, completed_law, step_law
from tokenlaw.spec.tree_steps import tree_step_law
from tokenlaw.spec.tree_verification import (
    LevelLaw,
    TreeOutcome,
    TreeRule,
    deterministic_tree_verification,
    try_candidates,
    verification_with_replacement,
    verification_without_replacement,
)

Law = Sequence[Fraction]
Model = TableModel[Fraction]

EXACT_PAIRS = [
    (verification_with_replacement, with_replacement),
    (verification_without_replacement, without_replacement),
    (deterministic_tree_verification, most_probable),
    (deterministic_tree_verification, with_replacement),
    (deterministic_tree_verification, without_replacement),
]
"""A rule, and a way to draw siblings with which it is exact."""


def fractions(*numbers: str) -> tuple[Fraction, ...]:
    return tuple(Fraction(number) for number in numbers)


@st.composite
def trees(draw: st.DrawFn) -> Parents:
    """Any tree of at most four nodes with at most three children each."""
    parents: list[int] = []
    for node in range(draw(st.integers(0, 4))):
        parents.append(draw(st.integers(-1, node - 1).filter(lambda parent: parents.count(parent) < 3)))
    return tuple(parents)


@st.composite
def model_pairs(draw: st.DrawFn, least: int) -> tuple[Model, Model]:
    size = draw(st.integers(least, 3))
    seed = draw(st.integers(0, 10_000))
    return random_table_model(size, 1, seed), random_table_model(size, 1, seed + 1)


def depth(parents: Parents) -> int:
    depths: list[int] = []
    for parent in parents:
        depths.append(1 if parent < 0 else depths[parent] + 1)
    return max(depths, default=0)


def most_children(parents: Parents) -> int:
    return max((list(parents).count(node) for node in parents), default=0)


def is_exact(
    rule: TreeRule[Fraction], parents: Parents, target: Model, draft: Model, siblings: SiblingLaw[Fraction]
) -> bool:
    step = tree_step_law(rule, parents, target=target, draft=draft, prompt=(0,), siblings=siblings)
    assert sum(step.values()) == 1
    length = depth(parents) + 1
    completed = completed_law(step, target=target, prompt=(0,), num_tokens=length)
    return completed == target_only_law(target, (0,), length)


@pytest.mark.parametrize(("rule", "siblings"), EXACT_PAIRS)
@given(parents=trees(), data=st.data())
def test_every_small_tree_keeps_the_target_law(
    rule: TreeRule[Fraction], siblings: SiblingLaw[Fraction], parents: Parents, data: st.DataObject
) -> None:
    """Where no sibling may come twice, at least as many tokens as siblings are needed."""
    target, draft = data.draw(model_pairs(least=max(2, most_children(parents))))
    assert is_exact(rule, parents, target, draft, siblings)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(("rule", "siblings"), EXACT_PAIRS)
def test_known_shapes_keep_the_target_law(
    rule: TreeRule[Fraction], siblings: SiblingLaw[Fraction], shape: Parents
) -> None:
    size = max(2, most_children(shape))
    target, draft = random_table_model(size, 1, seed=21), random_table_model(size, 1, seed=22)
    assert is_exact(rule, shape, target, draft, siblings)


MISMATCHES = [
    (verification_without_replacement, with_replacement, Fraction(3, 16)),
    (verification_with_replacement, without_replacement, Fraction(1, 2)),
]
"""A rule, the other way of drawing, and the total variation that the example below gives."""


@pytest.mark.parametrize(("rule", "siblings", "deviation"), MISMATCHES)
def test_the_other_way_of_drawing_is_not_exact(
    rule: TreeRule[Fraction], siblings: SiblingLaw[Fraction], deviation: Fraction
) -> None:
    target, draft = fractions("0", "1/2", "1/2"), fractions("3/4", "0", "1/4")
    step = tree_step_law(
        rule, (-1, -1), target=lambda _: target, draft=lambda _: draft, prompt=(), siblings=siblings
    )
    first = [
        sum(weight for outcome, weight in step.items() if outcome.tokens[0] == token) for token in range(3)
    ]
    assert sum(abs(mine - wanted) for mine, wanted in zip(first, target, strict=True)) / 2 == deviation


@pytest.mark.parametrize(("rule", "siblings"), [pair[:2] for pair in MISMATCHES])
@given(p=st.fractions(0, 1, max_denominator=12), q=st.fractions("1/12", "11/12", max_denominator=12))
def test_two_tokens_hide_the_other_way_of_drawing(
    rule: TreeRule[Fraction], siblings: SiblingLaw[Fraction], p: Fraction, q: Fraction
) -> None:
    """Why scenarios for trees need three tokens: after a rejection one of two tokens is certain."""
    target, draft = TableModel(0, {(): (p, 1 - p)}), TableModel(0, {(): (q, 1 - q)})
    assert is_exact(rule, (-1, -1), target, draft, siblings)


@pytest.mark.parametrize(
    ("rule", "chain_rule"),
    [
        (verification_with_replacement, chain_verification),
        (verification_without_replacement, chain_verification),
        (deterministic_tree_verification, deterministic_verification),
    ],
)
@given(models=model_pairs(least=2), length=st.integers(0, 3))
def test_a_tree_with_one_path_is_a_chain(
    rule: TreeRule[Fraction],
    chain_rule: VerificationRule[Fraction],
    models: tuple[Model, Model],
    length: int,
) -> None:
    target, draft = models
    path = tuple(range(-1, length - 1))
    assert tree_step_law(
        rule, path, target=target, draft=draft, prompt=(), siblings=with_replacement
    ) == step_law(chain_rule, target=target, draft=draft, prompt=(), draft_length=length)


def test_worked_example_of_two_candidates() -> None:
    """Both draws are token 0: accepted with 1/2, then rejected, since the residual has no token 0."""
    target, draft = fractions("1/4", "1/2", "1/4"), fractions("1/2", "1/4", "1/4")
    twice = try_candidates((0, 0), target=target, laws=[draft, draft])
    assert twice == LevelLaw(fractions("1/2", "0"), fractions("0", "1/2", "0"))
    # The residual is certain of token 1, which the second draw gives: accepted for certain.
    other = try_candidates((0, 1), target=target, laws=[draft, fractions("0", "1/2", "1/2")])
    assert other == LevelLaw(fractions("1/2", "1/2"), fractions("0", "0", "0"))


def test_worked_example_of_a_tree() -> None:
    """Zero and renormalise: 1/2, then 1/4 of 1/2 as 1/2 of what is left; the rest is token 2."""
    target = [fractions("1/2", "1/4", "1/4"), fractions("1", "0", "0"), fractions("0", "0", "1")]
    law = deterministic_tree_verification((0, 1), (-1, -1), target=target, draft=target)
    assert law == {
        TreeOutcome((0,), (0, 0)): Fraction(1, 2),
        TreeOutcome((1,), (1, 2)): Fraction(1, 4),
        TreeOutcome((), (2,)): Fraction(1, 4),
    }


@given(models=model_pairs(least=3))
def test_without_replacement_the_whole_vocabulary_is_never_rejected(models: tuple[Model, Model]) -> None:
    """Sequoia's cover property."""
    target, draft = models
    step = tree_step_law(
        verification_without_replacement,
        (-1, -1, -1),
        target=target,
        draft=draft,
        prompt=(),
        siblings=without_replacement,
    )
    assert accepted_length_law(step) == {1: 1}


def test_with_replacement_the_whole_vocabulary_may_be_rejected() -> None:
    step = tree_step_law(
        verification_with_replacement,
        (-1, -1),
        target=lambda _: fractions("0", "1"),
        draft=lambda _: fractions("1/2", "1/2"),
        prompt=(),
        siblings=with_replacement,
    )
    assert accepted_length_law(step) == {0: Fraction(1, 4), 1: Fraction(3, 4)}


def test_a_second_candidate_raises_acceptance() -> None:
    target, draft = random_table_model(3, 1, seed=5), random_table_model(3, 1, seed=6)
    models: dict[str, Any] = {"target": target, "draft": draft, "prompt": (), "siblings": without_replacement}
    rates = [
        accepted_length_law(tree_step_law(verification_without_replacement, parents, **models))[1]
        for parents in ((-1,), (-1, -1), (-1, -1, -1))
    ]
    assert rates[0] < rates[1] < rates[2] == 1


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(("rule", "siblings"), EXACT_PAIRS[:3])
def test_floats_follow_the_fractions(rule: TreeRule[Any], siblings: SiblingLaw[Any], shape: Parents) -> None:
    size = max(2, most_children(shape))
    target, draft = random_table_model(size, 1, seed=5), random_table_model(size, 1, seed=6)
    exact = tree_step_law(rule, shape, target=target, draft=draft, prompt=(), siblings=siblings)
    double = tree_step_law(
        rule, shape, target=in_floats(target), draft=in_floats(draft), prompt=(), siblings=siblings
    )
    for outcome in exact.keys() | double.keys():
        assert double.get(outcome, 0.0) == pytest.approx(float(exact.get(outcome, 0)), abs=1e-15)


def test_an_empty_tree_is_target_only() -> None:
    target = random_table_model(3, 1, seed=4)
    step = tree_step_law(
        verification_with_replacement, (), target=target, draft=target, prompt=(1,), siblings=with_replacement
    )
    wanted = target_only_law(target, (1,), 1)
    assert step == {StepOutcome(0, tokens): weight for tokens, weight in wanted.items()}
