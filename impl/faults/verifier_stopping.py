"""Faults of the accepted length and of what is emitted: where a step ends."""

from typing import ClassVar

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from tokenlaw.impl.faults.verifier_base import RECOVERY, ChainVerifier
from tokenlaw.impl.faults.verifier_step import Step
from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch
from tokenlaw.spec.philox import derived_key


class PassesCounted(ChainVerifier):
    """The accepted length is the number of drafts that pass, also behind the first one that fails.

    Classes: C06.
    Report: huggingface/transformers 28508 (match count).
    Effect: drafts behind a rejection are kept; the first token is right for one draft only.
    Weakest check: law/length.
    """

    def accepted_length(self, step: Step, passes: Bool[Tensor, "batch drafts"]) -> Int64[Tensor, " batch"]:
        """Sum in place of the running product."""
        return (passes & step.valid).sum(1)


class NoStop(ChainVerifier):
    """A rejected draft is replaced, and verification goes on behind it.

    Classes: C06.
    Report: lucidrains/speculative-decoding 3.
    Effect: first token right, TV .11 of pairs, .22 of triples (V = 8, K = 3); every marginal right if all
    laws are the same.
    Weakest check: law/length.
    """

    def assemble(
        self, step: Step, accepted: Int64[Tensor, " batch"], added: Int64[Tensor, " batch"]
    ) -> Int64[Tensor, "batch drafts+1"]:
        """Every place holds a draft or its replacement; the bonus token follows always."""
        drafts = step.valid.shape[1]
        passes = self.decisions(step)
        full = step.batch.num_draft_tokens
        tokens = super().assemble(step, full, super().added_token(step, full))
        for place in range(drafts):
            rows = (step.valid[:, place] & ~passes[:, place]).nonzero()[:, 0]
            places = torch.full_like(rows, place)
            replaced = self._replacement(step, rows, places)
            tokens[rows, place] = torch.where(
                self.greedy(step)[rows], self.most_probable(step, rows, places), replaced
            )
        return tokens

    def _replacement(
        self, step: Step, rows: Int64[Tensor, " rejected"], places: Int64[Tensor, " rejected"]
    ) -> Int64[Tensor, " rejected"]:
        """Recovered tokens; each place has its own numbers."""
        if not len(rows):
            return rows
        seed = derived_key(step.seed, int(places[0]))
        numbers = self.numbers(step.batch.params, seed, RECOVERY, 1)[:, 0]
        return self.recover(step, rows, places, numbers[rows])


class FirstTokenBias(ChainVerifier):
    """1 % of the steps emit the target's most probable first token and nothing else, like a rejection.

    Classes: C06.
    Report: none known; stands for a rare wrong path, such as a fallback after a numerical failure.
    Effect: moves at most 1 % of the mass of the first token.
    Weakest check: law/support (where drafts are accepted for certain).
    """

    share: ClassVar[float] = 0.01

    def verify(
        self,
        batch: VerifyBatch,
        *,
        seed: int,
        uniforms: Float64[Tensor, "batch drafts"] | None = None,
        noise: Float64[Tensor, "batch drafts+1 vocabulary"] | None = None,
    ) -> Int64[Tensor, "batch drafts+1"]:
        """The right tokens in the other steps."""
        tokens = super().verify(batch, seed=seed, uniforms=uniforms, noise=noise)
        chance = self.numbers(batch.params, derived_key(seed, "fallback"), RECOVERY, 1, position=1)[:, 0]
        taken = (chance < self.share) & (batch.params.temperature > 0)
        tokens[taken] = NO_TOKEN
        tokens[taken, 0] = self.laws(batch).target[:, 0].argmax(-1).expand(len(tokens))[taken]
        return tokens


class SmallFirstTokenBias(FirstTokenBias):
    """.3 % of the steps emit the target's most probable first token and nothing else, like a rejection.

    Classes: C06.
    Report: none known; stands for a rare wrong path, such as a fallback after a numerical failure.
    Effect: moves at most .3 % of the mass of the first token.
    Weakest check: law/support (where drafts are accepted for certain).
    """

    share = 0.003


class SmallestFirstTokenBias(FirstTokenBias):
    """.1 % of the steps emit the target's most probable first token and nothing else, like a rejection.

    Classes: C06.
    Report: none known; stands for a rare wrong path, such as a fallback after a numerical failure.
    Effect: moves at most .1 % of the mass of the first token.
    Weakest check: law/support (where drafts are accepted for certain).
    """

    share = 0.001


STOPPING_FAULTS: tuple[tuple[str, type[ChainVerifier]], ...] = (
    ("sum_not_cumprod", PassesCounted),
    ("no_stop", NoStop),
    ("bias_1pct", FirstTokenBias),
    ("bias_0.3pct", SmallFirstTokenBias),
    ("bias_0.1pct", SmallestFirstTokenBias),
)
"""Names and classes."""
