"""The registry of checks behind every face: which suites exist, and which checks a glob selects."""

import difflib
import fnmatch
import importlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tokenlaw.errors import BadUse

if TYPE_CHECKING:
    from tokenlaw.spec.suites import Suite

REGISTRY = "tokenlaw.suites:suites"
"""Where the suites are found: ``module:callable``, the callable returns contract -> suite."""


def load_suites(registry: str = REGISTRY) -> Mapping[str, "Suite"]:
    """All suites by contract. Imports torch and hypothesis, hence only when it is called."""
    module, _, attribute = registry.partition(":")
    suites: Mapping[str, Suite] = getattr(importlib.import_module(module), attribute)()
    return suites


def matching(suite: "Suite", only: str) -> frozenset[str]:
    """Ids of the suite's checks that the glob matches."""
    return frozenset(check.id for check in suite.checks if fnmatch.fnmatchcase(check.id, only))


_MOST_NAMES = 30
"""Of a suggestion when nothing is close."""


def did_you_mean(wrong: str, known: Iterable[str], otherwise: str = "") -> str:
    """A suggestion to be appended to an error, naming everything when nothing is close, or the first of many.

    ``otherwise`` says what else would do.

    >>> did_you_mean("referense", ["reference", "torch-paged-attention"], "give a path")
    "did you mean 'reference'? Otherwise give a path"
    >>> did_you_mean("x", ["b", "a"], "give a path")
    'known: a, b; otherwise give a path'
    """
    names = sorted(known)
    close = difflib.get_close_matches(wrong, names, n=2)
    if close:
        suggestion = f"did you mean {' or '.join(map(repr, close))}?"
        return f"{suggestion} Otherwise {otherwise}" if otherwise else suggestion
    left = len(names) - _MOST_NAMES
    suggestion = f"known: {', '.join(names[:_MOST_NAMES])}" + (f" and {left} more" if left > 0 else "")
    return f"{suggestion}; otherwise {otherwise}" if otherwise else suggestion


def require_match(suites: Mapping[str, "Suite"], only: str) -> None:
    """Raise `BadUse` when the glob matches no check of any suite."""
    if not any(matching(suite, only) for suite in suites.values()):
        ids = {check.id for suite in suites.values() for check in suite.checks}
        raise BadUse(f"--only {only!r} matches no check; {did_you_mean(only, ids)}")


def require_contracts(contracts: Iterable[str], known: Iterable[str]) -> None:
    """Raise `BadUse` when a contract has no suite."""
    names = sorted(known)
    for contract in contracts:
        if contract not in names:
            raise BadUse(f"unknown contract {contract!r}; {did_you_mean(contract, names)}")
