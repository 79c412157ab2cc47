"""Trees of drafts for many rows at once: siblings with and without replacement, on any device.

The exact law is `tokenlaw.spec.draft_trees.drawn_trees`.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from tokenlaw.spec.draft_trees import ROOT, Parents, check_parents, children_of, path_to
from tokenlaw.spec.generation_contracts import NO_TOKEN

LawOf = Callable[[int, Int64[Tensor, " batch"]], Float64[Tensor, "batch vocabulary"]]
"""Law of the children of a node in each row, from its depth (0 for the root) and its token in each row.

The root's token is no part of the tree, `NO_TOKEN` stands for it. A law needs no other context than that, as
it has none in a table of order 1.
"""


def draw_tree(
    parents: Parents, law_of: LawOf, uniforms: Float64[Tensor, "batch nodes"], replacement: bool
) -> Int64[Tensor, "batch nodes"]:
    """Tokens of all nodes of one tree in each row.

    Without replacement siblings are drawn one after the other, each from what the earlier ones left of the
    law, normalised: the law of Gumbel top-k. If they left nothing, the tokens that didn't come yet are
    equally probable, as in `tokenlaw.spec.draft_trees.without_replacement`.

    Parameters
    ----------
    parents : the shape of the tree.
    law_of : asked once for each node that has children; laws needn't sum to one.
    uniforms : numbers in [0, 1); number i decides about node i.
    replacement : whether siblings are drawn independently.

    Returns
    -------
    int64 ``[B, N]`` on the device of ``uniforms``.

    Raises
    ------
    ValueError
        The numbers don't fit the tree, or there are more siblings without replacement than tokens.

    Examples
    --------
    >>> law = torch.tensor([[0.5, 0.25, 0.25]]).double()
    >>> numbers = torch.tensor([[0.6, 0.6], [0.1, 0.6]]).double()
    >>> draw_tree((-1, -1), lambda depth, tokens: law.expand(2, 3), numbers, replacement=True)
    tensor([[1, 1],
            [0, 1]])
    >>> draw_tree((-1, -1), lambda depth, tokens: law.expand(2, 3), numbers, replacement=False)
    tensor([[1, 0],
            [0, 2]])
    """
    check_parents(parents)
    if uniforms.shape[1] != len(parents):
        raise ValueError(f"{len(parents)} nodes need as many numbers a row, but got {uniforms.shape[1]}")
    tokens = torch.full(uniforms.shape, NO_TOKEN, dtype=torch.int64, device=uniforms.device)
    for parent in sorted(set(parents)):
        context = tokens[:, parent] if parent != ROOT else tokens.new_full((len(tokens),), NO_TOKEN)
        law = law_of(len(path_to(parent, parents)), context)
        fresh = torch.ones_like(law)  # 0 where a token came already
        siblings = children_of(parent, parents)
        if not replacement and len(siblings) > law.shape[1]:
            raise ValueError(f"{len(siblings)} siblings without replacement, but {law.shape[1]} tokens")
        for node in siblings:
            tokens[:, node] = _draw(law if replacement else _rest(law, fresh), uniforms[:, node])
            fresh = fresh.scatter(1, tokens[:, node, None], 0.0)
    return tokens


def _rest(
    law: Float64[Tensor, "batch vocabulary"], fresh: Float64[Tensor, "batch vocabulary"]
) -> Float64[Tensor, "batch vocabulary"]:
    """Weights of the next sibling without replacement."""
    rest = law * fresh
    return torch.where(rest.any(-1, keepdim=True), rest, fresh)


def _draw(
    weights: Float64[Tensor, "batch vocabulary"], uniforms: Float64[Tensor, " batch"]
) -> Int64[Tensor, " batch"]:
    """The first token whose cumulative weight exceeds u times the sum: never an impossible one."""
    cumulative = weights.cumsum(-1)
    thresholds = uniforms[:, None] * cumulative[:, -1:]
    return torch.searchsorted(cumulative, thresholds, right=True)[:, 0]
