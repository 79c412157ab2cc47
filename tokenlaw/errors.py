"""What can go wrong in the face: bad use by the caller, and faults of tokenlaw itself."""

from tokenlaw.text import one_line


class BadUse(Exception):
    """The caller asked for something that can't be done; the message is one clear line (exit status 3)."""


class LacksContract(BadUse):
    """The target is fine but fulfils none of the contracts that were asked for."""


class ToolFault(Exception):
    """tokenlaw itself failed; the message is the traceback (exit status 4)."""


def described(error: BaseException) -> str:
    """Type and message of an exception on a single line.

    >>> described(ValueError("two\\nlines"))
    'ValueError: two lines'
    """
    text = one_line(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
