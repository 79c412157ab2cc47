"""What can go wrong in the face: bad use by the caller, and faults of tokenlaw itself."""

from tokenlaw.text import one_line, without_middle

_LONGEST_MESSAGE = 500


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
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:
        return f"{name} (its message can't be shown: its __str__ raises)"
    text = one_line(without_middle(text, _LONGEST_MESSAGE))
    return f"{name}: {text}" if text else name
