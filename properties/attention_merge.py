"""Rule K22: cut every row into parts, ask for the state of each, and let the implementation merge them."""

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import torch
from msgspec.structs import replace
from torch import Tensor

from tokenlaw.properties.attention_cases import AttentionCase
from tokenlaw.properties.attention_findings import check_pair, check_tensor
from tokenlaw.properties.attention_subject import Answer, Expected, Subject
from tokenlaw.properties.attention_tensors import Call, make_call
from tokenlaw.spec.attention_bound import ACCUMULATE, SMALLEST, UNIT_ROUNDOFF


def merge_of_parts(
    subject: Subject, case: AttentionCase, whole: Call, *, reverse: bool
) -> tuple[Answer, Callable[[torch.dtype], tuple[Tensor, Tensor]]]:
    """Merged answer of the implementation, and bounds on its output and log-sum-exp by dtype of scores."""
    cuts = [_cuts(case.splits, length) for length in case.lengths]
    parts = [
        _state(subject, case, whole, [row[index : index + 2] for row in cuts])
        for index in range(len(case.splits) + 1)
    ]
    subject.counts["merged parts"] += len(parts) * len(case.lengths)
    subject.counts["empty parts"] += sum(low == high for row in cuts for low, high in pairwise(row))
    ordered = parts[::-1] if reverse else parts
    outputs = torch.stack([state.output for state, *_ in ordered])
    lses = torch.stack([_lse(state) for state, *_ in ordered])
    dtype = whole.query.dtype
    result = subject.attention.merge(outputs.to(dtype).to(subject.device), lses.float().to(subject.device))
    output, lse = check_pair("merge", result)
    check_tensor("merged output", output, tuple(whole.query.shape), None)
    check_tensor("merged lse", lse, tuple(whole.query.shape[:-1]), None)
    merged = Answer(output.detach().double().cpu(), lse.detach().double().cpu())

    @cache
    def bounds(score_dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        states = [subject.expect(part, call, score_dtype) for _, part, call in parts]
        return _bounds(states, subject.expect(case, whole, score_dtype), dtype)

    return merged, bounds


def _cuts(splits: tuple[int, ...], length: int) -> list[int]:
    """Positions 0, cuts in order, length; equal neighbours make an empty part.

    >>> _cuts((5, 1), 3)
    [0, 1, 1, 3]
    """
    return [0, *sorted(split % (length + 1) for split in splits), length]


def _lse(answer: Answer) -> Tensor:
    assert answer.lse is not None
    return answer.lse


def _state(
    subject: Subject, case: AttentionCase, whole: Call, spans: list[list[int]]
) -> tuple[Answer, AttentionCase, Call]:
    """State of one part of every row, as the implementation gives it, and the call that asks for it.

    An implementation without ``empty`` isn't asked about rows without keys: their state is written down.
    """
    lengths = tuple(high - low for low, high in spans)
    part = replace(case, lengths=lengths, shared_blocks=0, splits=())
    slices = [slice(low, high) for low, high in spans]
    keys = [row[span] for row, span in zip(whole.keys, slices, strict=True)]
    values = [row[span] for row, span in zip(whole.values, slices, strict=True)]
    call = make_call(part, subject.device, (whole.query, keys, values))
    if "empty" in subject.capabilities or all(lengths):
        return subject.ask(call, lse=True), part, call
    output = torch.zeros(call.query.shape, dtype=torch.float64)
    answer = Answer(output, torch.full_like(output[..., 0], -math.inf))
    kept = [row for row, length in enumerate(lengths) if length]
    if kept:
        asked = subject.ask(
            call,
            lse=True,
            query=call.query[kept],
            block_tables=call.block_tables[kept],
            lengths=call.lengths[kept],
        )
        answer.output[kept], _lse(answer)[kept] = asked.output, _lse(asked)
    return answer, part, call


def _bounds(parts: list[Expected], whole: Expected, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Bounds on the merged output and log-sum-exp.

    With exact weights w_i = exp(lse_i - lse) the parts bring sum w_i b_i, b_i the bounds of their outputs.
    The exponents err by at most theta = max of the bounds on lse_i + 8 U (max abs(lse_i) + 8), with U =
    ``ACCUMULATE`` (subtract, exp, sum, as in step 2 of `tokenlaw.spec.attention_bound`), each weight hence
    by a factor of exp(+-2 theta). Sum and division: 2 (number of parts + 2) U; rounding of the output to
    its dtype: u and underflow.
    """
    unit = ACCUMULATE[dtype]
    outputs, sums = torch.stack([part.output for part in parts]), torch.stack([part.lse for part in parts])
    finite = sums > -math.inf
    shifted = sums - torch.nan_to_num(whole.lse, neginf=0.0)
    weights = shifted.exp().masked_fill(~finite, 0.0)[..., None]
    largest = torch.where(finite, sums.abs(), 0.0).amax(0)
    theta = torch.stack([part.lse_bound for part in parts]).amax(0) + 8 * unit * (largest + 8)
    inherited = (weights * torch.stack([part.output_bound for part in parts])).sum(0)
    size = (weights * outputs.abs()).sum(0) + inherited
    relative = torch.expm1(2 * theta)[..., None] + UNIT_ROUNDOFF[dtype] + 2 * (len(parts) + 2) * unit
    bound = inherited + relative * (1 + relative) * size + SMALLEST[dtype]
    return bound, theta + 2 * (len(parts) + 2) * unit
