"""What a suite is, how much it tries, and what may be set.

A suite knows one contract: its checks, and how to run or replay them on an `Implementation`. The face
(`tokenlaw.audit`, the pytest plugin) sees suites only through this module.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tokenlaw.spec.verdicts import Check, Evidence

if TYPE_CHECKING:  # contracts import torch; whoever starts an audit does without
    from tokenlaw.spec.contracts import Implementation


@dataclass(frozen=True)
class Profile:
    """How much is tried for a contract.

    Attributes
    ----------
    examples, max_operations : traces or cases, and operations of one trace at most.
    seconds : for a suite of traces or cases, at most, of a `tokenlaw.spec.stopwatch.Stopwatch`.
    requests : rows that a suite of laws gives to a verifier at most.
    """

    name: str
    examples: int
    max_operations: int
    seconds: float
    requests: int = 0


PROFILES: Mapping[str, Profile] = {
    "dev": Profile("dev", examples=400, max_operations=40, seconds=20.0, requests=600_000),
    "ci": Profile("ci", examples=2_000, max_operations=60, seconds=90.0, requests=6_000_000),
    "deep": Profile("deep", examples=50_000, max_operations=120, seconds=1_800.0, requests=200_000_000),
}


@dataclass(frozen=True)
class Settings:
    """What a user may set beside profile and seed.

    Attributes
    ----------
    device : torch device on which tensors are made.
    claims : what a verifier is held to, instead of what it claims itself.
    alpha : probability that a run of laws refutes an exact implementation.
    budget : requests in place of those of the profile.
    tolerance : total variation up to which a law may differ from the exact one.
    continued : check id to the statistics of an earlier report, whose evidence counts along.
    """

    device: str = "cpu"
    claims: str | None = None
    alpha: float = 1e-9
    budget: int | None = None
    tolerance: float = 0.0
    continued: Mapping[str, Mapping[str, Any]] | None = None


DEFAULTS = Settings()

Progress = Callable[[str, int, int], None]
"""Called as ``progress(what, done, total)`` now and then."""


def ignore(what: str, done: int, total: int) -> None:
    """The `Progress` of those who don't want to know."""


class CounterexampleError(ValueError):
    """A counterexample that can't be read, or that a target can't run; says why and what to do."""


class Suite(Protocol):
    """All checks of one contract."""

    contract: str
    checks: tuple[Check, ...]

    def run(
        self,
        implementation: "Implementation",
        *,
        profile: Profile,
        seed: int,
        selected: frozenset[str],
        progress: Progress,
        settings: Settings = DEFAULTS,
    ) -> list[Evidence]:
        """Evidence for each selected check id, in the order of ``checks``.

        Exceptions of the implementation become ``unknown`` evidence. `ContractError` is raised when a
        factory returns the wrong thing.
        """
        ...

    def replay(
        self,
        implementation: "Implementation",
        counterexample: Mapping[str, Any],
        *,
        progress: Progress = ignore,
        settings: Settings = DEFAULTS,
    ) -> list[Evidence]:
        """Run one saved counterexample; evidence for every check of the suite that it reaches.

        ``progress`` is called as often as in `run`: whoever watches takes silence for a hang. Raises
        `CounterexampleError` when it is damaged, or when the target lacks a capability that it needs.
        """
        ...
