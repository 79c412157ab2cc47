"""What running a trace, a session or a case showed: violations and outcomes."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Example: TypeAlias = Any
"""A `Trace` or a `tokenlaw.spec.sessions.Session`: a msgspec struct with ``operations``."""


@dataclass(frozen=True)
class Violation:
    """One rule broken at one operation of one trace.

    ``sequence`` is the number of the sequence in order of creation over the whole trace, ``position`` a
    token position in it, ``block`` a physical block id.
    """

    check: str
    operation: int
    expected: str
    found: str
    sequence: int | None = None
    position: int | None = None
    block: int | None = None


@dataclass
class Outcome:
    """What running one trace showed.

    ``violations`` are all those of the first operation that broke an unmuted rule (the run stops there).
    ``crash`` is the traceback of an exception that the contract doesn't allow; it stops the run as well.
    """

    violations: list[Violation] = field(default_factory=list)
    exercised: Counter[str] = field(default_factory=Counter)
    operations: int = 0
    crash: str | None = None
