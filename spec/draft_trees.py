"""Trees of drafts: their shape, and the laws from which their tokens are drawn."""

from collections.abc import Sequence
from typing import Protocol

from tokenlaw.spec.laws import Number, Tokens, collect, normalised, one_like
from tokenlaw.spec.models import LanguageModel

Parents = Sequence[int]
"""For each node of a tree the number of its parent, always a smaller one; -1 is the root.

The root is the last token that is already there. Children of one node are tried in the order of their
numbers.
"""

ROOT = -1
"""Number of the root among the parents."""


class SiblingLaw(Protocol[Number]):
    """How siblings are drawn: the law of the next one, from the draft law and the siblings before it.

    `with_replacement`, `without_replacement` and `most_probable` are such.
    """

    def __call__(self, law: Sequence[Number], before: Tokens) -> Sequence[Number]:
        """Law of the next sibling."""
        ...


def with_replacement(law: Sequence[Number], before: Tokens) -> tuple[Number, ...]:
    """Law of the next sibling if siblings are independent: that of the draft, whatever came before.

    >>> with_replacement((0.5, 0.25, 0.25), (0,))
    (0.5, 0.25, 0.25)
    """
    return tuple(law)


def without_replacement(law: Sequence[Number], before: Tokens) -> tuple[Number, ...]:
    """Law of the next sibling if none comes twice: that of the draft without those before, normalised.

    The law of *Gumbel top-k* too. Where the draft law has no other token left, it is uniform over the tokens
    that didn't come yet, as in Sequoia.

    Raises
    ------
    ValueError
        Every token came already.

    Examples
    --------
    >>> without_replacement((0.5, 0.25, 0.25), (0,)), without_replacement((1.0, 0.0, 0.0), (0,))
    ((0.0, 0.5, 0.5), (0.0, 0.5, 0.5))
    """
    if set(before) >= set(range(len(law))):
        raise ValueError(
            f"siblings without replacement: all {len(law)} tokens came already, no other is left"
        )
    fresh = [one_like(law[0]) * (token not in before) for token in range(len(law))]
    rest = [weight * new for weight, new in zip(law, fresh, strict=True)]
    return normalised(rest if any(rest) else fresh)


def most_probable(law: Sequence[Number], before: Tokens) -> tuple[Number, ...]:
    """One-hot law of the next sibling if siblings are the top k of the draft law, of equals the lowest id.

    >>> most_probable((0.25, 0.5, 0.25), (1,))
    (1.0, 0.0, 0.0)
    """
    if set(before) >= set(range(len(law))):
        raise ValueError(f"the top k of {len(law)} tokens: all of them came already, no other is left")
    others = [token for token in range(len(law)) if token not in before]
    return one_hot_like(law, max(others, key=lambda token: law[token]))


def one_hot_like(law: Sequence[Number], token: int) -> tuple[Number, ...]:
    """The law of a token that is certain, in the type and the size of another law.

    >>> one_hot_like((0.5, 0.5), 1)
    (0.0, 1.0)
    """
    return tuple(one_like(law[0]) * (other == token) for other in range(len(law)))


def drawn_trees(
    parents: Parents, *, draft: LanguageModel[Number], prompt: Tokens, siblings: SiblingLaw[Number]
) -> dict[Tokens, Number]:
    """Law of the tokens of all nodes.

    Each node is drawn after its parent and after its earlier siblings; given these, it depends on no other.

    >>> drawn_trees((-1, -1), draft=lambda _: (0.75, 0.25), prompt=(), siblings=without_replacement)
    {(0, 1): 0.75, (1, 0): 0.25}
    """
    check_parents(parents)
    law: dict[Tokens, Number] = {(): one_like(draft(prompt)[0])}
    for node in range(len(parents)):
        grown: list[tuple[Tokens, Number]] = []
        for earlier, weight in law.items():
            context = context_of(parents[node], earlier, parents, prompt)
            drawn_from = siblings(draft(context), siblings_before(node, earlier, parents))
            grown += one_node_more(earlier, drawn_from, weight)
        law = collect(grown)
    return law


def one_node_more(tokens: Tokens, law: Sequence[Number], weight: Number) -> list[tuple[Tokens, Number]]:
    """Trees with one more node of the given law, times the weight.

    >>> one_node_more((4,), [0.5, 0.5], 0.5)
    [((4, 0), 0.25), ((4, 1), 0.25)]
    """
    return [((*tokens, token), weight * probability) for token, probability in enumerate(law)]


def context_of(node: int, tokens: Tokens, parents: Parents, prompt: Tokens) -> Tokens:
    """The prompt and the tokens on the path from the root to a node, its own included.

    >>> context_of(1, (4, 5, 6), (-1, 0, 0), (9,))
    (9, 4, 5)
    """
    return prompt + tuple(tokens[other] for other in path_to(node, parents))


def children_of(node: int, parents: Parents) -> list[int]:
    """Numbers of the children, in the order in which they are tried.

    >>> children_of(-1, (-1, 0, -1)), children_of(0, (-1, 0, -1))
    ([0, 2], [1])
    """
    return [child for child, parent in enumerate(parents) if parent == node]


def siblings_before(node: int, tokens: Tokens, parents: Parents) -> Tokens:
    """Tokens of the siblings that are drawn, and tried, before a node.

    >>> siblings_before(3, (4, 5, 6, 7), (-1, -1, 0, -1))
    (4, 5)
    """
    return tuple(tokens[other] for other in children_of(parents[node], parents) if other < node)


def path_to(node: int, parents: Parents) -> tuple[int, ...]:
    """Numbers of the nodes from the root down to a node, the root left out.

    >>> path_to(1, (-1, 0, -1)), path_to(-1, (-1, 0, -1))
    ((0, 1), ())
    """
    return () if node == ROOT else (*path_to(parents[node], parents), node)


def check_parents(parents: Parents) -> None:
    """Refuse a parent that doesn't come before its child.

    >>> check_parents((-1, 1))
    Traceback (most recent call last):
    ValueError: the parent of node 1 must be one of -1 .. 0, but is 1
    """
    for node, parent in enumerate(parents):
        if not ROOT <= parent < node:
            raise ValueError(f"the parent of node {node} must be one of -1 .. {node - 1}, but is {parent}")
