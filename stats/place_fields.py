"""The parts of a counterexample of a law, as plain data: what each must be, and how to say so."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from tokenlaw.spec.number_kinds import is_whole_number
from tokenlaw.spec.suites import CounterexampleError

Fields = Mapping[str, tuple[Callable[[Any], bool], str]]
"""Name of each part -> whether a value fits, and what is expected in words."""


def fields_of(data: Mapping[str, Any], schema: str, fields: Fields, whose: str) -> dict[str, Any]:
    """The parts of plain data that have a schema, by name; ``whose`` says what they are a counterexample of.

    Raises
    ------
    CounterexampleError
        The message says which part is wrong, missing or unknown, and what belongs there.

    Examples
    --------
    >>> seed = {"seed": (is_whole_number, "a whole number")}
    >>> fields_of({"schema": "s/1", "seed": 0.5}, "s/1", seed, "a law")
    Traceback (most recent call last):
    tokenlaw.spec.suites.CounterexampleError: seed is 0.5; expected a whole number
    """
    if data.get("schema") != schema:
        raise CounterexampleError(f"schema {data.get('schema')!r}, expected {schema!r}")
    unknown = sorted(set(data) - {"schema", "contract", *fields})
    if unknown:
        raise CounterexampleError(
            f"unknown: {', '.join(unknown)}; a counterexample of {whose} has {', '.join(fields)}"
        )
    for name, (fits, expected) in fields.items():
        if name not in data:
            raise CounterexampleError(f"{name} is missing; expected {expected}")
        if not fits(data[name]):
            raise CounterexampleError(f"{name} is {data[name]!r}; expected {expected}")
    return {name: data[name] for name in fields}


def is_number(value: object) -> bool:
    """A finite number."""
    return is_whole_number(value) or (isinstance(value, float) and math.isfinite(value))
