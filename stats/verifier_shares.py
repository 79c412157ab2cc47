"""How the rows of a run are shared among small checks, scenarios, trees and the search."""

from tokenlaw.stats.alike_rows import ALIKE_CALLS, ALIKE_ROWS
from tokenlaw.stats.law_book import SEARCH_NAME, LawBook, wide_checks
from tokenlaw.stats.neighbours import CALLS as CALLS_COMPARED
from tokenlaw.stats.scenario import Scenario
from tokenlaw.stats.small_checks import ROWS_OF_CHECKS
from tokenlaw.stats.tree_trial import TREE_NAMES
from tokenlaw.stats.trial_closing import TRIAL_CHECKS
from tokenlaw.stats.verifier_checks import CALLS, PROTOCOL, ROWS, SEARCHED, SMALL_CHECKS, TREES

TREE_SHARE = 0.08
"""Part of the budget for trees, where the implementation takes them."""

SEARCH_SHARE = 0.03
"""Part of the budget for the search; what it finds is made smaller with what others left of the budget."""

SMALL_ROWS, SMALL_OF_BUDGET = 6_144, 8
"""Rows of the small checks, or an eighth of a small budget; two thirds are for the comparison of calls.

Where an eighth is enough for that as well, rows that are all alike come on top.
"""

SMALL_PART = "small checks"
"""Stands for a scenario where the rows of the small checks are meant."""


SEARCH_ROWS, MOST_EXAMPLES = 1_500, 600
"""Rows of an example of the search, or more where there would be too many examples."""

UNGUIDED = 24
"""A search of more examples than this is guided by hypothesis in its second half."""


def small_rows(requests: int) -> tuple[int, int]:
    """Rows of a small check, and of each of the calls that are compared, for so many requests in all.

    >>> small_rows(SMALL_ROWS), small_rows(62)
    ((256, 128), (2, 1))
    """
    requests = min(requests, SMALL_ROWS)
    return requests // 3 // ROWS_OF_CHECKS, requests * 2 // 3 // CALLS_COMPARED


def examples_of(requests: float) -> tuple[int, int]:
    """Examples of a search with so many requests, and how many of them hypothesis chooses.

    >>> examples_of(15_000), examples_of(150_000)
    ((10, 0), (100, 50))
    """
    examples = max(1, min(MOST_EXAMPLES, int(requests / SEARCH_ROWS)))
    return examples, examples // 2 if examples > UNGUIDED else 0


def shared_rows(book: LawBook, scenarios: list[Scenario], budget: int) -> dict[str, float]:
    """Rows for everything that some check is asked of; shares of what isn't asked go to the rest.

    Parameters
    ----------
    book : knows what is asked.
    scenarios : of the run.
    budget : rows in all.

    Returns
    -------
    `SMALL_PART`, and the names of scenarios, trees and the search, to their rows. What has no entry isn't
    asked.
    """
    asked = any(map(book.asks, SMALL_CHECKS))
    spare = budget // SMALL_OF_BUDGET
    alike = ALIKE_ROWS * book.asks(ROWS) + ALIKE_CALLS * book.asks(CALLS)
    if spare < SMALL_ROWS + alike:
        alike = 0
    small = float(min(SMALL_ROWS, spare) + alike) if asked or alike else 0.0
    shares = {
        scenario.name: scenario.share for scenario in scenarios if any(map(book.asks, _checks_of(scenario)))
    }
    total = sum(shares.values()) or 1.0
    others = {name: TREE_SHARE / len(TREE_NAMES) for name in TREE_NAMES if book.asks(TREES)}
    others |= {SEARCH_NAME: SEARCH_SHARE} if book.asks(SEARCHED) else {}
    left = 1 - sum(others.values())
    parts = others | {name: left * share / total for name, share in shares.items()}
    # A search alone gets half: the rest makes small what it finds.
    whole = max(sum(parts.values()), 2 * parts.get(SEARCH_NAME, 0.0))
    return {SMALL_PART: small} | {name: (budget - small) * part / whole for name, part in parts.items()}


def _checks_of(scenario: Scenario) -> tuple[str, ...]:
    """Checks for which a scenario is run."""
    return wide_checks(scenario) if scenario.wide else (*TRIAL_CHECKS, PROTOCOL)
