"""Says which trace or case is run next, and what was found so far, to whoever watches.

A process that hangs or dies can't tell it later; what it announced is kept.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tokenlaw.spec.verdicts import Evidence

Listener = Callable[[Any], None]
"""Takes a trace or a case (anything that msgspec can turn into JSON), right before it is run."""

Keeper = Callable[[Evidence], None]
"""Takes evidence that stands whatever happens later; later evidence of the same check replaces it."""

_listeners: list[Listener] = []
_keepers: list[Keeper] = []


def announce(data: Any) -> None:
    """Suites call this before each run of a trace or a case on an implementation."""
    for listener in _listeners:
        listener(data)


def announce_evidence(evidence: Evidence) -> None:
    """Suites call this when they find something, and again when they have made it smaller."""
    for keeper in _keepers:
        keeper(evidence)


@contextmanager
def listening(listener: Listener, keeper: Keeper | None = None) -> Iterator[None]:
    """Within the block, what suites announce is told to the listener, and evidence to the keeper.

    >>> heard = []
    >>> with listening(heard.append):
    ...     announce("a trace")
    >>> announce("nobody listens any more")
    >>> heard
    ['a trace']
    """
    keepers = [] if keeper is None else [keeper]
    _listeners.append(listener)
    _keepers.extend(keepers)
    try:
        yield
    finally:
        _listeners.remove(listener)
        for added in keepers:
            _keepers.remove(added)
