"""What the runner and its child process say to each other: one request, then events as JSON lines.

Nothing here imports torch: the runner's process stays light, whatever the target imports.
"""

from typing import Any, Literal

import msgspec

from tokenlaw.checks import REGISTRY
from tokenlaw.controls import Control
from tokenlaw.deviation_files import DeviationFile
from tokenlaw.earlier import Earlier
from tokenlaw.spec.suites import DEFAULTS, Settings
from tokenlaw.spec.verdicts import Check, Evidence

STACK_FILE = "stack.txt"
"""In the scratch folder: where faulthandler writes the stacks of a hang or of a fatal signal."""

RUNNING_FILE = "running.json"
"""In the scratch folder: the trace or case that is being run."""


LATE_FILE = "late"
"""In the scratch folder, once the run as a whole has less time left than may pass between signs of life."""


class Limits(msgspec.Struct, frozen=True):
    """When a child process is given up.

    ``start``: seconds to import the target and to build it once. ``quiet``: seconds without the start of
    another trace or another sign of progress. ``memory``: resident bytes (enforced where ``/proc`` exists).
    All in all a contract gets ``factor`` times the seconds of its profile, plus ``per_check`` for each of
    its checks (shrinking isn't counted by profiles), plus ``slack``.
    """

    start: float = 120.0
    quiet: float = 30.0
    factor: float = 2.0
    per_check: float = 45.0
    slack: float = 60.0
    memory: int = 8 * 2**30

    def seconds(self, profile: float, checks: int) -> float:
        """Seconds for a contract, from those of its profile and the number of its checks."""
        return self.factor * profile + self.per_check * checks + self.slack


LIMITS = Limits()
"""Those that are kept unless others are given."""


class ProofRequest(msgspec.Struct, frozen=True):
    """What `tokenlaw.prove_programs.prove_program` is asked about a program: its spec, and how far to go."""

    spec: str | None
    max_paths: int
    seconds: float | None
    tolerance: float | None


class Request(msgspec.Struct, frozen=True):
    """What a child process is to do.

    ``contracts`` are those allowed (None: all that the target fulfils), ``contract`` is the one to run (None:
    the first of them). With ``replay`` a counterexample is run instead of a search, with ``load_only``
    nothing. ``given`` names the settings that were chosen for this run alone. A run of laws goes on from
    ``earlier``; ``deviations`` are known, beside those of the target. With ``proof`` the target is a program
    whose law is enumerated. With ``controls`` those of the audit follow it. With ``seeds`` above 1 it is run
    once for each of so many seeds, from ``seed`` on. ``token`` marks the lines of this child, since a target
    can write to any file descriptor.
    """

    target: str
    scratch: str = ""
    token: str = ""
    profile: str = "dev"
    seed: int = 0
    only: str = "*"
    contracts: tuple[str, ...] | None = None
    contract: str | None = None
    replay: dict[str, Any] | None = None
    replay_source: str = ""
    load_only: bool = False
    settings: Settings = DEFAULTS
    given: tuple[str, ...] = ()
    earlier: Earlier | None = None
    deviations: DeviationFile | None = None
    proof: ProofRequest | None = None
    controls: bool = False
    seeds: int = 1
    limits: Limits = LIMITS
    registry: str = REGISTRY


class Started(msgspec.Struct, frozen=True, tag="started"):
    """The child lives: whatever ends it from now on is the target's doing, or reported as a `Fault`."""


class Described(msgspec.Struct, frozen=True, tag="described"):
    """The target was loaded; ``to_run`` are the contracts that a whole audit has to run, in order."""

    name: str
    version: str
    contracts: tuple[str, ...]
    to_run: tuple[str, ...]


class Planned(msgspec.Struct, frozen=True, tag="planned"):
    """The object was built: these checks follow, within so many seconds."""

    contract: str
    capabilities: tuple[str, ...]
    checks: tuple[Check, ...]
    seconds: float


class Progressed(msgspec.Struct, frozen=True, tag="progressed"):
    """``done`` of ``total`` of ``what``."""

    what: str
    done: int
    total: int


class Reported(msgspec.Struct, frozen=True, tag="reported"):
    """The evidence of one check."""

    evidence: Evidence


class Kept(msgspec.Struct, frozen=True, tag="kept"):
    """Evidence that stands even if the child dies before the check is reported."""

    evidence: Evidence


class SeedEnded(msgspec.Struct, frozen=True, tag="seed ended"):
    """Every planned check was reported for this seed; the next one follows."""

    seed: int


class Controlled(msgspec.Struct, frozen=True, tag="controlled"):
    """What one control showed."""

    control: Control


class Fault(msgspec.Struct, frozen=True, tag="fault"):
    """The child couldn't do its work, and it isn't the implementation's fault."""

    kind: Literal["bad use", "lacks contract", "tool"]
    message: str


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """Every planned check was reported; what that took of processor time, in seconds."""

    seconds: float = 0.0


Event = (
    Started | Described | Planned | Progressed | Kept | Reported | SeedEnded | Controlled | Fault | Finished
)

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode(event: Event, token: str) -> bytes:
    """The event as one line that starts with the token, whatever was written before it."""
    return b"\n" + token.encode() + _ENCODER.encode(event) + b"\n"


def decode(line: bytes, token: str) -> Event | None:
    """The event of one line; None if the line is none of ours, but what a target wrote to the channel."""
    mark = token.encode()
    return _DECODER.decode(line.removeprefix(mark)) if line.startswith(mark) else None
