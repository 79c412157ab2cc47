"""Accidents: whose fault an exception is, and what it says about checks that couldn't be decided."""

import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tokenlaw.spec.verdicts import Check, Evidence, Verdict

if TYPE_CHECKING:
    from tokenlaw.spec.contracts import Implementation

_OWN_IMPLEMENTATIONS = "tokenlaw.impl"


def is_implementations(error: BaseException, implementation: "Implementation", built: object) -> bool:
    """True if the traceback passes through code of the package that holds the implementation."""
    objects = [*implementation.factories.values(), type(built), built]
    owners = {_owner(str(getattr(found, "__module__", ""))) for found in objects}
    owners.discard("tokenlaw")
    frames = traceback.walk_tb(error.__traceback__)
    return any(_owner(str(frame.f_globals.get("__name__", ""))) in owners for frame, _ in frames)


def _owner(module: str) -> str:
    """The package that a module belongs to; ours is divided, since it holds implementations as well."""
    if module == _OWN_IMPLEMENTATIONS or module.startswith(f"{_OWN_IMPLEMENTATIONS}."):
        return _OWN_IMPLEMENTATIONS
    return module.partition(".")[0]


def undecided(
    checks: Iterable[Check],
    message: str,
    counterexample: Mapping[str, Any] | None = None,
    *,
    kept: Mapping[str, Evidence],
    capabilities: Iterable[str],
) -> Iterator[Evidence]:
    """Evidence for the checks of a run that an accident ended.

    What was found before it, ``kept`` by check id, stands. A check that needs more than the ``capabilities``
    is not supported. All others are unknown: the first has the whole message, the others its first line.
    """
    brief, offered = message.partition("\n")[0], frozenset(capabilities)
    first = ""
    for check in checks:
        if check.id in kept:
            found = kept[check.id]
            yield replace(found, message=f"{found.message}\nlater in the run: {brief}")
        elif missing := check.needs - offered:
            from tokenlaw.spec.capabilities import needed

            yield Evidence(check, Verdict.NOT_SUPPORTED, message=needed(check.contract, missing))
        elif first:
            yield Evidence(check, Verdict.UNKNOWN, message=f"{brief} (see {first})")
        else:
            first = check.id
            yield Evidence(check, Verdict.UNKNOWN, message=message, counterexample=counterexample)
