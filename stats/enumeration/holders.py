"""Things that hold references and have no dictionary for them: a reference is put there as an item."""

from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any


@dataclass(frozen=True)
class Attributes:
    """The attributes of an object, for those that have no dictionary."""

    of: object

    def __setitem__(self, name: str, value: object) -> None:
        object.__setattr__(self.of, name, value)


@dataclass(frozen=True)
class Static:
    """The static methods of a class."""

    of: type

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self.of, name, staticmethod(value))


@dataclass(frozen=True)
class Defaults:
    """Defaults of a function's arguments."""

    of: FunctionType

    def __setitem__(self, number: int, value: object) -> None:
        defaults = list(self.of.__defaults__ or ())
        defaults[number] = value
        self.of.__defaults__ = tuple(defaults)


@dataclass(frozen=True)
class Arguments:
    """Arguments that a partial function has."""

    of: "partial[Any]"

    def __setitem__(self, number: int, value: object) -> None:
        arguments = list(self.of.args)
        arguments[number] = value
        _fill(self.of, self.of.func, tuple(arguments))


@dataclass(frozen=True)
class Function:
    """What a partial function calls."""

    of: "partial[Any]"

    def __setitem__(self, _: None, value: Any) -> None:
        _fill(self.of, value, self.of.args)


def _fill(held: Any, function: Any, arguments: tuple[Any, ...]) -> None:
    held.__setstate__((function, arguments, held.keywords, vars(held)))
