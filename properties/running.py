"""What a suite is, and what it says: profiles, violations, outcomes.

A suite knows one contract: its checks and how to run or replay them on an `Implementation`. The face
(`tokenlaw.audit`, the pytest plugin) sees suites only through this module.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tokenlaw.spec.contracts import Implementation
from tokenlaw.spec.verdicts import Check, Evidence


@dataclass(frozen=True)
class Profile:
    """How much is tried: examples, operations per trace at most, and seconds at most for a suite."""

    name: str
    examples: int
    max_operations: int
    seconds: float


PROFILES: Mapping[str, Profile] = {
    "dev": Profile("dev", examples=400, max_operations=40, seconds=20.0),
    "ci": Profile("ci", examples=2_000, max_operations=60, seconds=90.0),
    "deep": Profile("deep", examples=50_000, max_operations=120, seconds=1_800.0),
}


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


Progress = Callable[[str, int, int], None]
"""Called as ``progress(what, done, total)`` now and then."""


class Suite(Protocol):
    """All checks of one contract."""

    contract: str
    checks: tuple[Check, ...]

    def run(
        self,
        implementation: Implementation,
        *,
        profile: Profile,
        seed: int,
        selected: frozenset[str],
        progress: Progress,
    ) -> list[Evidence]:
        """Evidence for each selected check id, in the order of ``checks``.

        Exceptions of the implementation become ``unknown`` evidence. `ContractError` is raised when a
        factory returns the wrong thing.
        """
        ...

    def replay(self, implementation: Implementation, counterexample: Mapping[str, Any]) -> list[Evidence]:
        """Run one saved counterexample; evidence for every check of the suite that it reaches.

        Raises `tokenlaw.properties.trace.TraceError` when the target lacks a capability that it needs.
        """
        ...
