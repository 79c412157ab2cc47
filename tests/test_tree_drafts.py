"""Drawing trees of many rows: equal to the enumerated law on a grid of numbers, without sampling."""

from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
import torch
from torch import Tensor

from tokenlaw.spec.draft_trees import Parents, SiblingLaw, drawn_trees, with_replacement, without_replacement
from tokenlaw.spec.generation_contracts import NO_TOKEN
from tokenlaw.spec.models import TableModel
from tokenlaw.spec.philox import uniforms
from tokenlaw.stats.tree_drafts import draw_tree

GRID = 12
"""Every law below, and what is left of it, has probabilities that are multiples of 1/12."""

ROWS = {
    (): ("1/2", "1/4", "1/4"),
    (0,): ("0", "1/2", "1/2"),
    (1,): ("1", "0", "0"),
    (2,): ("1/3", "1/3", "1/3"),
}
MODEL = TableModel(1, {context: tuple(map(Fraction, row)) for context, row in ROWS.items()})
LAWS = torch.tensor([[float(number) for number in MODEL(context)] for context in ROWS], dtype=torch.float64)


def law_of(depth: int, tokens: Tensor) -> Tensor:
    """The model's law; its first row is that of the root, which has no token."""
    assert bool((tokens == NO_TOKEN).all()) == (depth == 0)
    return LAWS[tokens + 1]


def on_the_grid(parents: Parents, replacement: bool) -> dict[tuple[int, ...], Fraction]:
    """Share of each tree among all combinations of numbers (1/2 + i) / 12: its probability."""
    middles = [(place + 0.5) / GRID for place in range(GRID)]
    numbers = torch.tensor(list(product(middles, repeat=len(parents))), dtype=torch.float64)
    trees = draw_tree(parents, law_of, numbers, replacement)
    return {tree: Fraction(count, len(trees)) for tree, count in Counter(map(tuple, trees.tolist())).items()}


@pytest.mark.parametrize(
    "parents", [(-1,), (-1, -1), (-1, 0), (-1, -1, -1), (-1, 0, 0), (-1, -1, 0), (-1, 0, -1)]
)
@pytest.mark.parametrize(
    ("siblings", "replacement"), [(with_replacement, True), (without_replacement, False)]
)
def test_trees_have_the_enumerated_law(
    parents: Parents, siblings: SiblingLaw[Fraction], replacement: bool
) -> None:
    """Includes laws of one and of two possible tokens, which three and two siblings use up."""
    exact = drawn_trees(parents, draft=MODEL, prompt=(), siblings=siblings)
    assert on_the_grid(parents, replacement) == exact


def test_only_without_replacement_siblings_differ() -> None:
    numbers = uniforms(5, torch.arange(1000), 3)
    trees = draw_tree((-1, -1, -1), law_of, numbers, replacement=False)
    assert bool((trees.sort(dim=1).values == torch.arange(3)).all())
    trees = draw_tree((-1, -1, -1), law_of, numbers, replacement=True)
    assert bool((trees[:, 0] == trees[:, 1]).any())


def test_a_row_does_not_depend_on_the_others() -> None:
    """Per-row laws: the depth and the parent's token decide, and so may the row."""
    parents = (-1, -1, 0, 2, 2, 1)
    numbers = uniforms(6, torch.arange(50), len(parents))
    together = draw_tree(parents, law_of, numbers, replacement=False)
    alone = [draw_tree(parents, law_of, numbers[row : row + 1], replacement=False) for row in range(50)]
    assert torch.equal(together, torch.cat(alone))


def test_impossible_tokens_are_never_drawn() -> None:
    """At the ends of the range of numbers too."""
    law = torch.tensor([[0.0, 0.3, 0.0, 0.7, 0.0]], dtype=torch.float64).expand(2, 5)
    ends = torch.tensor([[0.0, 0.0], [1 - 2.0**-53] * 2], dtype=torch.float64)
    assert draw_tree((-1, -1), lambda depth, tokens: law, ends, replacement=True).tolist() == [[1, 1], [3, 3]]
    assert draw_tree((-1, -1), lambda depth, tokens: law, ends, replacement=False).tolist() == [
        [1, 3],
        [3, 1],
    ]


def test_no_nodes() -> None:
    assert draw_tree((), law_of, torch.zeros(4, 0, dtype=torch.float64), replacement=True).shape == (4, 0)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="2 nodes need as many numbers a row, but got 3"):
        draw_tree((-1, -1), law_of, torch.zeros(1, 3, dtype=torch.float64), replacement=True)
    with pytest.raises(ValueError, match="4 siblings without replacement, but 3 tokens"):
        draw_tree((-1,) * 4, law_of, torch.zeros(1, 4, dtype=torch.float64), replacement=False)
    with pytest.raises(ValueError, match="parent of node 0"):
        draw_tree((0,), law_of, torch.zeros(1, 1, dtype=torch.float64), replacement=True)
