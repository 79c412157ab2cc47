"""What can go wrong when a program's law is enumerated; each message says what to do."""

from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

REAL: set[CodeType] = set()
"""Functions whose exceptions are those of the real ones that they stand for."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


def as_the_real_one(function: _Function) -> _Function:
    """Mark a function that stands for a real one: what it raises itself, the real one raises.

    Exceptions from other functions here are faults of ours (`tokenlaw.stats.enumeration.raising`).
    """
    REAL.add(function.__code__)
    return function


def is_unknown_call(error: TypeError) -> bool:
    """Whether a function couldn't even be called with some arguments; where the exception is caught."""
    return error.__traceback__ is not None and error.__traceback__.tb_next is None


class EnumerationError(Exception):
    """The law of a program can't be enumerated."""


class UndecidableError(EnumerationError):
    """A random number is used in a way that has no exact probability here.

    Names the operation and the place, and suggests to probe or to sample.
    """


class NotRepeatableError(EnumerationError):
    """The same choices led to something else: the program keeps state, or draws from where nobody looks."""


class VoidLawError(EnumerationError):
    """The probabilities of all paths don't sum to one, so none of them can be trusted."""


class CutShort(BaseException):
    """Ends a run from inside, past every ``except Exception`` of the program."""


class Merged(CutShort):
    """What is left of this run is known from another one."""


class TooLong(CutShort):
    """The run has made more choices than any path may have."""


class Refused(CutShort):
    """The run has done what can't be decided; the tape knows the error."""
