"""Trees of a draft model's most probable tokens, as EAGLE-2 and EAGLE-3 verify them.

Source: Li et al. 2024, *EAGLE-2* (arXiv 2406.16858), for trees of the top k. Such candidates aren't random,
so their laws are one-hot. The exact law is
`tokenlaw.spec.tree_verification.deterministic_tree_verification`.
"""

from dataclasses import replace

from jaxtyping import Float64, Int64
from torch import Tensor

from tokenlaw.impl.speculative.tree import TreeVerifier
from tokenlaw.spec.batch_checks import check_batch, check_tree_batch
from tokenlaw.spec.generation_contracts import EXACT, TreeBatch, VerifyBatch


class TopKTreeVerifier(TreeVerifier):
    """Counts every candidate as certain, whatever the batch's draft laws say.

    A candidate is accepted with its probability in p_i; after a rejection its probability becomes zero and
    p_i is normalised. Exact for all candidates that don't depend on the verifier's random numbers, sampled
    ones too: users report it as a fault again and again (EAGLE #95, #110, #171, #183).

    A chain has the law of the one-hot rule, `tokenlaw.spec.speculation.deterministic_verification`.
    """

    claims = EXACT

    def verify(
        self, batch: VerifyBatch, *, seed: int, uniforms: Float64[Tensor, "batch drafts"] | None = None
    ) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens; ``uniforms`` decide about acceptance in place of numbers from the seed.

        Raises
        ------
        TypeError, ValueError
            As `TreeVerifier.verify`.
        """
        check_batch(batch)
        return super().verify(replace(batch, draft_logits=None), seed=seed, uniforms=uniforms)

    def verify_tree(self, batch: TreeBatch, *, seed: int) -> Int64[Tensor, "batch depth+1"]:
        """Emitted tokens; duplicates among siblings are allowed, their second one is always rejected.

        Raises
        ------
        TypeError, ValueError
            As `TreeVerifier.verify_tree`.
        """
        check_tree_batch(batch)
        return super().verify_tree(replace(batch, draft_logits=None), seed=seed)
