"""From the logits of a model to those that a row of a request is sampled from: masks, bias, penalties.

The rules and their order are those of `tokenlaw.spec.sampling.process_logits`; temperature and truncations
come later, from `RowParameters`.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float64
from torch import Tensor

from tokenlaw.impl.engine.samples import Row
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.requests import DecodeRequest, Grammar
from tokenlaw.spec.row_laws import OFF_MIN_P, OFF_TOP_K, OFF_TOP_P, RowParameters
from tokenlaw.spec.sampling import SamplingParameters

Logits = Float64[Tensor, " vocabulary"]


class Processors:
    """Masks, bias and penalties of a row, at the position behind some of its drafts.

    Each rule is a method, and so is what the rule looks at.
    """

    def __call__(self, logits: Logits, row: Row, position: int) -> Logits:
        """Logits of the token that follows the first ``position`` drafts of the row.

        Minus infinity everywhere where no token is possible.
        """
        return self.penalised(self.biased(self.masked(logits, row, position), row, position), row, position)

    def masked(self, logits: Logits, row: Row, position: int) -> Logits:
        """Logits with minus infinity for every token that isn't allowed."""
        allowed = self.allowed(row, position)
        if allowed is None:
            return logits
        kept = torch.tensor(sorted(allowed), dtype=torch.int64)
        return torch.full_like(logits, -math.inf).index_copy_(0, kept, logits[kept])

    def allowed(self, row: Row, position: int) -> frozenset[int] | None:
        """Tokens that grammar and parameters allow; None allows all."""
        request = row.sample.request
        by_grammar = self.allowed_by_grammar(request, self.seen_by_grammar(row, position))
        if by_grammar is None or request.sampling.allowed_tokens is None:
            return request.sampling.allowed_tokens if by_grammar is None else by_grammar
        return by_grammar & request.sampling.allowed_tokens

    def allowed_by_grammar(self, request: DecodeRequest, generated: Tokens) -> frozenset[int] | None:
        """Tokens that the grammar allows; None where there is no grammar, or a token before broke it."""
        return None if request.grammar is None else allowed_after(request.grammar, generated)

    def biased(self, logits: Logits, row: Row, position: int) -> Logits:
        """Logits with the bias of each token added."""
        bias = row.sample.request.sampling.logit_bias
        if not bias:
            return logits
        return logits.index_add(
            0, torch.tensor(list(bias)), torch.tensor(list(bias.values()), dtype=logits.dtype)
        )

    def seen_by_grammar(self, row: Row, position: int) -> Tokens:
        """What leads to the grammar's state: everything generated, the drafts before the position too."""
        return row.generated(position)

    def penalised(self, logits: Logits, row: Row, position: int) -> Logits:
        """Logits after repetition, presence and frequency penalty."""
        sampling = row.sample.request.sampling
        history = self.history(row, position)
        if sampling.repetition_penalty != 1.0:
            seen = sorted({*row.sample.request.prompt, *history})
            logits = repetition_penalised(logits, sampling.repetition_penalty, seen)
        if sampling.presence_penalty or sampling.frequency_penalty:
            tokens = torch.tensor(history, dtype=torch.int64)
            counts = torch.bincount(tokens, minlength=len(logits)).to(logits.dtype)
            presence = sampling.presence_penalty * (counts > 0).to(logits.dtype)
            logits = logits - presence - sampling.frequency_penalty * counts
        return logits

    def history(self, row: Row, position: int) -> Tokens:
        """What the penalties see of the output: everything generated, the drafts before the position too."""
        return row.generated(position)


def allowed_after(grammar: Grammar, generated: Sequence[int]) -> frozenset[int] | None:
    """Tokens that a grammar allows after others; None if it doesn't allow one of those.

    >>> zero_then_any = Grammar(({0: 1}, {0: 1, 1: 1}))
    >>> sorted(allowed_after(zero_then_any, (0,)) or ()), allowed_after(zero_then_any, (1,))
    ([0, 1], None)
    """
    state: int | None = 0
    for token in generated:
        state = None if state is None else grammar.transitions[state].get(token)
    return None if state is None else frozenset(grammar.transitions[state])


def repetition_penalised(logits: Logits, penalty: float, seen: Sequence[int]) -> Logits:
    """Positive logits of seen tokens divided by the penalty, negative ones multiplied with it."""
    places = torch.tensor(seen, dtype=torch.int64)
    values = logits[places]
    return logits.index_copy(0, places, torch.where(values > 0, values / penalty, values * penalty))


def row_parameters(requested: Sequence[SamplingParameters]) -> RowParameters:
    """Temperature and truncations of several rows."""
    return RowParameters(
        temperature=torch.tensor([one.temperature for one in requested], dtype=torch.float64),
        top_k=torch.tensor([_or(one.top_k, OFF_TOP_K) for one in requested], dtype=torch.int64),
        top_p=torch.tensor([_or(one.top_p, OFF_TOP_P) for one in requested], dtype=torch.float64),
        min_p=torch.tensor([_or(one.min_p, OFF_MIN_P) for one in requested], dtype=torch.float64),
    )


def _or(value: float | None, off: float) -> float:
    return off if value is None else value
