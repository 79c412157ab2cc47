"""Medusa's typical acceptance: fast, and not exact.

Source: Cai et al. 2024, *Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads*
(arXiv 2401.10774). Kept because engines offer it where exactness is promised (vLLM #5131): an audit must
refute its exactness.
"""

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from tokenlaw.impl.speculative.draws import chosen, draw
from tokenlaw.impl.speculative.random import RowNumbers, Use
from tokenlaw.impl.speculative.steps import (
    SampledDrafts,
    emitted_tokens,
    is_draft,
    run_length,
    tokens_to_read,
)
from tokenlaw.spec.batch_checks import check_batch
from tokenlaw.spec.generation_contracts import APPROXIMATE, VerifyBatch

EPSILON, DELTA = 0.09, 0.3
"""Thresholds of Medusa's published code; delta is the square root of epsilon."""


class TypicalAcceptance(SampledDrafts):
    """Accepts drafts that are typical of the target, without a random number.

    Draft x is accepted if ``p(x) > min(epsilon, delta * exp(-H(p)))``, where p is the target's law at its
    position and H its entropy in nats; the law that the draft was drawn from doesn't matter. Drafts are
    accepted up to the first one that isn't typical, and one token is added: the most probable one, as in the
    paper, or a sampled one. For greedy requests it accepts exactly the greedy tokens.

    Parameters
    ----------
    epsilon : the hard threshold, in 0 .. 1.
    delta : the factor of the entropy-dependent threshold, at least 0.
    greedy : whether the added token is the most probable one (of several the lowest id), or is drawn from p.
    """

    claims = APPROXIMATE

    def __init__(self, epsilon: float = EPSILON, delta: float = DELTA, *, greedy: bool = True) -> None:
        self.epsilon, self.delta, self.greedy = epsilon, delta, greedy

    def verify(self, batch: VerifyBatch, *, seed: int) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens; only a sampled added token depends on the seed.

        Raises
        ------
        TypeError, ValueError
            As `tokenlaw.spec.batch_checks.check_batch`.
        """
        check_batch(batch)
        laws = batch.target_probs
        is_typical = self._is_typical(laws[:, :-1], tokens_to_read(batch))
        accepted = run_length(is_draft(batch) & is_typical)
        law = laws[torch.arange(len(accepted), device=accepted.device), accepted]
        numbers = RowNumbers(seed, batch.params).uniforms(Use.EXTRA_TOKEN, 1)[:, 0]
        extra = law.argmax(-1) if self.greedy else draw(law, numbers)
        return emitted_tokens(batch.draft_tokens, accepted, extra)

    def _is_typical(
        self, laws: Float64[Tensor, "batch drafts vocabulary"], tokens: Int64[Tensor, "batch drafts"]
    ) -> Bool[Tensor, "batch drafts"]:
        entropy = torch.special.entr(laws).sum(-1)
        threshold = (self.delta * torch.exp(-entropy)).clamp(max=self.epsilon)
        return chosen(laws, tokens) > threshold
