"""What faults that fit on anybody's implementation are made from."""

import functools
from collections.abc import Callable
from typing import Any


class Wrapper:
    """Hands every member on to what it wraps; a subclass spoils one of them.

    Parameters
    ----------
    wrapped : what a factory built.
    """

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        if name == "_wrapped":  # while it is copied or unpickled, before it has one
            raise AttributeError(name)
        return getattr(self._wrapped, name)

    def _spoil(self, name: str, instead: Callable[..., Any]) -> None:
        """Answer a method by another, whose signature looks like that of the method."""
        original = getattr(self._wrapped, name)
        setattr(self, name, functools.wraps(original)(functools.partial(instead, original)))
