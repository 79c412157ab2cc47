"""Several candidates at each position: recursive rejection sampling down a tree, batched.

Sources: Miao et al. 2023, *SpecInfer* (arXiv 2305.09781), with replacement; Jeon et al. 2024, *Recursive
Speculative Decoding* (arXiv 2402.14160), and Chen et al. 2024, *Sequoia* (arXiv 2402.12374), without. The
exact laws are those of `tokenlaw.spec.tree_verification`.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from tokenlaw.impl.speculative.chain import residual_weights
from tokenlaw.impl.speculative.draws import draw
from tokenlaw.impl.speculative.random import RowNumbers, Use
from tokenlaw.impl.speculative.steps import (
    SampledDrafts,
    check_uniforms,
    emitted_tokens,
    in_pieces,
    is_draft,
    tokens_to_read,
)
from tokenlaw.spec.batch_checks import check_batch, check_tree_batch
from tokenlaw.spec.draft_trees import ROOT, children_of
from tokenlaw.spec.generation_contracts import TEXTBOOK, TreeBatch, VerifyBatch

NO_NODE = -1
"""Among children: there are no more. As the accepted child: none."""

LAWS_HELD = 4
"""How many laws the walk holds for a row at a time."""


class TreeVerifier(SampledDrafts):
    """Verifies trees of candidates that were drawn with or without replacement, or weren't drawn.

    Children are tried in turn: child i is accepted with probability ``min(1, p_i(x) / q_i(x))``; after a
    rejection p_(i+1) is ``(p_i - q_i)+``, normalised. p_1 is the target's law; q_i is the draft's law,
    without the earlier siblings' tokens if those were drawn without replacement, and one-hot where the batch
    has no draft laws. Where no child is accepted, the last p_i gives the token that is added.

    A chain is a tree with one path, and has the textbook law.

    Attributes
    ----------
    certain : whether every candidate counts as certain, whatever draft laws the batch has.
    """

    claims = TEXTBOOK
    certain = False
    precision = torch.float64

    def verify(
        self, batch: VerifyBatch, *, seed: int, uniforms: Float64[Tensor, "batch drafts"] | None = None
    ) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens; ``uniforms`` decide about acceptance in place of numbers from the seed.

        Raises
        ------
        TypeError, ValueError
            As `tokenlaw.spec.batch_checks.check_batch` and `tokenlaw.impl.speculative.steps.check_uniforms`.
        """
        check_batch(batch)
        check_uniforms(uniforms, batch)
        drafts = batch.shape[1]
        children = torch.tensor([*range(drafts), NO_NODE], device=batch.draft_tokens.device)[:, None]
        path = Candidates(
            tokens_to_read(batch),
            is_draft(batch),
            children,
            drafts,
            batch.target_probs,
            None if self.certain else batch.draft_probs,
            replacement=True,
        )
        return verify_candidates(path, RowNumbers(seed, batch.params), uniforms)

    def verify_tree(self, batch: TreeBatch, *, seed: int) -> Int64[Tensor, "batch depth+1"]:
        """Emitted tokens, `tokenlaw.spec.generation_contracts.NO_TOKEN` after the last one of each row.

        Raises
        ------
        TypeError, ValueError
            As `tokenlaw.spec.batch_checks.check_tree_batch`, or a node has more children without replacement
            than there are tokens.
        """
        check_tree_batch(batch)
        children, vocabulary = children_table(batch), batch.target_logits.shape[2]
        draft = None if self.certain else batch.draft_probs
        most = children.shape[1]
        if most > vocabulary and draft is not None and not batch.replacement:
            raise ValueError(f"{most} siblings can't be drawn without replacement from {vocabulary} tokens")
        everywhere = torch.ones_like(batch.tokens, dtype=torch.bool)
        tree = Candidates(
            batch.tokens,
            everywhere,
            children,
            batch.depth,
            batch.target_probs,
            draft,
            batch.replacement,
        )
        return verify_candidates(tree, RowNumbers(seed, batch.params))


@dataclass(frozen=True)
class Candidates:
    """What the walk needs to know; entry 0 of laws belongs to the root, entry i + 1 to node i.

    Attributes
    ----------
    tokens : int64 ``[B, N]``, all of them in the vocabulary.
    is_there : bool ``[B, N]``; a row may lack nodes.
    children : int64 ``[N + 1, C]``, the children of each entry in order, then `NO_NODE`.
    depth : the largest number of nodes on a path.
    target : float64 ``[B, N + 1, V]``.
    draft : float64 ``[B, N + 1, V]``, entries at the end may be missing if they have no children; or None.
    replacement : whether siblings were drawn independently.
    """

    tokens: Int64[Tensor, "batch nodes"]
    is_there: Bool[Tensor, "batch nodes"]
    children: Int64[Tensor, "entries most_children"]
    depth: int
    target: Float64[Tensor, "batch entries vocabulary"]
    draft: Float64[Tensor, "batch _ vocabulary"] | None
    replacement: bool


def verify_candidates(
    tree: Candidates, numbers: RowNumbers, for_acceptance: Float64[Tensor, "batch tries"] | None = None
) -> Int64[Tensor, "batch depth+1"]:
    """One step, for some of the rows at a time; ``for_acceptance`` replaces the numbers from the seed."""
    if for_acceptance is None:
        for_acceptance = numbers.uniforms(Use.ACCEPTANCE, tree.depth * tree.children.shape[1])

    def step(
        tokens: Tensor, is_there: Tensor, target: Tensor, draft: Tensor | None, tries: Tensor, extra: Tensor
    ) -> Tensor:
        part = replace(tree, tokens=tokens, is_there=is_there, target=target, draft=draft)
        return walk_down(part, tries, extra)

    for_extra = numbers.uniforms(Use.EXTRA_TOKEN, 1)[:, 0]
    tensors = (tree.tokens, tree.is_there, tree.target, tree.draft, for_acceptance, for_extra)
    return in_pieces(step, LAWS_HELD * tree.target.shape[2], *tensors)


def children_table(batch: TreeBatch) -> Int64[Tensor, "entries most_children"]:
    """The children of the root and of each node, in order, then `NO_NODE`."""
    families = [children_of(node, batch.parents) for node in range(ROOT, len(batch.parents))]
    most = max(map(len, families))
    padded = [family + [NO_NODE] * (most - len(family)) for family in families]
    return torch.tensor(padded, dtype=torch.int64, device=batch.tokens.device)


def walk_down(
    tree: Candidates, for_acceptance: Float64[Tensor, "batch tries"], for_extra: Float64[Tensor, " batch"]
) -> Int64[Tensor, "batch depth+1"]:
    """Emitted tokens, given one number for each try (C at each depth) and one for the added token."""
    rows = torch.arange(len(tree.tokens), device=tree.tokens.device)
    entry, accepted = torch.zeros_like(rows), torch.zeros_like(rows)
    law = tree.target[:, 0]  # p_i where the walk goes on; where it stopped, the law of the added token
    path = tree.tokens.new_zeros((len(rows), tree.depth))
    tries = tree.children.shape[1]
    for depth in range(tree.depth):
        numbers = for_acceptance[:, depth * tries : (depth + 1) * tries]
        child, law = try_children(tree, entry, accepted == depth, law, numbers)
        goes_on = child != NO_NODE
        accepted += goes_on
        entry = torch.where(goes_on, child + 1, entry)
        path[:, depth] = tree.tokens[rows, child.clamp(min=0)]
        law = torch.where(goes_on[:, None], tree.target[rows, entry], law)
    return emitted_tokens(path, accepted, draw(law, for_extra))


def try_children(
    tree: Candidates,
    entry: Int64[Tensor, " batch"],
    reached: Bool[Tensor, " batch"],
    law: Float64[Tensor, "batch vocabulary"],
    numbers: Float64[Tensor, "batch most_children"],
) -> tuple[Int64[Tensor, " batch"], Float64[Tensor, "batch vocabulary"]]:
    """The child that each row accepts, or `NO_NODE`, and p_i after the rejections; only where ``reached``."""
    rows = torch.arange(len(entry), device=entry.device)
    draft = None if tree.draft is None else tree.draft[rows, entry.clamp(max=tree.draft.shape[1] - 1)]
    accepted_child = torch.full_like(entry, NO_NODE)
    earlier = torch.zeros_like(law, dtype=torch.bool)
    for rank in range(tree.children.shape[1]):
        child = tree.children[entry, rank]
        node = child.clamp(min=0)
        token = tree.tokens[rows, node][:, None]
        candidate_law = candidate_laws(draft, token, earlier, replacement=tree.replacement)
        q, p = candidate_law.gather(1, token)[:, 0], law.gather(1, token)[:, 0]
        passes = numbers[:, rank] * q < p
        tried = reached & (accepted_child == NO_NODE) & (child != NO_NODE) & tree.is_there[rows, node]
        rest = residual_weights(law, candidate_law)
        law = torch.where((tried & ~passes)[:, None], rest / rest.sum(-1, keepdim=True), law)
        accepted_child = torch.where(tried & passes, child, accepted_child)
        earlier = earlier.scatter(1, token, value=True)
    return accepted_child, law


def candidate_laws(
    draft: Float64[Tensor, "batch vocabulary"] | None,
    token: Int64[Tensor, "batch 1"],
    earlier: Bool[Tensor, "batch vocabulary"],
    *,
    replacement: bool,
) -> Float64[Tensor, "batch vocabulary"]:
    """q_i of each row: what a candidate counts as drawn from, after its earlier siblings.

    >>> earlier = torch.tensor([[True, False, False]])
    >>> laws = {"draft": torch.tensor([[0.5, 0.25, 0.25]]).double(), "token": torch.tensor([[2]])}
    >>> candidate_laws(**laws, earlier=earlier, replacement=False)
    tensor([[0.0000, 0.5000, 0.5000]], dtype=torch.float64)
    """
    if draft is None:
        return torch.zeros_like(earlier, dtype=torch.float64).scatter_(1, token, 1.0)
    if replacement:
        return draft
    rest = draft.masked_fill(earlier, 0.0)
    # Without another token in the draft's law, siblings are uniform over what is left (Sequoia).
    rest = torch.where(rest.any(-1, keepdim=True), rest, (~earlier).to(torch.float64))
    return rest / rest.sum(-1, keepdim=True)
