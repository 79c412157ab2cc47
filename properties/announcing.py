"""Says which trace or case is run next, to whoever watches: a run that hangs can't tell it later."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Listener = Callable[[Any], None]
"""Takes a `tokenlaw.properties.trace.Trace` or an attention case, right before it is run."""

_listeners: list[Listener] = []


def announce(data: Any) -> None:
    """Suites call this before each run of a trace or a case on an implementation."""
    for listener in _listeners:
        listener(data)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Within the block, what suites announce is told to the listener.

    >>> heard = []
    >>> with listening(heard.append):
    ...     announce("a trace")
    >>> announce("nobody listens any more")
    >>> heard
    ['a trace']
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
