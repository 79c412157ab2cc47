"""Time of a search: how much of its budget it has spent, and how often it says where it stands."""

import time
from dataclasses import dataclass, field

from tokenlaw.spec.stopwatch import Stopwatch
from tokenlaw.spec.suites import Progress

_SECONDS_BETWEEN_PROGRESS = 0.1


@dataclass
class Reporter:
    """Passes progress on, but not too often."""

    progress: Progress
    last: float = 0.0

    def say(self, what: str, done: int, total: int, always: bool = False) -> None:
        """Say that ``done`` of ``total`` are done, if nothing was said just before, or ``always``."""
        now = time.monotonic()
        if always or now - self.last >= _SECONDS_BETWEEN_PROGRESS:
            self.last = now
            self.progress(what, done, total)


@dataclass(frozen=True)
class Clock:
    """Time since it was made.

    Attributes
    ----------
    spent : seconds that count against a budget; the clock on the wall doesn't.
    """

    monotonic: float = field(default_factory=time.monotonic)
    spent: Stopwatch = field(default_factory=Stopwatch)

    def wall(self) -> float:
        """Seconds."""
        return time.monotonic() - self.monotonic
