"""Which drafts of each row stay, which token follows them, and how probable each of them was."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from tokenlaw.impl.engine.processors import Processors, row_parameters
from tokenlaw.impl.engine.samples import Row, uniforms_of
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.impl.speculative.random import Use
from tokenlaw.impl.speculative.steps import NumberedSteps
from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch
from tokenlaw.spec.row_laws import RowParameters

RowLogits = list[Float64[Tensor, "drafts+1 vocabulary"]]
"""Raw logits of the target for each row: behind its last token, and behind each draft."""


class Emitted(NamedTuple):
    """A token that a step gives.

    Attributes
    ----------
    token : its number.
    logprob : natural logarithm of its probability under the target's processed law.
    """

    token: int
    logprob: float


class Verification:
    """Chain rejection sampling of all rows of a step at once.

    Parameters
    ----------
    processors : masks and penalties.

    Attributes
    ----------
    verifier : the rule.
    """

    verifier: NumberedSteps = ChainVerifier()

    def __init__(self, processors: Processors) -> None:
        self.processors = processors

    def __call__(self, rows: list[Row], raw: RowLogits) -> list[list[Emitted]]:
        """Tokens that each row emits: accepted drafts, then one further token."""
        batch = self.batch(rows, raw)
        emitted = self.decide(batch, rows).tolist()
        found = []
        for place, tokens in enumerate(emitted):
            kept = [token for token in tokens if token != NO_TOKEN]
            logprobs = self.logprobs(batch, place, kept, raw[place])
            found.append([Emitted(*pair) for pair in zip(kept, logprobs, strict=True)])
        return found

    def batch(self, rows: list[Row], raw: RowLogits) -> VerifyBatch:
        """What the verifier is given; rows with fewer drafts than others are padded."""
        drafts, vocabulary = max(len(row.drafts) for row in rows), raw[0].shape[1]
        tokens = torch.zeros((len(rows), drafts), dtype=torch.int64)
        target = torch.zeros((len(rows), drafts + 1, vocabulary), dtype=torch.float64)
        draft = torch.zeros((len(rows), drafts, vocabulary), dtype=torch.float64)
        for place, row in enumerate(rows):
            count = len(row.drafts)
            target[place, : count + 1] = self.target_logits(row, raw[place])
            if count:
                tokens[place, :count] = torch.tensor(row.drafts)
                draft[place, :count] = torch.stack(row.draft_logits)
        counts = torch.tensor([len(row.drafts) for row in rows], dtype=torch.int64)
        return VerifyBatch(tokens, counts, target, draft, self.parameters(rows))

    def target_logits(
        self, row: Row, raw: Float64[Tensor, "drafts+1 vocabulary"]
    ) -> Float64[Tensor, "drafts+1 vocabulary"]:
        """The target's logits after masks and penalties, at every position of the row.

        Behind an impossible draft nobody reads on, and any law will do. `ValueError` if no token is possible
        anywhere else.
        """
        processed = torch.stack([self.processors(one, row, place) for place, one in enumerate(raw)])
        possible = (processed > -math.inf).any(-1)
        for place in range(len(raw)):
            if not possible[place]:
                raise ValueError(f"no token is possible after {row.generated(place)}")
            if place < len(row.drafts) and processed[place, row.drafts[place]] == -math.inf:
                break
        return torch.where(possible[:, None], processed, 0.0)

    def parameters(self, rows: list[Row]) -> RowParameters:
        """Temperature and truncations of the rows."""
        return row_parameters([row.sample.request.sampling for row in rows])

    def decide(self, batch: VerifyBatch, rows: list[Row]) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens, by the random numbers of each row."""
        for_tests = uniforms_of(rows, Use.ACCEPTANCE, batch.shape[1])
        for_extra = uniforms_of(rows, Use.EXTRA_TOKEN, 1)[:, 0]
        return self.verifier.step(batch, for_tests, for_extra)

    def logprobs(
        self,
        batch: VerifyBatch,
        place: int,
        tokens: list[int],
        raw: Float64[Tensor, "drafts+1 vocabulary"],
    ) -> list[float]:
        """Logarithms of the probabilities of a row's emitted tokens, under the target's processed laws."""
        laws = batch.target_probs[place, : len(tokens)]
        shares = laws[torch.arange(len(tokens)), torch.tensor(tokens)]
        return [float(number) for number in shares.log().tolist()]
