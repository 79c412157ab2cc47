"""The child process of an audit: ``python -P -m tokenlaw.child`` runs one contract of one target.

The request arrives on stdin, as one line; then stdin stays open for as long as the parent lives. Events
leave on what was stdout; everything that the implementation prints goes to stderr instead.
"""

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec
import torch

from tokenlaw.errors import BadUse, LacksContract
from tokenlaw.protocol import (
    Controlled,
    Described,
    Event,
    Fault,
    Finished,
    Kept,
    Planned,
    Progressed,
    Reported,
    Request,
    SeedEnded,
    Started,
    encode,
)
from tokenlaw.session import Session
from tokenlaw.text import encodable
from tokenlaw.watch import Watch

if TYPE_CHECKING:
    from tokenlaw import prove_session

CONTROLS_PART = 0.5
"""Seconds that the controls may take, as a part of those of the checks."""

_PROGRESS_SECONDS = 0.1


def main() -> None:
    """Serve one request and end the process, whatever threads the implementation left behind."""
    try:
        events = os.fdopen(os.dup(1), "wb", buffering=0)
        lifeline = os.fdopen(os.dup(0), "rb")
        os.dup2(2, 1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        request = msgspec.json.decode(lifeline.readline(), type=Request)
        stop = threading.Event()
        threading.Thread(target=end_with_parent, args=(lifeline, stop), daemon=True).start()
        _answer(request, lambda event: events.write(encode(event, request.token)), stop.is_set)
    except BaseException:
        # Nobody can be told but by the last lines on stderr.
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def end_with_parent(lifeline: IO[bytes], stop: threading.Event) -> None:
    """Wait for the end of the parent, however it comes, then end with everything that was started here.

    Whatever comes before means that the parent has enough: `tokenlaw.process.Child.ask_to_stop`.
    """
    while lifeline.readline():
        stop.set()
    os.killpg(os.getpgid(0), signal.SIGKILL)


def _answer(request: Request, emit: Callable[[Event], Any], stopped: Callable[[], bool]) -> None:
    emit(Started())
    try:
        serve(request, emit, stopped)
    except LacksContract as error:
        emit(Fault("lacks contract", encodable(str(error))))
    except BadUse as error:
        emit(Fault("bad use", encodable(str(error))))
    except KeyboardInterrupt:
        # Ctrl-C doesn't reach this process: its session isn't that of the terminal.
        message = f"target {request.target!r}: it raised KeyboardInterrupt while it was imported or built"
        emit(Fault("bad use", encodable(message)))
    except BaseException:
        emit(Fault("tool", encodable(traceback.format_exc())))


def serve(request: Request, emit: Callable[[Event], Any], stopped: Callable[[], bool]) -> None:
    """Load the target, run one contract, and say what happened.

    Parameters
    ----------
    request : what is to be done.
    emit : takes every event.
    stopped : whether the proof of a program is to end with what is known by then.

    Raises
    ------
    BadUse
        The request can't be fulfilled as it stands.
    """
    watch = Watch(Path(request.scratch), request.limits.quiet)
    watch.allow(request.limits.start)
    torch.set_num_threads(1)
    request, session = _opened(request, stopped)
    emit(Described(session.name, session.version, session.contracts, session.to_run))
    allowed = session.seconds * (1 + CONTROLS_PART) if request.controls else session.seconds
    emit(Planned(session.contract, session.capabilities, session.checks, allowed))
    if request.load_only:
        emit(Finished())
        return
    progress, started = _throttled(emit, watch.alive), time.process_time()
    for seed in range(request.seed, request.seed + request.seeds):
        if isinstance(session, Session):
            session.seed = seed
        watch.allow(session.seconds, request.limits.quiet)
        for evidence in session.run(progress, watch.before_run, lambda found: emit(Kept(found))):
            emit(Reported(evidence))
        emit(SeedEnded(seed))
    spent = time.process_time() - started
    if request.controls and isinstance(session, Session):
        watch.allow(session.seconds * CONTROLS_PART, request.limits.quiet)
        for control in session.controls(progress, watch.before_run):
            emit(Controlled(control))
    watch.stop()
    emit(Finished(spent))


def _opened(
    request: Request, stopped: Callable[[], bool]
) -> "tuple[Request, Session | prove_session.ProofSession]":
    """The session of a request, and the request as it turned out."""
    if request.proof is None:
        return request, Session(request)
    # Enumeration takes a second to import, which audits of caches needn't wait for.
    from tokenlaw.prove_session import opened

    return opened(request, request.proof, stopped)


def _throttled(emit: Callable[[Event], Any], alive: Callable[[], None]) -> Callable[[str, int, int], None]:
    """A progress callback that speaks at most ten times a second, and at the end."""
    last = 0.0

    def progress(what: str, done: int, total: int) -> None:
        nonlocal last
        alive()
        now = time.monotonic()
        if done >= total or now - last >= _PROGRESS_SECONDS:
            last = now
            emit(Progressed(what, done, total))

    return progress


if __name__ == "__main__":
    main()
