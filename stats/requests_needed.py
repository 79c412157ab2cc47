"""What it would take: the budget of a run with which a check that saw too little sees enough."""

import math
from collections.abc import Mapping

import numpy as np

from tokenlaw.stats.chain_laws import completed
from tokenlaw.stats.counts import Law
from tokenlaw.stats.law_book import LawBook
from tokenlaw.stats.neighbours import CALLS as CALLS_COMPARED
from tokenlaw.stats.pooling import LEAST_EXPECTED, pool_cells
from tokenlaw.stats.power import visible_by_chi_square
from tokenlaw.stats.scenario import Scenario, Tables
from tokenlaw.stats.small_checks import BOUNDARY_FACTOR, ROWS_OF_CHECKS
from tokenlaw.stats.trial import kind_laws
from tokenlaw.stats.verifier_checks import BOUNDARY, CALLS, CHI_SQUARE, SMALL_CHECKS
from tokenlaw.stats.verifier_shares import SMALL_OF_BUDGET

_DECISIONS = 24
"""Rows of the boundary check among which, however few are accepted, one is, and one is rejected."""

_MOST = 1e12
"""Samples that nobody draws."""


def small_budget(check: str) -> int:
    """Requests in all with which a small check sees what it is about.

    >>> small_budget(BOUNDARY)
    1152
    """
    if check == CALLS:
        return SMALL_OF_BUDGET * CALLS_COMPARED * 3 // 2
    rows = -(-_DECISIONS // BOUNDARY_FACTOR) if check == BOUNDARY else 1
    return SMALL_OF_BUDGET * 3 * ROWS_OF_CHECKS * rows


def samples_of_chi_square(law: Law, alpha: float) -> float:
    """Samples from which on Pearson's test promises something; infinity where a trillion don't do.

    >>> samples_of_chi_square(np.array([0.5, 0.5]), 1e-10) < 100
    True
    """

    def too_few(samples: float) -> bool:
        grouping = pool_cells(law, samples)
        cells = int(np.count_nonzero(grouping.law))
        return visible_by_chi_square(samples, cells, grouping.pooled_mass, alpha) >= 1

    low = high = LEAST_EXPECTED
    while high < _MOST and too_few(high):
        low, high = high, 2 * high
    if high >= _MOST:
        return math.inf
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if too_few(middle) else (low, middle)
    return high


def say_what_small_checks_take(book: LawBook) -> None:
    """Write into the book what small checks would need where they saw too little."""
    for check in filter(book.asks, SMALL_CHECKS):
        book.outcomes[check].takes = _in_all(small_budget(check))


def say_what_chi_square_takes(
    book: LawBook, scenarios: list[Scenario], parts: Mapping[str, float], budget: int, device: str
) -> None:
    """Write into the book what the chi-square, without a tolerance, would need where it saw too little.

    Parameters
    ----------
    book : after the run.
    scenarios, budget : of the run.
    parts : as `tokenlaw.stats.verifier_shares.shared_rows` returns them.
    device : torch device of the run.
    """
    if book.asks(CHI_SQUARE) and not book.outcomes[CHI_SQUARE].told() and parts:
        needed = _chi_square_budget(book, scenarios, parts, budget, device)
        stopped = "scenarios that other checks refute stop before the size that was planned"
        book.outcomes[CHI_SQUARE].takes = stopped if needed <= budget else _in_all(needed)


def _in_all(requests: float) -> str:
    return f"about {math.ceil(requests):,} requests in all (--budget) would be needed"


def _chi_square_budget(
    book: LawBook, scenarios: list[Scenario], parts: Mapping[str, float], budget: int, device: str
) -> float:
    """The smallest budget with which one kind of one scenario is promised something."""
    alpha, found = book.alpha(CHI_SQUARE) / book.tables, [_MOST]
    for scenario in scenarios:
        share = parts.get(scenario.name, 0.0) / budget
        if scenario.wide or not share:
            continue
        laws = [completed(kind).ravel() for kind in kind_laws(Tables.of(scenario, device))]
        fewest = min(samples_of_chi_square(law / law.sum(), alpha) for law in laws)
        if fewest < math.inf:
            # Sizes are Poisson numbers: three standard deviations are spare for a kind, four for all of them.
            mean = len(laws) * (fewest + 3 * math.sqrt(fewest))
            found.append((mean + 4 * math.sqrt(mean)) / share)
    return min(found)
