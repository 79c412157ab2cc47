"""Faults of reported log-probabilities: the tokens are right, what is said about them isn't."""

from dataclasses import replace

import torch
from jaxtyping import Float64
from torch import Tensor

from tokenlaw.impl.engine.verification import Verification
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.row_laws import OFF_MIN_P, OFF_TOP_K, OFF_TOP_P, row_laws

RawLogits = Float64[Tensor, "drafts+1 vocabulary"]


class RawLogprobs(Verification):
    """Log-probabilities are those of the logits before masks, penalties and parameters.

    Classes: C22.
    Report: vllm-project/vllm 30846.
    Effect: wrong as soon as a request asks for anything.
    Weakest check: decoder/logprobs.
    """

    def logprobs(self, batch: VerifyBatch, place: int, tokens: list[int], raw: RawLogits) -> list[float]:
        """From the model."""
        return _picked(raw.log_softmax(-1), tokens)


class DraftLogprobs(Verification):
    """The log-probability of an accepted draft is that of the draft model.

    Classes: C22.
    Report: vllm-project/vllm 17876 (log-probabilities from the draft's side).
    Effect: wrong wherever the models differ.
    Weakest check: decoder/law-logprobs.
    """

    def logprobs(self, batch: VerifyBatch, place: int, tokens: list[int], raw: RawLogits) -> list[float]:
        """Of the law that each draft was drawn from."""
        laws = batch.target_probs[place].clone()
        if batch.draft_probs is not None and len(tokens) > 1:
            laws[: len(tokens) - 1] = batch.draft_probs[place, : len(tokens) - 1]
        return _picked(laws.log(), tokens)


class DraftLogprobsZero(Verification):
    """Accepted drafts are reported as certain.

    Classes: C22.
    Report: vllm-project/vllm 17876.
    Effect: log-probability 0.
    Weakest check: decoder/law-logprobs.
    """

    def logprobs(self, batch: VerifyBatch, place: int, tokens: list[int], raw: RawLogits) -> list[float]:
        """Only that of the last token."""
        found = super().logprobs(batch, place, tokens, raw)
        return [0.0] * (len(found) - 1) + found[-1:]


class LogprobsOfNextRow(Verification):
    """In a step of several tokens their log-probabilities change places.

    Classes: C22.
    Report: vllm-project/vllm 30846 (a buffer that others wrote meanwhile).
    Effect: wrong in steps with accepted drafts.
    Weakest check: decoder/law-logprobs.
    """

    def logprobs(self, batch: VerifyBatch, place: int, tokens: list[int], raw: RawLogits) -> list[float]:
        """Shifted by one."""
        found = super().logprobs(batch, place, tokens, raw)
        return found[1:] + found[:1]


class LogprobsBeforeTruncation(Verification):
    """Log-probabilities are those before top-k, top-p and min-p.

    Classes: C22.
    Report: huggingface/trl 6789.
    Effect: too low by the logarithm of what truncation keeps.
    Weakest check: decoder/logprobs.
    """

    def logprobs(self, batch: VerifyBatch, place: int, tokens: list[int], raw: RawLogits) -> list[float]:
        """Temperature only."""
        params = replace(
            batch.params,
            top_k=torch.full_like(batch.params.top_k, OFF_TOP_K),
            top_p=torch.full_like(batch.params.top_p, OFF_TOP_P),
            min_p=torch.full_like(batch.params.min_p, OFF_MIN_P),
        )
        return _picked(row_laws(batch.target_logits, params)[place].log(), tokens)


def _picked(logarithms: RawLogits, tokens: list[int]) -> list[float]:
    """One number of each row."""
    return [float(row[token]) for row, token in zip(logarithms, tokens, strict=False)]


DECODER_LOGPROB_FAULTS: tuple[tuple[str, type[object]], ...] = (
    ("raw_logprobs", RawLogprobs),
    ("draft_logprobs", DraftLogprobs),
    ("draft_logprobs_zero", DraftLogprobsZero),
    ("logprobs_of_next_row", LogprobsOfNextRow),
    ("logprobs_before_truncation", LogprobsBeforeTruncation),
)
"""Names and classes."""
