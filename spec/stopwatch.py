"""The time that is taken from an implementation's budget, the same on a busy machine and on a quiet one."""

import time
from pathlib import Path

WALL = 3.0
"""So many times the seconds of processor time may pass on the clock."""

SCHEDULING = Path("/proc/self/schedstat")
"""Where Linux tells how long this process had the processor, and how long it waited for it; nanoseconds."""


class Stopwatch:
    """Seconds of processor time since it was made, or a third of those on the clock, if that is more.

    Of all threads of the process together. What waits for a device or for another process uses little. What
    passes while others have the processor doesn't count: on a busy machine nothing is given up early.
    """

    def __init__(self) -> None:
        self._processor, self._clock = time.process_time(), _undisturbed()

    def __call__(self) -> float:
        """What is used up so far."""
        used, passed = time.process_time() - self._processor, _undisturbed() - self._clock
        return max(used, passed / WALL)


def _undisturbed() -> float:
    """Seconds on the clock without those in which others had the processor, where the system tells them."""
    try:
        waited = int(SCHEDULING.read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        waited = 0.0
    return time.perf_counter() - waited
