"""The child's watchdog: what is being run stands in a file, and a hang ends the process with its stacks."""

import faulthandler
import time
from pathlib import Path
from typing import Any

import msgspec

from tokenlaw.protocol import LATE_FILE, RUNNING_FILE, STACK_FILE

_REARM_SECONDS = 1.0


class Watch:
    """Ends this process when nothing happens for too long.

    faulthandler's own thread does it, without the interpreter lock: a hang in compiled code is seen as well.

    Parameters
    ----------
    scratch : folder for the stacks and for what is being run.
    quiet : seconds between two signs of life.
    """

    def __init__(self, scratch: Path, quiet: float) -> None:
        self._running, self._late = scratch / RUNNING_FILE, scratch / LATE_FILE
        self._stacks = (scratch / STACK_FILE).open("wb")
        self._quiet = quiet
        self._end = float("inf")
        self._armed, self._tells_late = 0.0, False
        faulthandler.enable(self._stacks)

    def allow(self, seconds: float, quiet: float | None = None) -> None:
        """From now on: so many seconds in all, and so many between two signs of life."""
        now = time.monotonic()
        self._end, self._quiet = now + seconds, seconds if quiet is None else quiet
        self._tells_late = quiet is not None
        self._late.unlink(missing_ok=True)
        self._arm(now)

    def alive(self) -> None:
        """A sign of life."""
        now = time.monotonic()
        if now - self._armed >= min(_REARM_SECONDS, self._quiet / 4):
            self._arm(now)

    def before_run(self, data: Any) -> None:
        """A sign of life: this trace or case is run next."""
        self._running.write_bytes(msgspec.json.encode(data))
        self.alive()

    def stop(self) -> None:
        """Nothing more is watched."""
        faulthandler.cancel_dump_traceback_later()

    def _arm(self, now: float) -> None:
        self._armed = now
        left = max(min(self._quiet, self._end - now), 0.01)
        if self._tells_late and left < self._quiet:
            self._late.touch()
        faulthandler.dump_traceback_later(left, file=self._stacks, exit=True)
