"""How trees of drafts are drawn, in rational arithmetic; what the rules for trees refuse."""

from fractions import Fraction
from typing import Any

import pytest

from tokenlaw.spec.draft_trees import (
    Parents,
    children_of,
    context_of,
    drawn_trees,
    most_probable,
    path_to,
    siblings_before,
    with_replacement,
    without_replacement,
)
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.tree_verification import (
    TreeRule,
    deterministic_tree_verification,
    verification_with_replacement,
    verification_without_replacement,
)

RULES = [verification_with_replacement, verification_without_replacement, deterministic_tree_verification]


def fractions(*numbers: str) -> tuple[Fraction, ...]:
    return tuple(Fraction(number) for number in numbers)


def test_laws_of_siblings() -> None:
    law = fractions("1/2", "1/3", "1/6")
    assert with_replacement(law, (0, 0)) == law
    assert without_replacement(law, (0,)) == fractions("0", "2/3", "1/3")
    assert without_replacement(law, (2, 0)) == fractions("0", "1", "0")
    assert without_replacement(fractions("1", "0", "0"), (0,)) == fractions("0", "1/2", "1/2")
    assert most_probable(law, ()) == fractions("1", "0", "0")
    assert most_probable(fractions("1/3", "1/3", "1/3"), (0,)) == fractions("0", "1", "0")
    for siblings in (without_replacement, most_probable):
        with pytest.raises(ValueError, match="came already"):
            siblings(law, (0, 1, 2))


def test_law_of_a_drawn_tree() -> None:
    """Children of different nodes may be equal; siblings without replacement may not."""
    law = drawn_trees(
        (-1, -1, 0), draft=lambda _: fractions("1/4", "3/4"), prompt=(), siblings=without_replacement
    )
    assert law == {
        (0, 1, 0): Fraction(1, 16),
        (0, 1, 1): Fraction(3, 16),
        (1, 0, 0): Fraction(3, 16),
        (1, 0, 1): Fraction(9, 16),
    }


def test_a_drawn_tree_follows_its_contexts() -> None:
    """After token 0 comes 1, after 1 comes 0; the prompt ends with 1."""

    def draft(tokens: tuple[int, ...]) -> tuple[Fraction, ...]:
        return fractions("1", "0") if tokens[-1] == 1 else fractions("0", "1")

    law = drawn_trees((-1, 0, -1, 1), draft=draft, prompt=(0, 1), siblings=with_replacement)
    assert law == {(0, 1, 0, 0): 1}
    law = drawn_trees((-1, 0, -1, 1), draft=draft, prompt=(0, 1), siblings=without_replacement)
    assert law == {(0, 1, 1, 0): 1}


def test_shape_of_a_tree() -> None:
    parents, tokens = (-1, -1, 0, 0, 1, 2), (5, 6, 7, 8, 9, 4)
    assert [children_of(node, parents) for node in range(-1, 6)] == [[0, 1], [2, 3], [4], [5], [], [], []]
    assert [path_to(node, parents) for node in (-1, 1, 5)] == [(), (1,), (0, 2, 5)]
    assert context_of(5, tokens, parents, prompt=(1,)) == (1, 5, 7, 4)
    assert [siblings_before(node, tokens, parents) for node in range(6)] == [(), (5,), (), (7,), (), ()]


def test_a_shape_is_checked_before_drawing() -> None:
    with pytest.raises(ValueError, match="parent of node 1"):
        drawn_trees((-1, 1), draft=lambda _: (0.5, 0.5), prompt=(), siblings=with_replacement)


HALF = (0.5, 0.5)


@pytest.mark.parametrize(
    ("tokens", "parents", "target", "draft", "message"),
    [
        ((0,), (0,), [HALF] * 2, [HALF] * 2, r"parent of node 0 must be one of -1 \.\. -1, but is 0"),
        ((0,), (-2,), [HALF] * 2, [HALF] * 2, "parent of node 0"),
        (
            (0,),
            (-1, -1),
            [HALF] * 3,
            [HALF] * 3,
            "2 parents need as many tokens, and 3 target and draft laws",
        ),
        ((0,), (-1,), [HALF], [HALF] * 2, "but got 1, 1 and 2"),
        ((0,), (-1,), [HALF] * 2, [HALF], "but got 1, 2 and 1"),
        ((2,), (-1,), [HALF] * 2, [HALF] * 2, r"token 2 is outside the vocabulary 0\.\.1"),
        ((0,), (-1,), [HALF, (0.5, 0.4)], [HALF] * 2, "target law sum to 0.9 instead of 1"),
        ((0,), (-1,), [HALF] * 2, [HALF, (0.2, 0.3, 0.5)], "sizes are 2, 2, 2, 3"),
    ],
)
@pytest.mark.parametrize("rule", RULES)
def test_a_tree_refuses_bad_input(
    rule: TreeRule[Any], tokens: Tokens, parents: Parents, target: Any, draft: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        rule(tokens, parents, target=target, draft=draft)


@pytest.mark.parametrize("rule", RULES[:2])
def test_a_candidate_that_its_law_never_gives_is_refused(rule: TreeRule[Any]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        rule((1,), (-1,), target=[HALF] * 2, draft=[(1.0, 0.0)] * 2)
