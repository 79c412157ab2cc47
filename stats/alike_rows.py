"""Rows that are all alike, down to their drafts: in small calls, and with seeds that count up.

Whatever two of them have in common then is their random numbers. Small batches have kernels of their own in
some engines, and users number requests and calls 0, 1, 2: seeds next to each other are what is common.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from tokenlaw.spec.generation_contracts import VerifyBatch
from tokenlaw.stats.dependence import independence_log_e
from tokenlaw.stats.driver import LARGEST_SEED, Driver
from tokenlaw.stats.protocol import check_emitted
from tokenlaw.stats.small_checks import ratios_of
from tokenlaw.stats.verifier_checks import CALLS, ROWS

SMALL_CALLS = (3, 4, 5, 6, 7, 8, 9) * 12
"""Rows of the calls without row seeds."""

SEEDED_CALLS = (256,) * 8
"""Rows of the calls with row seeds."""

ALIKE_ROWS = sum(SMALL_CALLS) + sum(SEEDED_CALLS)
"""Rows of these calls in all."""

CALL_SEEDS = {"small": (0, 1_000), "large": (10**9, 2 * 10**9)}
"""Between which numbers seeds of consecutive calls are."""

PAIRS_OF_CALLS, ROWS_OF_CALL = 4, 32
"""Calls that are compared for each of `CALL_SEEDS`, and rows of each."""

ALIKE_CALLS = len(CALL_SEEDS) * 2 * PAIRS_OF_CALLS * ROWS_OF_CALL
"""Rows of these calls in all."""

HALF = 0
"""Stands for the distance of half a batch, rounded down: that of two devices that share a batch."""

ALIKE_DISTANCES = (1, 2, 3, 4, HALF)
"""Distances at which rows are compared."""

ALIKE_TESTS = {ROWS: 2 * len(ALIKE_DISTANCES), CALLS: len(CALL_SEEDS)}
"""How many comparisons there are: those of rows without row seeds, and with them."""

_CANDIDATES, _FIRST = 512, 2
"""Rows of which the most telling one is taken, and how many of its drafts must be undecided."""


def dependence_of_rows(driver: Driver, most_rows: int) -> dict[str, float]:
    """Log e-values against the independence of rows, by what was compared; none without drafts.

    What is compared is how many drafts the rows accept: a law whose margins may be anything.

    Parameters
    ----------
    driver : of a scenario with drafts.
    most_rows : rows of a call at most.
    """
    scenario = driver.tables.scenario
    if not scenario.drafts:
        return {}
    row = _telling_row(driver)
    seeded = {"": SMALL_CALLS} | ({", seeds that count up": SEEDED_CALLS} if scenario.seeded else {})
    found = {}
    for what, sizes in seeded.items():
        answers = list(_accepted(driver, row, what, [min(size, most_rows) for size in sizes]))
        for distance in ALIKE_DISTANCES:
            counts = _pairs(answers, distance, scenario.drafts + 1)
            if counts.any():
                found[f"rows {distance or 'half a batch'} apart{what}"] = _dependence(counts)
    return found


def dependence_of_calls(driver: Driver, most_rows: int) -> dict[str, float]:
    """The same for calls with consecutive seeds, row by row."""
    drafts, found = driver.tables.scenario.drafts, {}
    if not drafts:
        return {}
    row, rows = _telling_row(driver), min(ROWS_OF_CALL, most_rows)
    for what, (least, end) in CALL_SEEDS.items():
        first = least + driver.call_seed("alike", what) % (end - least - 2 * PAIRS_OF_CALLS)
        seeds = range(first, first + 2 * PAIRS_OF_CALLS)
        calls = [_accepted_by(driver, _repeated(row, rows), seed) for seed in seeds]
        pairs = [torch.cat(pair) for pair in zip(calls[::2], calls[1::2], strict=True)]
        found[f"calls with {what} seeds one apart"] = _dependence(_pairs(pairs, HALF, drafts + 1))
    return found


ALIKE: dict[str, Callable[[Driver, int], dict[str, float]]] = {
    ROWS: dependence_of_rows,
    CALLS: dependence_of_calls,
}
"""What is asked about rows that are all alike, by check."""


def _telling_row(driver: Driver) -> VerifyBatch:
    """A row whose first drafts are as undecided as possible: ratios p / q near one half."""
    drawn = driver.drawn(0, _CANDIDATES)
    batch = driver.batch(*drawn, driver.call_seed("alike"))
    ratios = ratios_of(batch)[:, :_FIRST].clamp(0.0, 1.0)
    whole = batch.num_draft_tokens == batch.shape[1]
    undecided = torch.minimum(ratios, 1 - ratios).prod(-1) * whole
    return batch.rows(undecided.argmax()[None])


def _accepted(
    driver: Driver, row: VerifyBatch, what: str, sizes: list[int]
) -> Iterator[Int64[Tensor, " batch"]]:
    """For calls of these sizes, how many drafts each row accepted."""
    device = row.draft_tokens.device
    first = driver.call_seed("alike", what) % (LARGEST_SEED - sum(sizes))
    for call, size in enumerate(sizes):
        seeds = torch.arange(first, first + size, device=device) if what else None
        first += size
        yield _accepted_by(driver, _repeated(row, size, seeds), driver.call_seed("alike", what, call))


def _repeated(row: VerifyBatch, size: int, seeds: Int64[Tensor, " batch"] | None = None) -> VerifyBatch:
    """A batch of so many rows like this one."""
    batch = row.rows(torch.zeros(size, dtype=torch.int64, device=row.draft_tokens.device))
    return replace(batch, params=replace(batch.params, seeds=seeds))


def _accepted_by(driver: Driver, batch: VerifyBatch, seed: int) -> Int64[Tensor, " batch"]:
    """How many drafts each row of a call accepts."""
    return check_emitted(driver.verifier.verify(batch, seed=seed), batch).accepted.long()


def _dependence(counts: Int64[np.ndarray, "places places"]) -> float:
    even = np.full(len(counts), 1 / len(counts))
    return independence_log_e(counts, even, even)


def _pairs(
    answers: list[Int64[Tensor, " batch"]], distance: int, places: int
) -> Int64[np.ndarray, "places places"]:
    """How often rows at a distance accepted so many drafts, each row in one pair at most."""
    counts = torch.zeros(places * places, dtype=torch.int64)
    for accepted in answers:
        apart = distance or len(accepted) // 2
        whole = len(accepted) // (2 * apart) * 2 * apart if apart else 0
        first, second = accepted[:whole].cpu().reshape(-1, 2, max(apart, 1)).unbind(1)
        counts += torch.bincount((first * places + second).flatten(), minlength=len(counts))
    return counts.reshape(places, places).numpy()
