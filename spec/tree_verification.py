"""Speculation with several candidates: a tree of drafts is verified from its root downwards.

At each node the children are tried in turn. Candidate i is accepted with probability ``min(1, p_i / q_i)``
at its token; p_1 is the target law of the node, and after a rejection ``p_(i+1) = (p_i - q_i)+``, normalised.
q_i is the law of candidate i, given the candidates before it:

- *with replacement* it is the draft law each time: Miao et al. 2023, *SpecInfer* (arXiv 2305.09781);
- *without replacement* it is the draft law without the tokens before, normalised: Jeon et al. 2024,
  *Recursive Speculative Decoding* (arXiv 2402.14160); Chen et al. 2024, *Sequoia* (arXiv 2402.12374);
- *deterministic* candidates have one-hot laws: accept with ``p_i`` at the token, else zero it and
  normalise. Used for the top k of a draft model: Li et al. 2024, *EAGLE-2* (arXiv 2406.16858).

The walk goes on below an accepted child. Where no child is accepted, one token is added with the last p_i,
and below a leaf with the target law. Each level is the theorem of `tokenlaw.spec.speculation`, used once for
each candidate; so the rules are exact, but only together with the drawing that they assume.
"""

from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol

from tokenlaw.spec.draft_trees import (
    ROOT,
    Parents,
    check_parents,
    children_of,
    one_hot_like,
    path_to,
    siblings_before,
    without_replacement,
)
from tokenlaw.spec.laws import (
    Number,
    Tokens,
    check_law,
    check_same_vocabulary,
    check_tokens,
    collect,
    one_like,
)
from tokenlaw.spec.speculation import acceptance_probability, residual


class TreeOutcome(NamedTuple):
    """What one step with a tree does.

    Attributes
    ----------
    path : numbers of the accepted nodes, from the root downwards.
    tokens : the tokens that are emitted: those of the path, and one more.
    """

    path: tuple[int, ...]
    tokens: Tokens


class TreeRule(Protocol[Number]):
    """How a step with a tree decides: the law of its outcome, given the tree and the laws at its nodes.

    ``tokens`` and ``parents`` have one entry for each of N nodes. ``target`` are N + 1 laws: law 0 follows
    the root, law i + 1 follows node i. ``draft`` are N + 1 laws in the same order, from which the children of
    the root and of the nodes were drawn; at leaves they say nothing.
    """

    def __call__(
        self,
        tokens: Tokens,
        parents: Parents,
        *,
        target: Sequence[Sequence[Number]],
        draft: Sequence[Sequence[Number]],
    ) -> dict[TreeOutcome, Number]:
        """Law of the outcome."""
        ...


def verification_with_replacement(
    tokens: Tokens,
    parents: Parents,
    *,
    target: Sequence[Sequence[Number]],
    draft: Sequence[Sequence[Number]],
) -> dict[TreeOutcome, Number]:
    """The rule for siblings that were drawn independently; arguments and result are those of `TreeRule`.

    >>> laws = {"target": [(0.75, 0.25)] * 3, "draft": [(0.5, 0.5)] * 3}
    >>> law = verification_with_replacement((1, 1), (-1, -1), **laws)
    >>> law[TreeOutcome((0,), (1, 0))], law[TreeOutcome((), (0,))]
    (0.375, 0.5)
    """
    check_tree(tokens, parents, target=target, draft=draft)
    return walk_down(tokens, parents, target=target, laws=[draft[parent + 1] for parent in parents])


def verification_without_replacement(
    tokens: Tokens,
    parents: Parents,
    *,
    target: Sequence[Sequence[Number]],
    draft: Sequence[Sequence[Number]],
) -> dict[TreeOutcome, Number]:
    """The rule for siblings that were drawn without replacement; arguments and result as in `TreeRule`.

    Where the children are the whole vocabulary, one of them is accepted for certain (Sequoia's *cover
    property*):

    >>> laws = {"target": [(0.75, 0.25)] * 3, "draft": [(0.5, 0.5)] * 3}
    >>> law = verification_without_replacement((1, 0), (-1, -1), **laws)
    >>> law[TreeOutcome((0,), (1, 0))], law[TreeOutcome((1,), (0, 0))], TreeOutcome((), (0,)) in law
    (0.375, 0.375, False)
    """
    check_tree(tokens, parents, target=target, draft=draft)
    laws = [
        without_replacement(draft[parent + 1], siblings_before(node, tokens, parents))
        for node, parent in enumerate(parents)
    ]
    return walk_down(tokens, parents, target=target, laws=laws)


def deterministic_tree_verification(
    tokens: Tokens,
    parents: Parents,
    *,
    target: Sequence[Sequence[Number]],
    draft: Sequence[Sequence[Number]],
) -> dict[TreeOutcome, Number]:
    """The rule for candidates that count as certain; arguments and result are those of `TreeRule`.

    Exact for every tree that doesn't look at the verifier's random numbers, sampled trees too, only fewer
    drafts are accepted then (reported as a fault again and again, for example EAGLE #95 and #183).

    >>> laws = {"target": [(0.75, 0.25)] * 3, "draft": [(0.5, 0.5)] * 3}
    >>> law = deterministic_tree_verification((1, 0), (-1, -1), **laws)
    >>> law[TreeOutcome((0,), (1, 0))], law[TreeOutcome((1,), (0, 0))], TreeOutcome((), (0,)) in law
    (0.1875, 0.5625, False)
    """
    check_tree(tokens, parents, target=target, draft=draft)
    return walk_down(tokens, parents, target=target, laws=[one_hot_like(draft[0], token) for token in tokens])


def walk_down(
    tokens: Tokens,
    parents: Parents,
    *,
    target: Sequence[Sequence[Number]],
    laws: Sequence[Sequence[Number]],
) -> dict[TreeOutcome, Number]:
    """The walk that all rules share; ``laws[i]`` is the law that node i counts as drawn from.

    >>> walk_down((), (), target=[(0.75, 0.25)], laws=[])[TreeOutcome((), (0,))]
    0.75
    """
    law: list[tuple[TreeOutcome, Number]] = []
    reached = {ROOT: one_like(target[0][0])}  # probability that the node is accepted
    for node in range(ROOT, len(tokens)):
        children, path = children_of(node, parents), path_to(node, parents)
        level = try_candidates(
            tuple(tokens[child] for child in children),
            target=target[node + 1],
            laws=[laws[child] for child in children],
        )
        for child, probability in zip(children, level.accepted, strict=True):
            reached[child] = reached[node] * probability
        emitted: Tokens = tuple(tokens[other] for other in path)
        law += [
            (TreeOutcome(path, (*emitted, token)), reached[node] * probability)
            for token, probability in enumerate(level.added)
        ]
    return collect(law)


class LevelLaw(NamedTuple, Generic[Number]):
    """What happens at one node, given that the walk comes there.

    Attributes
    ----------
    accepted : for each candidate the probability that it is the accepted one.
    added : for each token of the vocabulary the probability that no candidate is accepted and that the token
        is added.
    """

    accepted: tuple[Number, ...]
    added: tuple[Number, ...]


def try_candidates(
    candidates: Tokens, *, target: Sequence[Number], laws: Sequence[Sequence[Number]]
) -> LevelLaw[Number]:
    """Recursive rejection sampling: try the candidates in turn, then add a token of what is left.

    Parameters
    ----------
    candidates : tokens of the children.
    target : law of the target at their position.
    laws : q_1, q_2, ..., one for each candidate.

    Raises
    ------
    ValueError
        A candidate that may be accepted has probability zero in its own law.

    Examples
    --------
    >>> try_candidates((1, 1), target=(0.75, 0.25), laws=[(0.5, 0.5), (0.5, 0.5)])
    LevelLaw(accepted=(0.5, 0.0), added=(0.5, 0.0))
    """
    left = one_like(target[0])  # probability that all candidates before are rejected
    remaining = tuple(target)
    accepted: list[Number] = []
    for token, law in zip(candidates, laws, strict=True):
        possible = left > 0 and remaining[token] > 0
        acceptance = (
            acceptance_probability(draft=law[token], target=remaining[token]) if possible else 0 * left
        )
        accepted.append(left * acceptance)
        left = left * (1 - acceptance)
        remaining = residual(target=remaining, draft=law)
    return LevelLaw(tuple(accepted), tuple(left * weight for weight in remaining))


def check_tree(
    tokens: Tokens,
    parents: Parents,
    *,
    target: Sequence[Sequence[Number]],
    draft: Sequence[Sequence[Number]],
) -> None:
    """Refuse what isn't a tree with its laws: see the messages."""
    check_parents(parents)
    wanted = len(parents) + 1
    if len(tokens) != len(parents) or len(target) != wanted or len(draft) != wanted:
        raise ValueError(
            f"{len(parents)} parents need as many tokens, and {wanted} target and draft laws, "
            f"but got {len(tokens)}, {len(target)} and {len(draft)}"
        )
    for laws, name in ((target, "target law"), (draft, "draft law")):
        for law in laws:
            check_law(law, name)
    check_same_vocabulary(*target, *draft)
    check_tokens(tokens, len(target[0]))
