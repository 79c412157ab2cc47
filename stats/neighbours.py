"""Rows and calls that should be independent: how often neighbours emit the same first token, and which pairs.

A row that repeats another one's random numbers repeats its token more often than chance; the exact law of the
first token says how often chance would do it. Other dependence, such as numbers that are shifted from row to
row, shows in the table of pairs. (Tokens of one row depend on each other; their law is the joint law.)
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Int64
from scipy import special
from torch import Tensor

from tokenlaw.stats.dependence import (
    EqualNeighbours,
    equal_mass_buckets,
    equal_neighbours,
    independence_log_e,
    match_probability,
)
from tokenlaw.stats.driver import Driver, Step
from tokenlaw.stats.e_values import average_log_e, product_log_e
from tokenlaw.stats.scenario import Tables

DISTANCES = (1, 2, 8, 64)
"""Distances in a batch at which rows are compared, each row once for each distance."""

MOST_ROWS = 20_000
"""Rows that are compared; more would tell little and cost as much as counting."""

CALLS, CALL_ROWS = 32, 128
"""Calls that are compared with each other, and their rows where the budget allows it."""


BUCKETS = 8
"""First tokens are put into so many buckets of about equal mass for the table of pairs, or fewer."""

SURPRISE = 3.0
"""E-values of tables of pairs are worked out only where these are off by so many standard deviations, as they
cost a millisecond each. What isn't worked out has the p-value 1, which is always legal."""

TESTS = 2
"""Of each comparison: equal tokens, and the table of pairs."""


Pairs = Int64[Tensor, " pairs"]
"""A number for each pair of rows."""


@dataclass(frozen=True)
class Comparison:
    """Pairs at one distance, or across calls: equal tokens, and a log e-value against independence."""

    what: str
    result: EqualNeighbours
    log_e: float


class _PairTables:
    """Counts pairs of first tokens in buckets, for some comparisons and each kind of rows.

    Tokens that their kind makes impossible don't count: that is no matter of independence.
    """

    def __init__(self, tables: Tables, comparisons: int) -> None:
        laws = _first_laws(tables)
        groups = [equal_mass_buckets(law, min(BUCKETS, int(np.count_nonzero(law)))) for law in laws]
        self._laws = [group.law[group.law > 0] for group in groups]
        self._labels = torch.from_numpy(np.stack([group.labels for group in groups]))
        self._labels = self._labels.to(tables.target.device)
        self._width = 1 + int(self._labels.max())
        size = (comparisons, len(laws) * self._width**2)
        self._counts = torch.zeros(size, dtype=torch.int64, device=tables.target.device)

    def add(self, comparisons: Pairs, kinds: Pairs, first: Pairs, second: Pairs) -> None:
        """Count pairs: of which comparison, their kind, the token of one and of the other."""
        rows = kinds * self._labels.shape[1]
        one, other = (self._labels.take(rows + tokens) for tokens in (first, second))
        cells = ((comparisons * len(self._laws) + kinds) * self._width + one) * self._width + other
        self._counts += torch.bincount(cells, minlength=self._counts.numel()).view_as(self._counts)

    def log_e(self, comparison: int) -> float:
        """Over all kinds: half average, half product, as their rows are independent; 0 without a surprise."""
        counts = self._counts[comparison].reshape(len(self._laws), self._width, self._width).cpu().numpy()
        if _surprise(counts) < SURPRISE:
            return 0.0
        log_es = [
            independence_log_e(seen[: len(law), : len(law)], law, law)
            for law, seen in zip(self._laws, counts, strict=True)
        ]
        average = average_log_e(log_es, [1 / len(log_es)] * len(log_es))
        return average_log_e([average, product_log_e(log_es)], [0.5, 0.5])


def _surprise(counts: Int64[np.ndarray, "kinds first second"]) -> float:
    """Roughly how many standard deviations the tables are from independence in all; not for a verdict."""
    first, second = counts.sum(2), counts.sum(1)
    expected = first[:, :, None] * second[:, None, :] / np.maximum(first.sum(1), 1)[:, None, None]
    degrees = ((first > 0).sum(1) - 1).clip(0) @ ((second > 0).sum(1) - 1).clip(0)
    ratio = 2 * float(special.rel_entr(counts, expected).sum())
    return (ratio - degrees) / math.sqrt(2 * degrees) if degrees else 0.0


class Neighbours:
    """Counts pairs of rows of one kind, and how many of them begin with the same token."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        size = (len(DISTANCES), 2, len(tables.lengths))
        self._counts = torch.zeros(size, dtype=torch.int64, device=tables.target.device)
        self._rows = 0
        self._pairs = _PairTables(tables, len(DISTANCES))

    def add(self, step: Step) -> None:
        """Count the pairs of one call."""
        if self._rows >= MOST_ROWS:
            return
        self._rows += len(step.kinds)
        groups, tokens = self._counts.shape[2], step.emitted[:, 0].contiguous()
        distances, rows, others = _paired(len(step.kinds), step.kinds.device)
        kinds, first, second = step.kinds[rows], tokens[rows], tokens[others]
        alike = kinds == step.kinds[others]
        # Cells: not of one kind; of one kind with other tokens, with the same token.
        cells = (3 * distances + alike * (1 + (first == second).long())) * groups + kinds
        counts = torch.bincount(cells, minlength=3 * groups * len(DISTANCES)).reshape(-1, 3, groups)
        self._counts[:, 0] += counts[:, 1] + counts[:, 2]
        self._counts[:, 1] += counts[:, 2]
        self._pairs.add(distances[alike], kinds[alike], first[alike], second[alike])

    def comparisons(self) -> list[Comparison]:
        """One for each distance at which there were pairs."""
        counts = self._counts.cpu().numpy()
        chances = chance_of_equals(self._tables)
        return [
            Comparison(
                f"rows {distance} apart",
                equal_neighbours(int(equal.sum()), pairs, chances),
                self._pairs.log_e(index),
            )
            for index, (distance, (pairs, equal)) in enumerate(zip(DISTANCES, counts, strict=True))
            if pairs.any()
        ]


@lru_cache(maxsize=16)
def _paired(size: int, device: torch.device) -> tuple[Pairs, Pairs, Pairs]:
    """Which rows of a call are compared: index of the distance d, row i, row i + d.

    Of consecutive groups of 2 d rows, as far as they are whole.
    """
    parts = []
    for index, distance in enumerate(DISTANCES):
        whole = size // (2 * distance) * 2 * distance
        rows = torch.arange(whole, device=device).reshape(-1, 2, distance)[:, 0].flatten()
        parts.append((torch.full_like(rows, index), rows, rows + distance))
    distances, rows, others = (torch.cat(part) for part in zip(*parts, strict=True))
    return distances, rows, others


def chance_of_equals(tables: Tables) -> np.ndarray:
    """For each kind the probability that two independent rows begin with the same token."""
    return np.array([match_probability(law, law) for law in _first_laws(tables)])


def _first_laws(tables: Tables) -> list[np.ndarray]:
    """The law of the first token of each kind."""
    return list(tables.target[:, 0, 0].cpu().numpy())


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
    table = _PairTables(tables, 1)
    both = kinds.repeat(CALLS // 2)
    table.add(torch.zeros_like(both), both, tokens[:, 0].flatten(), tokens[:, 1].flatten())
    return Comparison("calls", equal_neighbours(equal, pairs, chance_of_equals(tables)), table.log_e(0))
