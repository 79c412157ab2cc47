"""One child process: started, listened to, measured, and ended with everything that it started."""

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any

import msgspec

from tokenlaw.protocol import LATE_FILE, RUNNING_FILE, STACK_FILE, Event, Request, decode

_POLL_SECONDS = 0.1
_GRACE_SECONDS = 5.0
_OUTPUT_LINES = 20
_MARK = "TOKENLAW_CHILD"
_TOO_SLOW = (
    "took longer in all than its profile allows (a deeper one, or fewer checks by --only, gives more time)"
)
# The stack of the thread that waits for the parent's end is nobody's concern.
_OWN_THREAD = re.compile(r"Thread .*\n(?:  File .*\n)*?  File .* in end_with_parent\n(?:  File .*\n)*\n?")
_ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


class Child:
    """A child process that serves one request.

    Its own session: a signal to the group ends whatever the implementation started, and Ctrl-C on the
    terminal reaches the parent alone, which then ends the child. What left the group is found by a mark in
    its environment (where ``/proc`` exists).
    """

    def __init__(self, request: Request) -> None:
        self._limits = request.limits
        self._token = request.token
        self._given_up = ""
        self._speaks = False
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tokenlaw.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | _ENVIRONMENT | {_MARK: request.token},
            start_new_session=True,
        )
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._output: deque[bytes] = deque(maxlen=_OUTPUT_LINES)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._listen(self._process.stdout, self._lines.put, lambda: self._lines.put(None))
        self._listener = self._listen(self._process.stderr, self._output.append, lambda: None)
        self.keep_within(self._limits.start + self._limits.quiet)
        # A child that is dead already says so by the end of its events.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(msgspec.json.encode(request) + b"\n")
            self._process.stdin.flush()

    @staticmethod
    def _listen(stream: IO[bytes], take: Any, at_end: Any) -> threading.Thread:
        def listen() -> None:
            for line in stream:
                take(line)
            at_end()

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        return thread

    def ask_to_stop(self) -> None:
        """Say that nothing more needs to be tried; only proofs of programs heed it."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(b"stop\n")
            self._process.stdin.flush()

    def keep_within(self, seconds: float | None) -> None:
        """Give the child so many seconds from now; None leaves things as they are."""
        if seconds is not None:
            self._end = time.monotonic() + seconds

    def events(self) -> Generator[Event]:
        """What the child says, until it ends or is ended. Nothing of it is left alive after ``close()``."""
        ended = False
        try:
            while not self._given_up:
                try:
                    line = self._lines.get(timeout=_POLL_SECONDS)
                except queue.Empty:
                    if ended:
                        return  # what it started may hold the channel open
                    ended = self._process.poll() is not None
                    self._check_limits()
                    continue
                if line is None:
                    self._process.wait(_GRACE_SECONDS)
                    return
                self._check_limits()
                event = decode(line, self._token)
                if event is not None:
                    self._speaks = True
                    yield event
        except subprocess.TimeoutExpired:
            self._given_up = "it closed its channel but went on"
        finally:
            self._end_group()

    def _check_limits(self) -> None:
        if time.monotonic() > self._end:
            self._given_up = "it took longer than its time limit"
        elif self._speaks and (resident := _resident_bytes(self._process.pid)) > self._limits.memory:
            held, limit = resident / 2**30, self._limits.memory / 2**30
            self._given_up = f"it held {held:.1f} GiB of memory; the limit is {limit:.1f} GiB"

    def _end_group(self) -> None:
        # Nobody may be left; macOS says so with PermissionError.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pid in _with_environment(f"{_MARK}={self._token}"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._listener.join(_POLL_SECONDS)

    def obituary(self, scratch: Path) -> str:
        """How the child ended: limit, hang, signal or exit status, then its stacks and its last output."""
        stacks = _OWN_THREAD.sub("", _text(scratch / STACK_FILE))
        parts = [f"the process that ran the implementation ended early: {self._cause(stacks, scratch)}"]
        if stacks:
            parts.append(stacks.rstrip())
        output = b"".join(self._output).decode(errors="replace").rstrip()
        if output:
            parts.append(f"last lines that it printed:\n{output}")
        return "\n".join(parts)

    def _cause(self, stacks: str, scratch: Path) -> str:
        if self._given_up:
            return f"{self._given_up}, so it was killed"
        if stacks.startswith("Timeout") and (scratch / LATE_FILE).exists():
            return f"it went on, but {_TOO_SLOW}; this is where it stood"
        if stacks.startswith("Timeout"):
            return "it hung (no progress within its time limit); this is where it stood"
        code = self._process.returncode
        if code < 0:
            return f"killed by signal {-code} ({signal.Signals(-code).name})"
        return f"it exited with status {code} in the middle of the run"

    @staticmethod
    def running(scratch: Path) -> dict[str, Any] | None:
        """The trace or case that was running when the child ended, if any."""
        try:
            found: dict[str, Any] = msgspec.json.decode((scratch / RUNNING_FILE).read_bytes())
        except (OSError, msgspec.DecodeError):
            return None
        return found


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _with_environment(entry: str) -> list[int]:
    """Processes that were started with this entry in their environment; none where ``/proc`` doesn't tell."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it ended meanwhile, or belongs to somebody else
            if entry.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def _resident_bytes(pid: int) -> int:
    """Resident memory of a process; 0 where ``/proc`` doesn't tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
