"""The child process of an audit: ``python -P -m tokenlaw.child`` runs one contract of one target.

The request arrives on stdin. Events leave on what was stdout; everything that the implementation prints
goes to stderr instead.
"""

import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec
import torch

from tokenlaw.errors import BadUse, LacksContract
from tokenlaw.protocol import (
    Described,
    Event,
    Fault,
    Finished,
    Planned,
    Progressed,
    Reported,
    Request,
    Started,
    encode,
)
from tokenlaw.session import Session
from tokenlaw.text import encodable
from tokenlaw.watch import Watch

_PROGRESS_SECONDS = 0.1


def main() -> None:
    """Serve one request and end the process, whatever threads the implementation left behind."""
    events = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    def emit(event: Event) -> None:
        events.write(encode(event))

    emit(Started())
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    try:
        serve(request, emit)
    except LacksContract as error:
        emit(Fault("lacks contract", encodable(str(error))))
    except BadUse as error:
        emit(Fault("bad use", encodable(str(error))))
    except BaseException:
        emit(Fault("tool", encodable(traceback.format_exc())))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def serve(request: Request, emit: Callable[[Event], None]) -> None:
    """Load the target, run one contract, and say what happened.

    Raises
    ------
    BadUse
        The request can't be fulfilled as it stands.
    """
    watch = Watch(Path(request.scratch), request.limits.quiet)
    watch.allow(request.limits.start)
    torch.set_num_threads(1)
    session = Session(request)
    emit(Described(session.name, session.version, session.contracts, session.to_run))
    emit(Planned(session.contract, session.capabilities, session.checks, session.seconds))
    watch.allow(session.seconds, request.limits.quiet)
    for evidence in session.run(_throttled(emit, watch.alive), watch.before_run):
        emit(Reported(evidence))
    watch.stop()
    emit(Finished())


def _throttled(emit: Callable[[Event], None], alive: Callable[[], None]) -> Callable[[str, int, int], None]:
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
