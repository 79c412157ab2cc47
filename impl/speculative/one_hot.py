"""The rule for drafts without probabilities (prompt lookup, n-grams), used for every draft.

Sources: Saxena 2023, *Prompt Lookup Decoding*, for such drafts; the rule is that of Leviathan et al. 2023,
*Fast Inference from Transformers via Speculative Decoding*, with one-hot draft laws.
The exact law is `tokenlaw.spec.speculation.deterministic_verification`.
"""

from dataclasses import replace

from jaxtyping import Float64, Int64
from torch import Tensor

from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.impl.speculative.steps import SampledDrafts
from tokenlaw.spec.generation_contracts import EXACT, VerifyBatch


class OneHotVerifier(SampledDrafts):
    """Ignores the laws that drafts were drawn from: accepts x with probability p(x), else draws p without x.

    Exact whatever the drafts' law is, as long as they don't depend on the verifier's random numbers; only
    fewer drafts are accepted (reports: vLLM #40149, SGLang #10308).
    """

    claims = EXACT
    precision = ChainVerifier.precision

    def verify(
        self,
        batch: VerifyBatch,
        *,
        seed: int,
        uniforms: Float64[Tensor, "batch drafts"] | None = None,
        noise: Float64[Tensor, "batch drafts+1 vocabulary"] | None = None,
    ) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens; ``uniforms`` and ``noise`` decide in place of numbers from the seed."""
        certain = replace(batch, draft_logits=None)
        return ChainVerifier().verify(certain, seed=seed, uniforms=uniforms, noise=noise)
