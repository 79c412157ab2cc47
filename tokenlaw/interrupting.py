"""The first Ctrl-C of a proof: what is known by then is said; the second one ends it."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SAID = "tokenlaw: stopping with what is known so far; Ctrl-C again ends at once"


@contextmanager
def first_interrupt(stop: Callable[[], bool]) -> Iterator[None]:
    """Within the block, the first Ctrl-C calls ``stop`` in place of raising KeyboardInterrupt.

    Nothing changes in other threads than the main one, or where somebody else handles Ctrl-C.

    Parameters
    ----------
    stop : asks for an early end; false if none can be asked for, which raises after all.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        if not stop():
            raise KeyboardInterrupt
        print(SAID, file=sys.stderr, flush=True)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
