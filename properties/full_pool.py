"""A hint for engines that refuse a scheduling call with an error of their own, not with `OutOfBlocks`."""

HINT = "if this means that the pool is full, raise tokenlaw.OutOfBlocks"
"""Last line of the traceback of what a scheduling call raised; no part of what tells crashes apart."""


def hint(error: Exception) -> None:
    """Note on an exception of a scheduling call, once, what it should have been."""
    if HINT not in getattr(error, "__notes__", ()):
        error.add_note(HINT)


def last_line(traceback: str) -> str:
    """What was raised: the last line of a traceback but for the hint.

    >>> last_line(f"Traceback\\nPoolError: full\\n{HINT}")
    'PoolError: full'
    """
    lines = [line for line in traceback.strip().splitlines() if line != HINT]
    return lines[-1] if lines else "a crash"
