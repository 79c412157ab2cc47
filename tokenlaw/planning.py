"""What ``tokenlaw plan`` says: how many samples see a deviation, and how long they take here."""

import time
from typing import Any

import torch

from tokenlaw.errors import BadUse
from tokenlaw.impl.speculative import ChainVerifier
from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.stats.planner import plan

SCHEMA = "tokenlaw.plan/1"
MOST_CELLS = 2**24
_MEASURED_SECONDS = 0.3
_ROWS = 2**16
"""Rows of a measured batch."""


def planned(tv: float, vocabulary: int, tokens: int, *, alpha: float, beta: float) -> dict[str, Any]:
    """Samples for the law of so many tokens, seconds on this machine, and the sentence of a report.

    Parameters
    ----------
    tv : total variation that is to be seen.
    vocabulary : number of tokens that the law is about.
    tokens : how many of them in a row.
    alpha, beta : probabilities of a false alarm and of a miss.

    Raises
    ------
    BadUse
        A number is out of its range, or the law has more than `MOST_CELLS` outcomes.
    """
    if vocabulary < 2 or tokens < 1:
        raise BadUse(f"vocabulary {vocabulary}, tokens {tokens}: expected at least 2, and at least 1")
    cells = _cells(vocabulary, tokens)
    try:
        found = plan(tv, cells, alpha=alpha, beta=beta)
    except ValueError as error:
        raise BadUse(str(error)) from None
    except ArithmeticError:
        raise BadUse(f"no number of samples sees a total variation of {tv}") from None
    rate = rows_per_second(vocabulary, tokens)
    return {
        "schema": SCHEMA,
        "tv": tv,
        "vocabulary": vocabulary,
        "tokens": tokens,
        "cells": cells,
        "alpha": alpha,
        "beta": beta,
        "chi_square_samples": found.chi_square,
        "gate_samples": found.gate,
        "rows_per_second": rate,
        "chi_square_seconds": found.chi_square / rate,
        "gate_seconds": found.gate / rate,
        "test": found.test,
        "samples": found.samples,
        "sentence": found.sentence,
    }


def _cells(vocabulary: int, tokens: int) -> int:
    """Outcomes of a law; a loop, since the power itself could be too long a number to be made."""
    cells = 1
    for _ in range(tokens):
        cells *= vocabulary
        if cells > MOST_CELLS:
            raise BadUse(
                f"{tokens} tokens of a vocabulary of {vocabulary} have more than {MOST_CELLS:,} outcomes; "
                "plan for fewer tokens"
            )
    return cells


def rows_per_second(vocabulary: int, tokens: int) -> float:
    """Rows that the reference chain verifier verifies here in a second, on one thread.

    A row emits up to ``tokens`` tokens (up to two where one is asked about), and all rows share one table.
    """
    batch = _batch(vocabulary, drafts=max(tokens - 1, 1))
    verifier, seed = ChainVerifier(), 0
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        verifier.verify(batch, seed=seed)
        started = time.perf_counter()
        while (passed := time.perf_counter() - started) < _MEASURED_SECONDS or seed == 0:
            seed += 1
            verifier.verify(batch, seed=seed)
    finally:
        torch.set_num_threads(threads)
    return seed * _ROWS / passed


def _batch(vocabulary: int, drafts: int) -> VerifyBatch:
    """Rows of one random table, with drafts from the draft's laws."""
    random = torch.Generator().manual_seed(0)
    target = torch.randn(1, drafts + 1, vocabulary, generator=random)
    draft = torch.randn(1, drafts, vocabulary, generator=random)
    tokens = torch.multinomial(torch.softmax(draft[0], -1), _ROWS, replacement=True, generator=random)
    return VerifyBatch(
        draft_tokens=tokens.T.contiguous(),
        num_draft_tokens=torch.full((_ROWS,), drafts),
        target_logits=target.expand(_ROWS, -1, -1),
        draft_logits=draft.expand(_ROWS, -1, -1),
        params=RowParameters.default(_ROWS),
    )


def in_lines(data: dict[str, Any]) -> list[str]:
    """The same for people."""
    chance = f"{1 - data['beta']:.12g}"
    return [
        f"TV >= {data['tv']:g} over {data['cells']:,} outcomes ({data['tokens']} of {data['vocabulary']} "
        f"tokens), seen with probability {chance}, alpha {data['alpha']:g}",
        f"chi-square: {data['chi_square_samples']:,} samples, {_duration(data['chi_square_seconds'])} here",
        f"gate:       {data['gate_samples']:,} samples at most, {_duration(data['gate_seconds'])} here",
        f"fewest:     {data['samples']:,} samples, the {data['test']}",
        f"measured:   {data['rows_per_second']:,.0f} rows a second, reference chain verifier, one CPU thread",
        f"report:     {data['sentence']}",
    ]


def _duration(seconds: float) -> str:
    """Seconds, minutes or hours.

    >>> _duration(0.5), _duration(90), _duration(7200)
    ('0.5 s', '1.5 min', '2 h')
    """
    for limit, unit, length in ((60, "s", 1), (3600, "min", 60)):
        if seconds < limit:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds / 3600:,.3g} h"
