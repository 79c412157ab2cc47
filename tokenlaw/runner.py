"""Runs an audit: each contract of the target in its own child process, within limits."""

import contextlib
import platform
import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from tokenlaw import __version__
from tokenlaw.accidents import undecided
from tokenlaw.checks import REGISTRY
from tokenlaw.counterexamples import in_words
from tokenlaw.errors import BadUse, LacksContract, ToolFault
from tokenlaw.process import Child
from tokenlaw.protocol import (
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
)
from tokenlaw.report import Report, Target, audit_command, replay_command
from tokenlaw.spec.verdicts import Check, Evidence, Severity

Progress = Callable[[str, int, int], None]


def ignore(what: str, done: int, total: int) -> None:
    """The progress callback of those who don't want to know."""


def _nothing() -> None:
    pass


def audit(
    target: str,
    *,
    profile: str = "dev",
    seed: int = 0,
    only: str = "*",
    contracts: Sequence[str] | None = None,
    progress: Progress = ignore,
    resolved: Callable[[], Any] = _nothing,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    registry: str = REGISTRY,
) -> Report:
    """Audit a target; its code runs in child processes only.

    Parameters
    ----------
    target : name of an installed adapter, or ``module:attribute``.
    profile : ``dev``, ``ci`` or ``deep``: how much is tried.
    seed : the run repeats with the same seed.
    only : glob over check ids.
    contracts : those to audit; all that the target fulfils by default.
    progress : called as ``progress(what, done, total)``.
    resolved : called once the target is loaded and built, before its first check.
    limits : when a child process is given up.
    registry : ``module:callable`` that returns the suites.

    Raises
    ------
    BadUse
        The target can't be loaded or isn't a name, or nothing matches what was asked for.
    ToolFault
        tokenlaw itself failed.
    """
    _require_name(target, "audit")
    request = Request(
        target=target,
        profile=profile,
        seed=seed,
        only=only,
        contracts=None if contracts is None else tuple(contracts),
        limits=limits,
        registry=registry,
    )
    return _report(request, progress, resolved)


def _require_name(target: object, function: str) -> None:
    """Raise `BadUse` for an object: a child process couldn't find it."""
    if isinstance(target, str):
        return
    found = f"the class {target.__name__}" if isinstance(target, type) else f"a {type(target).__name__}"
    raise BadUse(
        f"{function} takes the name of a target ('reference', 'module:attribute'), not {found}; "
        "for an object use check_block_manager, check_kv_store or check_paged_attention"
    )


def require_usable(target: str, *, profile: str, only: str, registry: str = REGISTRY) -> None:
    """Raise `BadUse` if an audit with these arguments would; a target that dies is left to the audit."""
    request = Request(target, profile=profile, only=only, load_only=True, registry=registry)
    _Conversation(ignore).hold(request)


def replay(
    data: dict[str, Any],
    target: str,
    *,
    source: str = "counterexample",
    limits: Limits = Limits(),  # noqa: B008 - frozen
    registry: str = REGISTRY,
) -> Report:
    """Run one saved counterexample (plain JSON data from the file ``source``) on a target.

    Raises
    ------
    BadUse
        It isn't a counterexample, or it needs something that the target lacks.
    ToolFault
        tokenlaw itself failed.
    """
    _require_name(target, "replay")
    request = Request(target, replay=data, replay_source=source, limits=limits, registry=registry)
    return _report(request, ignore)


def _report(request: Request, progress: Progress, resolved: Callable[[], Any] = _nothing) -> Report:
    started = time.monotonic()
    first = _Conversation(progress, resolved).hold(request)
    conversations = [first]
    if first.described is not None:
        for contract in first.described.to_run[1:]:
            following = msgspec.structs.replace(request, contract=contract)
            conversations.append(_Conversation(progress).hold(following))
    planned = [conversation.planned for conversation in conversations if conversation.planned]
    described = first.described or Described(request.target, "unknown", (), ())
    return Report(
        target=Target(
            described.name,
            described.version,
            described.contracts,
            {plan.contract: plan.capabilities for plan in planned},
            typed=request.target,
        ),
        evidence=tuple(row for conversation in conversations for row in conversation.evidence),
        profile=request.profile,
        seed=request.seed,
        versions=versions(),
        command=_command(request),
        seconds=time.monotonic() - started,
    )


class _Conversation:
    """What one child process said, and how it ended."""

    def __init__(self, progress: Progress, resolved: Callable[[], Any] = _nothing) -> None:
        self._progress, self._resolved = progress, resolved
        self.described: Described | None = None
        self.planned: Planned | None = None
        self.evidence: list[Evidence] = []
        self._kept: dict[str, Evidence] = {}
        self._started = self._finished = False
        self._contract = ""

    def hold(self, request: Request) -> "_Conversation":
        """Run the request to its end; what wasn't reported becomes ``unknown``."""
        self._contract = request.contract or ""
        with tempfile.TemporaryDirectory(prefix="tokenlaw-") as scratch:
            child = Child(msgspec.structs.replace(request, scratch=scratch, token=secrets.token_hex()))
            with contextlib.closing(child.events()) as events:
                for event in events:
                    child.keep_within(self._hear(event, request.limits))
                    if self._finished:
                        break
            if not self._finished:
                self._give_up(child, Path(scratch))
        return self

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
            case Fault(kind, message):
                raise {"bad use": BadUse, "lacks contract": LacksContract, "tool": ToolFault}[kind](message)
            case Finished():
                self._finished = True
            case _:
                self._started = True
        return None

    def _give_up(self, child: Child, scratch: Path) -> None:
        if not self._started:
            raise ToolFault(f"the child process ended before it began\n{child.obituary(scratch)}")
        message, running = child.obituary(scratch), child.running(scratch)
        if running is not None:
            message += f"\nit was running this {in_words(running)}"
        told = {evidence.check.id for evidence in self.evidence}
        checks = self.planned.checks if self.planned else (_loads(self._contract),)
        untold = [check for check in checks if check.id not in told]
        capabilities = self.planned.capabilities if self.planned else ()
        self.evidence += undecided(untold, message, running, kept=self._kept, capabilities=capabilities)


def _loads(contract: str) -> Check:
    """What stands in a report when the target ended the process before any check could be planned."""
    return Check("target/load", "", "The target can be imported and built.", contract, Severity.CRASH)


def versions() -> dict[str, str]:
    """Versions that a report names, without importing anything heavy."""
    return {
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
        "tokenlaw": __version__,
        "platform": platform.platform(),
    }


def _command(request: Request) -> str:
    if request.replay is not None:
        return replay_command(request.replay_source, request.target)
    contracts = request.contracts or ()
    return audit_command(request.target, request.profile, request.seed, request.only, contracts)
