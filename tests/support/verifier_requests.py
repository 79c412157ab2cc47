"""Requests whose steps are known exactly, batches full of them, and how often each outcome was seen.

The models have order 1: rows of one batch differ in their last token, sampling parameters and number of
drafts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from tokenlaw.spec.generation_contracts import NO_TOKEN, Verifier, VerifyBatch
from tokenlaw.spec.laws import Tokens, normalised
from tokenlaw.spec.models import TableModel, in_floats
from tokenlaw.spec.row_laws import OFF_TOP_K, UNSEEDED, RowParameters, row_laws
from tokenlaw.spec.sampling import ProcessedModel, SamplingParameters
from tokenlaw.spec.speculation import StepOutcome, VerificationRule
from tokenlaw.spec.steps import step_law
from tokenlaw.stats.chi_square import chi_square

VOCABULARY = 4
DRAFTS = 2

Model = TableModel[float]
Draft = Callable[[Tensor, RowParameters, int], Int64[Tensor, " batch"]]
"""Draws drafts: logits ``[batch, vocabulary]``, parameters, position."""


def table(*rows: Sequence[int]) -> Model:
    """Order-1 model from integer weights: one row for each last token; the empty context is never met."""
    laws = [normalised([Fraction(weight) for weight in row]) for row in rows]
    contexts: dict[Tokens, Sequence[Fraction]] = {(token,): law for token, law in enumerate(laws)}
    return in_floats(TableModel(1, {(): laws[0], **contexts}))


TARGET = table((3, 2, 1, 2), (0, 5, 2, 2), (4, 1, 4, 0), (1, 1, 1, 1))
DRAFT = table((1, 2, 4, 2), (2, 1, 3, 3), (1, 5, 0, 3), (1, 1, 1, 1))
"""Zeros on either side, ties, and after token 3 equal laws."""


@dataclass(frozen=True)
class Request:
    """One kind of row."""

    last_token: int
    num_drafts: int = DRAFTS
    parameters: SamplingParameters = field(default_factory=SamplingParameters)
    seeded: bool = False


REQUESTS = (
    Request(0),
    Request(1, parameters=SamplingParameters(temperature=0.6, top_k=3)),
    Request(3, parameters=SamplingParameters(temperature=0.0)),
    Request(0, num_drafts=1, parameters=SamplingParameters(top_p=0.8)),
    Request(1, num_drafts=0),
    Request(2, parameters=SamplingParameters(temperature=1.5, min_p=0.3), seeded=True),
    Request(3, seeded=True),
)
"""Ragged, greedy and random rows, every truncation, rows with seeds of their own."""


def batch_of(requests: Sequence[Request], rows: int, draft: Draft) -> VerifyBatch:
    """A batch of ``rows`` rows: request i at rows i, i + n, i + 2n, ... of n requests."""
    kind = torch.arange(rows) % len(requests)
    params = row_parameters(requests, kind)
    target_table, draft_table = logit_table(TARGET), logit_table(DRAFT)
    tokens = torch.tensor([request.last_token for request in requests])[kind][:, None]
    for position in range(DRAFTS):
        drawn = draft(draft_table[tokens[:, -1]], params, position)
        tokens = torch.cat([tokens, drawn[:, None]], 1)
    return VerifyBatch(
        draft_tokens=tokens[:, 1:],
        num_draft_tokens=torch.tensor([request.num_drafts for request in requests])[kind],
        target_logits=target_table[tokens],
        draft_logits=draft_table[tokens[:, :-1]],
        params=params,
    )


def row_parameters(requests: Sequence[Request], kind: Int64[Tensor, " batch"]) -> RowParameters:
    asked = [request.parameters for request in requests]
    own = torch.tensor([request.seeded for request in requests])[kind]
    return RowParameters(
        temperature=torch.tensor([one.temperature for one in asked], dtype=torch.float64)[kind],
        top_k=torch.tensor([one.top_k or OFF_TOP_K for one in asked])[kind],
        top_p=torch.tensor([one.top_p or 1.0 for one in asked], dtype=torch.float64)[kind],
        min_p=torch.tensor([one.min_p or 0.0 for one in asked], dtype=torch.float64)[kind],
        seeds=torch.where(own, torch.arange(len(kind)), UNSEEDED),
    )


def logit_table(model: Model) -> Tensor:
    """Logits after each last token, float64 ``[vocabulary, vocabulary]``."""
    return torch.tensor([model((token,)) for token in range(VOCABULARY)], dtype=torch.float64).log()


def drawn_from_laws(seed: int) -> Draft:
    """A drafter that has nothing to do with the verifier."""
    generator = torch.Generator().manual_seed(seed)

    def draft(logits: Tensor, params: RowParameters, position: int) -> Tensor:
        return torch.multinomial(row_laws(logits, params), 1, generator=generator)[:, 0]

    return draft


def exact_law(rule: VerificationRule[float], request: Request) -> dict[StepOutcome, float]:
    """Joint law of accepted length and tokens of one step of the request."""
    return step_law(
        rule,
        target=ProcessedModel(TARGET, request.parameters),
        draft=ProcessedModel(DRAFT, request.parameters),
        prompt=(request.last_token,),
        draft_length=request.num_drafts,
    )


def smallest_p_value(
    verifier: Verifier,
    rule: VerificationRule[float],
    batch: VerifyBatch,
    *,
    seed: int,
    requests: Sequence[Request] = REQUESTS,
) -> float:
    """Of chi-square tests of the joint law of each request; 0 where an impossible outcome was seen."""
    emitted = verifier.verify(batch, seed=seed)
    p_values = []
    for place, request in enumerate(requests):
        law = exact_law(rule, request)
        assert all(len(outcome.tokens) == outcome.accepted + 1 for outcome in law)
        p_values.append(
            p_value({one.tokens: mass for one, mass in law.items()}, emitted[place :: len(requests)])
        )
    return min(p_values)


def p_value(law: dict[Tokens, float], emitted: Int64[Tensor, "batch tokens"]) -> float:
    """P-value of the emitted tokens of rows that have one law."""
    seen, counts = np.unique(emitted.numpy(), axis=0, return_counts=True)
    found = {
        tuple(token for token in row if token != NO_TOKEN): count
        for row, count in zip(seen.tolist(), counts.tolist(), strict=True)
    }
    if set(found) - set(law):
        return 0.0
    total = sum(law.values())
    observed = np.array([found.get(tokens, 0) for tokens in law])
    return chi_square(observed, np.array([mass / total for mass in law.values()])).p_value
