"""What the runner and one child process have to say to each other, from the request to the last evidence."""

import contextlib
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tokenlaw.accidents import undecided
from tokenlaw.controls import Control, broken_off
from tokenlaw.counterexamples import in_words
from tokenlaw.errors import BadUse, LacksContract, ToolFault
from tokenlaw.interrupting import first_interrupt
from tokenlaw.process import Child
from tokenlaw.protocol import (
    Controlled,
    Described,
    Event,
    Fault,
    Finished,
    Kept,
    Limits,
    Planned,
    Progressed,
    Reported,
    Request,
    SeedEnded,
)
from tokenlaw.prove_command import PROGRAM
from tokenlaw.spec.suites import Progress
from tokenlaw.spec.verdicts import Check, Evidence, Severity


def nothing() -> None:
    """What is called by those who don't want to know that a target was loaded."""


class Conversation:
    """What one child process said, and how it ended.

    Attributes
    ----------
    described, planned, evidence, controls : what it said.
    processor_seconds : what its checks took; None if it didn't come to their end.
    """

    def __init__(
        self,
        progress: Progress,
        resolved: Callable[[], Any] = nothing,
        seed_ended: Callable[[int, list[Evidence]], Any] | None = None,
    ) -> None:
        self._seed_ended = seed_ended
        self._progress, self._resolved = progress, resolved
        self.described: Described | None = None
        self.planned: Planned | None = None
        self.evidence: list[Evidence] = []
        self.controls: list[Control] = []
        self.processor_seconds: float | None = None
        self._kept: dict[str, Evidence] = {}
        self._started = self._finished = False
        self._contract = ""

    def hold(self, request: Request) -> "Conversation":
        """Run the request to its end; what wasn't reported becomes ``unknown``."""
        self._contract = request.contract or ""
        with tempfile.TemporaryDirectory(prefix="tokenlaw-") as scratch:
            child = Child(msgspec.structs.replace(request, scratch=scratch, token=secrets.token_hex()))
            with first_interrupt(lambda: self._stop(child)), contextlib.closing(child.events()) as events:
                for event in events:
                    child.keep_within(self._hear(event, request.limits))
                    if self._finished:
                        break
            if not self._finished:
                self._give_up(child, Path(scratch), controlled=request.controls)
        return self

    def _stop(self, child: Child) -> bool:
        """Ask for an early end; false where there is nothing to be said yet, or at all."""
        stoppable = self.planned is not None and self._contract == PROGRAM
        if stoppable:
            child.ask_to_stop()
        return stoppable

    def _hear(self, event: Event, limits: Limits) -> float | None:
        """Take an event in; seconds that the child may take from now on, if that changed."""
        match event:
            case Described():
                self.described = event
                self._resolved()
            case Planned():
                self.planned = event
                self._contract = event.contract
                return event.seconds + limits.quiet
            case Progressed(what, done, total):
                self._progress(what, done, total)
            case Kept(evidence):
                self._kept[evidence.check.id] = evidence
            case Reported(evidence):
                self.evidence.append(evidence)
            case SeedEnded(seed) if self._seed_ended is not None and self.planned is not None:
                self._seed_ended(seed, self.evidence)
                self.evidence, self._kept = [], {}
                return self.planned.seconds + limits.quiet
            case Controlled(control):
                self.controls.append(control)
            case Fault(kind, message):
                raise {"bad use": BadUse, "lacks contract": LacksContract, "tool": ToolFault}[kind](message)
            case Finished(seconds):
                self.processor_seconds = seconds
                self._finished = True
            case _:
                self._started = True
        return None

    def _give_up(self, child: Child, scratch: Path, *, controlled: bool) -> None:
        if not self._started:
            raise ToolFault(f"the child process ended before it began\n{child.obituary(scratch)}")
        message, running = child.obituary(scratch), child.running(scratch)
        if running is not None:
            message += f"\nit was running this {in_words(running)}"
        told = {evidence.check.id for evidence in self.evidence}
        checks = self.planned.checks if self.planned else (_loads(self._contract),)
        untold = [check for check in checks if check.id not in told]
        capabilities = self.planned.capabilities if self.planned else ()
        if controlled and not untold:
            self.controls += broken_off(self._contract, self.controls, message)
        self.evidence += undecided(untold, message, running, kept=self._kept, capabilities=capabilities)


def _loads(contract: str) -> Check:
    """What stands in a report when the target ended the process before any check could be planned."""
    return Check("target/load", "", "The target can be imported and built.", contract, Severity.CRASH)
