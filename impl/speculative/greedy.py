"""Greedy verification, whatever the temperature: a rule that isn't exact, and says so."""

from jaxtyping import Int64
from torch import Tensor

from tokenlaw.impl.speculative.sample_and_match import matched_tokens
from tokenlaw.impl.speculative.steps import SampledDrafts
from tokenlaw.spec.batch_checks import check_batch
from tokenlaw.spec.generation_contracts import APPROXIMATE, VerifyBatch


class GreedyVerifier(SampledDrafts):
    """Accepts drafts while they equal the target's most probable token, then emits that token.

    Stern, Shazeer and Uszkoreit 2018, *Blockwise Parallel Decoding for Deep Autoregressive Models*. Decodes
    as if every temperature was 0, so only requests at temperature 0 get what they ask for: it is not exact,
    and a run that doesn't refute its exactness has no power. Engines that do this silently are a class of
    faults. Of several largest logits the lowest token id wins.
    """

    claims = APPROXIMATE

    def verify(self, batch: VerifyBatch, *, seed: int) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens; no random number is used.

        Raises
        ------
        TypeError, ValueError
            As `tokenlaw.spec.batch_checks.check_batch`.
        """
        check_batch(batch)
        return matched_tokens(batch, batch.target_logits.argmax(-1))
