"""Arguments of the library, refused in one line that says what to write, or made plain.

Numbers of numpy become numbers of Python, which reports can store.
"""

import reprlib
from collections.abc import Iterable
from typing import Any

from tokenlaw.checks import did_you_mean
from tokenlaw.errors import BadUse
from tokenlaw.spec.number_kinds import is_real_number, is_whole_number
from tokenlaw.spec.suites import PROFILES, Profile
from tokenlaw.text import one_line

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 60


def shown(value: object) -> str:
    """The value on one short line.

    >>> shown([1] * 100), shown("two\\nlines")
    ('[1, 1, 1, 1, 1, 1, ...]', "'two\\\\nlines'")
    """
    return one_line(_REPR.repr(value))


def wrong(name: str, value: object, expected: str) -> BadUse:
    """The refusal of an argument, on one line."""
    return BadUse(f"{name} {shown(value)}: expected {expected}")


def whole_number(name: str, value: Any, least: int, expected: str) -> int:
    """The value as an int; raises `BadUse` for anything but a whole number from ``least`` on."""
    if not is_whole_number(value) or value < least:
        raise wrong(name, value, expected)
    return int(value)


def number_between(name: str, value: Any, expected: str, *, zero: bool) -> float:
    """The value as a float; raises `BadUse` unless it is a number below 1 and above 0, or 0 if allowed."""
    if not is_real_number(value) or not (0 < value < 1 or (zero and value == 0)):
        raise wrong(name, value, expected)
    return float(value)


def seconds_of(value: Any) -> float:
    """The value as seconds; raises `BadUse` for anything but a finite number from 0 on."""
    if not is_real_number(value) or not 0 <= value < float("inf"):
        raise wrong("seconds", value, "a number, 0 or more")
    return float(value)


def seed_of(value: Any) -> int:
    """The value as a seed.

    >>> seed_of(-1)
    Traceback (most recent call last):
    tokenlaw.errors.BadUse: seed -1: expected a whole number, 0 or more
    """
    return whole_number("seed", value, 0, "a whole number, 0 or more")


def profile_named(name: Any) -> Profile:
    """The profile; raises `BadUse` if there is none of that name.

    >>> profile_named("deepest")
    Traceback (most recent call last):
    tokenlaw.errors.BadUse: unknown profile 'deepest'; did you mean 'deep'?
    """
    if not isinstance(name, str) or name not in PROFILES:
        raise BadUse(f"unknown profile {shown(name)}; {did_you_mean(str(name), PROFILES)}")
    return PROFILES[name]


def require_glob(only: Any) -> None:
    """Raise `BadUse` for what is no text."""
    if not isinstance(only, str):
        raise wrong("only", only, "a glob over check ids, such as 'law/*'")


def require_bool(name: str, value: Any) -> None:
    """Raise `BadUse` for what is neither True nor False: any other text or number would count as true."""
    if not isinstance(value, bool):
        raise wrong(name, value, "True or False")


def names_of(name: str, value: Any, example: str) -> tuple[str, ...]:
    """A collection of names; raises `BadUse` for a single text, whose letters would count as names.

    >>> names_of("capabilities", "fork", "['fork']")
    Traceback (most recent call last):
    tokenlaw.errors.BadUse: capabilities 'fork': expected a collection of names, such as ['fork']
    """
    is_collection = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    names = tuple(value) if is_collection else ()
    if not is_collection or not all(isinstance(one, str) for one in names):
        raise wrong(name, value, f"a collection of names, such as {example}")
    return names
