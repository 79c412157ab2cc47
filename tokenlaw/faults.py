"""The matrix of planted faults: which checks refute each of them, and which innocents they leave alone."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from tokenlaw.checks import REGISTRY
from tokenlaw.conversation import Conversation
from tokenlaw.impl.faults.targets import Suspect
from tokenlaw.protocol import Request
from tokenlaw.spec.suites import Progress
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.text import one_line, without_middle

_LONGEST = 500


@dataclass(frozen=True)
class Kill:
    """A check that refuted a target.

    Attributes
    ----------
    check : its id.
    operations : of the shrunk trace, where the counterexample is one.
    samples : that it took, where the check samples a law.
    tried : traces' operations or calls that were run before the check had decided.
    paths : of the random numbers that were run, where the check proves a law.
    evaluations : rows that were asked, where the check probes a law.
    seconds : until the check had decided, its counterexample shrunk; checks that share samples share them.
    """

    check: str
    operations: int | None
    samples: int | None
    tried: int
    paths: int | None = None
    evaluations: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Row:
    """What the audit of one fault, or of one innocent, found.

    Attributes
    ----------
    suspect : what was audited.
    kills : the checks that refuted it, in the order of the suite.
    unknown : why some check couldn't be decided; empty if all could.
    seconds : processor time of all checks, shrinking included; None if the audit ended early.
    """

    suspect: Suspect
    kills: tuple[Kill, ...]
    unknown: str
    seconds: float | None

    @property
    def right(self) -> bool:
        """A fault is killed; an innocent is neither refuted nor undecided."""
        return bool(self.kills) if self.suspect.guilty else not (self.kills or self.unknown)

    @property
    def lonely(self) -> bool:
        """A fault that one check alone sees."""
        return self.suspect.guilty and len(self.kills) == 1


class _CancelledError(Exception):
    """The run is over; this audit must end."""


def audit_all(
    suspects: Iterable[Suspect],
    *,
    profile: str = "dev",
    seed: int = 0,
    processes: int = 1,
    progress: Progress,
    found: Callable[[Row], Any] = lambda row: None,
    registry: str = REGISTRY,
) -> list[Row]:
    """Audit each suspect in a child process of its own, several at a time.

    Parameters
    ----------
    suspects : what is audited; rows come back in this order.
    profile, seed : how much is tried, and from which seed.
    processes : audits that run at one time.
    progress : called as ``progress(what, done, total)`` after each audit.
    found : called with each row as soon as there is one.
    registry : ``module:callable`` that returns the suites.

    Raises
    ------
    BadUse, ToolFault
        As `tokenlaw.runner.audit`.
    """
    chosen = list(suspects)
    over = threading.Event()
    rows: dict[str, Row] = {}

    def listen(*_: object) -> None:
        if over.is_set():
            raise _CancelledError

    def row_of(suspect: Suspect) -> Row:
        listen()
        request = Request(
            suspect.address,
            profile=profile,
            seed=seed,
            contracts=(suspect.contract,),
            registry=registry,
        )
        return _row(suspect, Conversation(listen).hold(request))

    progress("faults", 0, len(chosen))
    with ThreadPoolExecutor(processes) as pool:
        try:
            for future in as_completed([pool.submit(row_of, suspect) for suspect in chosen]):
                row = future.result()
                rows[row.suspect.name] = row
                found(row)
                progress(row.suspect.name, len(rows), len(chosen))
        finally:  # an interrupt ends the audits that run, and starts no further one
            over.set()
    return [rows[suspect.name] for suspect in chosen]


def _row(suspect: Suspect, conversation: Conversation) -> Row:
    refuted = [row for row in conversation.evidence if row.verdict is Verdict.REFUTED]
    unknown = [row for row in conversation.evidence if row.verdict is Verdict.UNKNOWN]
    why = f"{unknown[0].check.id}: {unknown[0].message}" if unknown else ""
    return Row(
        suspect,
        tuple(map(_kill, refuted)),
        without_middle(one_line(why), _LONGEST),
        conversation.processor_seconds,
    )


def _kill(evidence: Evidence) -> Kill:
    operations = (evidence.counterexample or {}).get("operations")
    statistics = evidence.statistics or {}
    return Kill(
        evidence.check.id,
        len(operations) if isinstance(operations, list | tuple) else None,
        statistics.get("samples"),
        evidence.operations,
        statistics.get("paths"),
        statistics.get("evaluations"),
        round(evidence.seconds, 2),
    )
