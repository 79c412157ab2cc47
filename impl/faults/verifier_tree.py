"""Verification of trees with several candidates: the exact rule, and faults of it.

Source: Miao et al. 2024, *SpecInfer* (arXiv 2305.09781), siblings drawn with replacement; Yang et al. 2024,
*Multi-Candidate Speculative Decoding* (arXiv 2401.06706), without.
"""

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from tokenlaw.impl.faults.verifier_base import ACCEPTANCE, RECOVERY, ChainVerifier, Numbers
from tokenlaw.spec.generation_contracts import NO_TOKEN, TreeBatch

Law = Float64[Tensor, "batch vocabulary"]
Token = Int64[Tensor, " batch"]


class TreeVerifier(ChainVerifier):
    """The chain verifier with capability ``trees``; exact."""

    def verify_tree(self, batch: TreeBatch, *, seed: int) -> Int64[Tensor, "batch depth+1"]:
        """Emitted tokens, see `tokenlaw.spec.generation_contracts.Verifier`."""
        rows = torch.arange(len(batch.tokens), device=batch.tokens.device)
        numbers = self.numbers(batch.params, seed, ACCEPTANCE, len(batch.parents))
        node, length = torch.full_like(rows, -1), torch.zeros_like(rows)
        emitted = batch.tokens.new_full((len(rows), batch.depth + 1), NO_TOKEN)
        target, proposal = batch.target_probs[:, 0], self.proposal(batch, 0)
        for child, parent in enumerate(batch.parents):
            token, here = batch.tokens[:, child], node == parent
            drawn = proposal if batch.draft_logits is not None else self.certain(token, target)
            passes = numbers[:, child] < target[rows, token] / drawn[rows, token]
            left, rest = self.refused(target, drawn, token, batch.replacement)
            accepted, refused = here & passes, here & ~passes
            emitted[accepted, length[accepted]] = token[accepted]
            node, length = torch.where(accepted, child, node), length + accepted
            target = torch.where(refused[:, None], left, target)
            proposal = torch.where(refused[:, None], rest, proposal)
            target = torch.where(accepted[:, None], batch.target_probs[:, child + 1], target)
            proposal = torch.where(accepted[:, None], self.proposal(batch, child + 1), proposal)
        added = self.draw(target, rows, self.numbers(batch.params, seed, RECOVERY, 1)[:, 0])
        return emitted.scatter_(1, length[:, None], added[:, None])

    def proposal(self, batch: TreeBatch, entry: int) -> Law:
        """Law that the children of a node are drawn from; unused where they weren't drawn."""
        probs = batch.draft_probs
        return batch.target_probs[:, entry] if probs is None else probs[:, entry]

    def certain(self, token: Token, like: Law) -> Law:
        """The one-hot law of a token."""
        return torch.zeros_like(like).scatter_(-1, token[:, None], 1.0)

    def refused(self, target: Law, draft: Law, token: Token, replacement: bool) -> tuple[Law, Law]:
        """Target and draft law for the next sibling, after one was refused."""
        left = self.residual(target, draft)
        if replacement:
            return left, draft
        return left, self.normalised(draft.scatter(-1, token[:, None], 0.0), draft)


class SiblingsWithReplacement(TreeVerifier):
    """Siblings were drawn without replacement, but are verified as if with it.

    Classes: C09.
    Report: none known of this form; NVIDIA/TensorRT-LLM 15098 verified a tree with other laws than its own.
    Effect: TV .0074 [.004, .110] for two children at V = 32.
    Weakest check: law/trees (the first token).
    """

    def refused(self, target: Law, draft: Law, token: Token, replacement: bool) -> tuple[Law, Law]:
        """The draft law stays."""
        return super().refused(target, draft, token, replacement=True)


class SiblingsWithoutReplacement(TreeVerifier):
    """Siblings were drawn independently, but are verified as if without replacement.

    Classes: C09.
    Report: none known of this form; NVIDIA/TensorRT-LLM 15098 verified a tree with other laws than its own.
    Effect: TV .0077 for two children at V = 32.
    Weakest check: law/trees (the first token).
    """

    def refused(self, target: Law, draft: Law, token: Token, replacement: bool) -> tuple[Law, Law]:
        """The refused token leaves the draft law."""
        return super().refused(target, draft, token, replacement=False)


class SiblingResidualNotNormalised(TreeVerifier):
    """After a refusal the next sibling is tested against a target law that wasn't normalised.

    Classes: C09.
    Report: none known of this form; the rule is asked about in SafeAILab/EAGLE 93, 95, 110.
    Effect: TV .023 [.004, .064] for two candidates that weren't drawn, V = 32.
    Weakest check: law/trees (the first token).
    """

    def refused(self, target: Law, draft: Law, token: Token, replacement: bool) -> tuple[Law, Law]:
        """The residual's weights."""
        _, rest = super().refused(target, draft, token, replacement)
        return self.excess(target, draft), rest

    def draw(
        self,
        law: Float64[Tensor, "laws vocabulary"],
        index: Int64[Tensor, " drawn"],
        numbers: Numbers,
    ) -> Int64[Tensor, " drawn"]:
        """The added token is drawn from the weights as it should be."""
        return super().draw(self.normalised(law, law), index, numbers)


TREE_FAULTS: tuple[tuple[str, type[TreeVerifier]], ...] = (
    ("tree_with_replacement", SiblingsWithReplacement),
    ("tree_without_replacement", SiblingsWithoutReplacement),
    ("tree_not_renormalised", SiblingResidualNotNormalised),
)
"""Names and classes."""
