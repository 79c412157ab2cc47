"""Trees of a draft model's most probable tokens, as EAGLE-2 and EAGLE-3 verify them.

Source: Li et al. 2024, *EAGLE-2* (arXiv 2406.16858), for trees of the top k. Such candidates aren't random,
so their laws are one-hot. The exact law is
`tokenlaw.spec.tree_verification.deterministic_tree_verification`.
"""

from tokenlaw.impl.speculative.tree import TreeVerifier
from tokenlaw.spec.generation_contracts import EXACT


class TopKTreeVerifier(TreeVerifier):
    """Counts every candidate as certain, whatever the batch's draft laws say.

    A candidate is accepted with its probability in p_i; after a rejection its probability becomes zero and
    p_i is normalised. Exact for all candidates that don't depend on the verifier's random numbers, sampled
    ones too: users report it as a fault again and again (EAGLE #95, #110, #171, #183).

    Duplicates among siblings are allowed: the second one is always rejected.

    A chain has the law of the one-hot rule, `tokenlaw.spec.speculation.deterministic_verification`.
    """

    claims = EXACT
    certain = True
