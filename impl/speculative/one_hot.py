"""The rule for drafts without probabilities (prompt lookup, n-grams), used for every draft.

Sources: Saxena 2023, *Prompt Lookup Decoding*, for such drafts; the rule is that of Leviathan et al. 2023,
*Fast Inference from Transformers via Speculative Decoding*, with one-hot draft laws.
The exact law is `tokenlaw.spec.speculation.deterministic_verification`.
"""

from dataclasses import replace

from jaxtyping import Float64, Int64
from torch import Tensor

from tokenlaw.impl.speculative.chain import chain_step
from tokenlaw.impl.speculative.steps import ForExtra, NumberedSteps, by_rows
from tokenlaw.spec.generation_contracts import EXACT, VerifyBatch


class OneHotVerifier(NumberedSteps):
    """Ignores the laws that drafts were drawn from: accepts x with probability p(x), else draws p without x.

    Exact whatever the drafts' law is, as long as they don't depend on the verifier's random numbers; only
    fewer drafts are accepted (reports: vLLM #40149, SGLang #10308).
    """

    claims = EXACT

    def step(
        self, batch: VerifyBatch, for_tests: Float64[Tensor, "batch drafts"], for_extra: ForExtra
    ) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens, by the chain rule without draft laws."""
        return by_rows(chain_step, replace(batch, draft_logits=None), for_tests, for_extra)
