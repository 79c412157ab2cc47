"""Rows and calls that should be independent: how often neighbours emit the same first token.

A row that repeats another one's random numbers repeats its token more often than chance; the exact law of the
first token says how often chance would do it.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from tokenlaw.stats.dependence import EqualNeighbours, equal_neighbours, match_probability
from tokenlaw.stats.driver import Driver, Step
from tokenlaw.stats.scenario import Tables

DISTANCES = (1, 2, 8, 64)
"""Distances in a batch at which rows are compared, each row once for each distance."""

MOST_ROWS = 20_000
"""Rows that are compared; more would tell little and cost as much as counting."""

CALLS, CALL_ROWS = 32, 128
"""Calls that are compared with each other, and their rows where the budget allows it."""


@dataclass(frozen=True)
class Comparison:
    """Pairs at one distance, or across calls."""

    what: str
    result: EqualNeighbours


class Neighbours:
    """Counts pairs of rows of one kind, and how many of them begin with the same token."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        size = (len(DISTANCES), 2, len(tables.lengths))
        self._counts = torch.zeros(size, dtype=torch.int64, device=tables.target.device)
        self._rows = 0

    def add(self, step: Step) -> None:
        """Count the pairs of one call: rows i and i + d of consecutive groups of 2 d rows."""
        if self._rows >= MOST_ROWS:
            return
        self._rows += len(step.kinds)
        groups = self._counts.shape[2]
        for index, distance in enumerate(DISTANCES):
            kinds, others = _paired(step.kinds, distance)
            tokens, other_tokens = _paired(step.emitted[:, 0], distance)
            # Cells: not of one kind; of one kind with other tokens, with the same token.
            cells = kinds + groups * ((kinds == others) * (1 + (tokens == other_tokens).long()))
            counts = torch.bincount(cells, minlength=3 * groups).reshape(3, groups)
            self._counts[index, 0] += counts[1] + counts[2]
            self._counts[index, 1] += counts[2]

    def comparisons(self) -> list[Comparison]:
        """One for each distance at which there were pairs."""
        counts = self._counts.cpu().numpy()
        chances = chance_of_equals(self._tables)
        return [
            Comparison(f"rows {distance} apart", equal_neighbours(int(equal.sum()), pairs, chances))
            for distance, (pairs, equal) in zip(DISTANCES, counts, strict=True)
            if pairs.any()
        ]


def _paired(
    values: Int64[Tensor, " batch"], distance: int
) -> tuple[Int64[Tensor, " pairs"], Int64[Tensor, " pairs"]]:
    """Values i and i + distance of whole groups of two times the distance."""
    whole = len(values) // (2 * distance) * 2 * distance
    grouped = values[:whole].reshape(-1, 2, distance)
    return grouped[:, 0].flatten(), grouped[:, 1].flatten()


def chance_of_equals(tables: Tables) -> np.ndarray:
    """For each kind the probability that two independent rows begin with the same token."""
    first = tables.target[:, 0, 0].cpu().numpy()
    return np.array([match_probability(law, law) for law in first])


def compare_calls(driver: Driver, tables: Tables, rows: int = CALL_ROWS) -> Comparison:
    """Verify batches of the same kinds with other seeds and drafts; compare call 1 with 2, 3 with 4, ..."""
    device = tables.target.device
    generator = torch.Generator().manual_seed(driver.call_seed("calls"))
    kinds = torch.randint(len(tables.lengths), (rows,), generator=generator).to(device)
    numbers = tables.scenario.drafts + 2
    first = []
    for call in range(CALLS):
        fresh = torch.rand(numbers, rows, generator=generator, dtype=torch.float64).to(device)
        first.append(driver.ask(kinds, list(fresh), driver.call_seed("calls", call)).emitted[:, 0])
    tokens = torch.stack(first).reshape(CALLS // 2, 2, rows)
    equal = int((tokens[:, 0] == tokens[:, 1]).sum())
    pairs = np.bincount(kinds.cpu().numpy(), minlength=len(tables.lengths)) * (CALLS // 2)
    return Comparison("calls", equal_neighbours(equal, pairs, chance_of_equals(tables)))
