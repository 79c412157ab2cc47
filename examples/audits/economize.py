"""economize: its ``rejection`` verifier, for chains and for trees.

The verifier takes logits and a selector that makes probabilities of them; it gets logarithms of the
probabilities after the sampling parameters, and the selector that samples them as they are. The selector's
generator, seeded by the call's seed, draws everything. Ragged lengths, rows without drafts, and drafts that
weren't drawn are its own.
"""

from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from examples.audits.packages import installed_version, package_module
from tokenlaw.impl.adapters.verify_rows import packed
from tokenlaw.spec.contracts import VERIFIER, Implementation
from tokenlaw.spec.generation_contracts import NO_TOKEN, TreeBatch, VerifyBatch

PACKAGE = "economize"


class RejectionVerifier:
    """A `Verifier` around ``economize.decoding.verifiers.RejectionVerifier``, with capability ``trees``."""

    def __init__(self) -> None:
        decoding = package_module("economize.decoding", PACKAGE)
        verifiers = package_module("economize.decoding.verifiers", PACKAGE)
        selectors = package_module("economize.decoding.selectors", PACKAGE)
        protocols = package_module("economize.decoding.protocols", PACKAGE)
        self._verifier: Any = verifiers.RejectionVerifier(decoding.DecodeConfig(verifier="rejection"))
        self._sampler, self._draft = selectors.TopPSampler, protocols.Draft

    def verify(self, batch: VerifyBatch, *, seed: int) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens; see `Verifier.verify`."""
        lengths: list[int] = batch.num_draft_tokens.tolist()
        width = max(lengths, default=0)
        behind = torch.arange(width, device=batch.draft_tokens.device) >= batch.num_draft_tokens[:, None]
        drafts = batch.draft_tokens[:, :width].masked_fill(behind, -1)
        probs = None if batch.draft_probs is None else batch.draft_probs[:, :width].float()
        accepted, following = self._verifier.verify_batch(
            batch.target_probs[:, : width + 1].float().log(),
            self._draft(drafts, lengths, probs=probs),
            self._sampler(seed=seed % 2**63),
            drafts,
            [0] * len(lengths),
        )
        pairs = zip(drafts.tolist(), accepted.tolist(), following.tolist(), strict=True)
        return packed([[*row[:count], token] for row, count, token in pairs], batch)

    def verify_tree(self, batch: TreeBatch, *, seed: int) -> Int64[Tensor, "batch depth+1"]:
        """Emitted tokens of a tree; the laws of the children are those after their earlier siblings."""
        rows, nodes = batch.tokens.shape
        parents = torch.tensor(batch.parents, device=batch.tokens.device).expand(rows, nodes)
        paths, following = self._verifier.verify_tree(
            batch.target_probs.float().log(),
            self._draft(batch.tokens, [nodes] * rows, parents, child_laws(batch)),
            self._sampler(seed=seed % 2**63),
        )
        emitted = torch.full((rows, batch.depth + 1), NO_TOKEN, device=batch.tokens.device)
        for row, (path, token) in enumerate(zip(paths, following, strict=True)):
            emitted[row, : len(path) + 1] = torch.tensor([*batch.tokens[row, path].tolist(), token])
        return emitted


def child_laws(batch: TreeBatch) -> Tensor | None:
    """Law that each node was drawn from, float32 ``[B, N, V]``; without replacement, less earlier ones.

    Where earlier siblings left nothing of the law, the tokens that didn't come yet are equally probable.
    """
    if batch.draft_probs is None:
        return None
    laws: Tensor = batch.draft_probs[:, [parent + 1 for parent in batch.parents]]
    if not batch.replacement:
        fresh = torch.ones_like(laws)
        for node, parent in enumerate(batch.parents):
            for sibling in [other for other in range(node) if batch.parents[other] == parent]:
                fresh[:, node].scatter_(-1, batch.tokens[:, sibling, None], 0.0)
        rest = laws * fresh
        laws = torch.where(rest.any(-1, keepdim=True), rest, fresh)
        laws = laws / laws.sum(-1, keepdim=True)
    return laws.float()


IMPLEMENTATION = Implementation(
    name=PACKAGE,
    version=installed_version(PACKAGE),
    factories={VERIFIER: RejectionVerifier},
    capabilities={VERIFIER: frozenset({"trees"})},
    summary="economize.decoding.verifiers.RejectionVerifier: chains and trees, batched",
)
