"""Work in a forked child: an answer in JSON, its last words if it dies, and a limit on processor time."""

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

Say = Callable[[Any], None]
"""Sends something that JSON can hold to the parent."""


def in_child(work: Callable[[Say], None]) -> tuple[list[Any], int]:
    """Run ``work`` in a fork of this process without output; what it said, and the signal that ended it or 0.

    Raises
    ------
    RuntimeError
        The child ended by an error of its own.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _be_child(work, writing)
    os.close(writing)
    with os.fdopen(reading) as stream:
        said = [json.loads(line) for line in stream]
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise RuntimeError(f"a child failed; it said {said[-3:]}")
    return said, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def limit_processor_time(seconds: float) -> None:
    """The process dies of ``SIGPROF`` after so many seconds of processor time from now."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _be_child(work: Callable[[Say], None], writing: int) -> None:
    def say(something: Any) -> None:
        os.write(writing, (json.dumps(something) + "\n").encode())

    code = 1
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        work(say)
        code = 0
    except BaseException as error:
        say(f"{type(error).__name__}: {error}")
    finally:
        os._exit(code)
