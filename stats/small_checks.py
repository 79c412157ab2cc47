"""Checks that need few rows and no statistics: replay, rows with seeds, decisions at chosen numbers."""

from collections import Counter
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.spec.philox import derived_key
from tokenlaw.spec.row_laws import UNSEEDED
from tokenlaw.stats.chain_laws import ROUNDING
from tokenlaw.stats.driver import Driver, uniforms
from tokenlaw.stats.protocol import check_emitted
from tokenlaw.stats.scenario import Tables

ROWS = 256
"""Rows of a small check, where the budget allows it."""

BOUNDARY_FACTOR = 4
"""So many times the rows are asked about decisions, in one call."""

ROWS_OF_CHECKS = 2 + 2 + BOUNDARY_FACTOR
"""So many times the rows are verified in all, at most."""


def replay(verifier: Any, tables: Tables, seed: int, exercised: Counter[str], rows: int = ROWS) -> str:
    """Verify one batch twice with one seed; what differs, or an empty text."""
    driver = Driver(verifier, tables, seed)
    step = driver.step(0, rows)
    again = verifier.verify(step.batch, seed=driver.call_seed(0))
    check_emitted(again, step.batch)
    exercised["replayed rows"] += rows
    return _difference(step.emitted, again, step.batch, "the same batch with the same seed")


def row_seeds(verifier: Any, tables: Tables, seed: int, exercised: Counter[str], rows: int = ROWS) -> str:
    """Verify rows with seeds in other company, at other places; what differs, or an empty text."""
    driver = Driver(verifier, tables, seed)
    batch = driver.batch(*driver.drawn(0, rows), driver.call_seed("row seeds", 0))
    device = batch.draft_tokens.device
    seeds = torch.arange(rows, device=device) * 7919 + derived_key(seed, "row seeds") % 10_007
    seeds = torch.where(torch.arange(rows, device=device) % 3 == 2, UNSEEDED, seeds)
    whole = _with_seeds(batch, seeds)
    first = verifier.verify(whole, seed=driver.call_seed("row seeds", 1))
    check_emitted(first, whole)
    generator = torch.Generator().manual_seed(driver.call_seed("row seeds", "order"))
    order = torch.randperm(rows, generator=generator).to(device)[: -(-rows * 3 // 4)]
    part = whole.rows(order)
    second = verifier.verify(part, seed=driver.call_seed("row seeds", 2))
    check_emitted(second, part)
    seeded = part.params.seeds != UNSEEDED if part.params.seeds is not None else order < 0
    exercised["seeded rows"] += int(seeded.sum())
    same = torch.where(seeded[:, None], first[order], second)
    return _difference(same, second, part, "a row with the same seed in another batch")


def boundary(verifier: Any, tables: Tables, seed: int, exercised: Counter[str], rows: int = ROWS) -> str:
    """Inject the numbers that decide about acceptance; what was decided wrongly, or an empty text.

    Numbers are 0, 2^-24, 1 - 2^-24, just below and above p / q, and p / q itself. Numbers within `ROUNDING`
    of p / q, relatively, may be decided either way: engines round the ratio. Only decisions are counted that
    nothing but a fault changes, each of which would be seen: those in front of the first such number.
    """
    driver = Driver(verifier, tables, seed)
    batch = driver.batch(*driver.drawn(0, rows * BOUNDARY_FACTOR), driver.call_seed("boundary", 0))
    ratios = ratios_of(batch)
    numbers = _numbers(ratios, seed)
    emitted = verifier.verify(batch, seed=driver.call_seed("boundary"), uniforms=numbers)
    check_emitted(emitted, batch)
    accepted = (emitted >= 0).sum(-1) - 1
    must, may = (numbers < ratios * (1 - ROUNDING)), (numbers <= ratios * (1 + ROUNDING)) & (ratios > 0)
    least, most = _prefix(must, batch), _prefix(may, batch)
    stops = (most == least) & (least < batch.num_draft_tokens)  # a draft that has to be rejected
    exercised["decisions"] += int(least.sum() + stops.sum())
    exercised["accepted"] += int(accepted.sum())
    exercised["rejected"] += int((accepted < batch.num_draft_tokens).sum())
    wrong = (accepted < least) | (accepted > most)
    if not bool(wrong.any()):
        return ""
    row = int(wrong.nonzero()[0])
    return (
        f"row {row}: {int(accepted[row])} drafts were accepted instead of {int(least[row])} to "
        f"{int(most[row])}; the ratios p / q of its drafts are {_listed(ratios[row])}, the numbers were "
        f"{_listed(numbers[row])}"
    )


def ratios_of(batch: VerifyBatch) -> Float64[Tensor, "batch drafts"]:
    """p / q of each draft; p where drafts were not drawn."""
    tokens = batch.draft_tokens[..., None]
    target = batch.target_probs[:, :-1].gather(-1, tokens)[..., 0]
    draft = batch.draft_probs
    return target if draft is None else target / draft.gather(-1, tokens)[..., 0]


def _numbers(ratios: Float64[Tensor, "batch drafts"], seed: int) -> Float64[Tensor, "batch drafts"]:
    """One of the chosen numbers for each draft."""
    rows, drafts = ratios.shape
    pick = uniforms(derived_key(seed, "boundary"), torch.arange(rows, device=ratios.device), drafts)
    tiny = 2.0**-24
    choices = torch.stack(
        [
            torch.zeros_like(ratios),
            torch.full_like(ratios, tiny),
            torch.full_like(ratios, 1 - tiny),
            ratios * (1 - 1e-4),
            ratios * (1 + 1e-4),
            ratios,
        ]
    ).clamp(0.0, 1 - tiny)  # the largest number below one that a float32 holds
    index = (torch.stack(pick, 1) * len(choices)).long()
    return choices.gather(0, index[None])[0]


def _prefix(passed: Bool[Tensor, "batch drafts"], batch: VerifyBatch) -> Tensor:
    """Length of the leading run of accepted drafts."""
    there = torch.arange(passed.shape[1], device=passed.device) < batch.num_draft_tokens[:, None]
    return (passed & there).long().cumprod(-1).sum(-1)


def _with_seeds(batch: VerifyBatch, seeds: Tensor) -> VerifyBatch:
    return replace(batch, params=replace(batch.params, seeds=seeds))


def _difference(first: Tensor, second: Tensor, batch: VerifyBatch, what: str) -> str:
    differing = (first != second).any(-1)
    if not bool(differing.any()):
        return ""
    row = int(differing.nonzero()[0])
    return (
        f"{what} gave other tokens in {int(differing.sum())} of {len(first)} rows; row {row}: "
        f"{first[row].tolist()}, then {second[row].tolist()} (drafts {batch.draft_tokens[row].tolist()})"
    )


def _listed(numbers: Tensor) -> str:
    return "[" + ", ".join(f"{number:.9g}" for number in numbers.tolist()) + "]"
