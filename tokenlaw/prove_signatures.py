"""Programs and laws of the next token, told apart by the arguments that they need."""

import inspect
from typing import Any

from tokenlaw.errors import BadUse


def require_program(found: Any, name: str) -> None:
    """Raise `BadUse` unless it can be called without arguments."""
    if not callable(found):
        raise BadUse(f"{name} is a {type(found).__name__}; expected a function without arguments")
    if needed := _needed(found):
        raise BadUse(
            f"{name} needs {', '.join(needed)}; a program is called without arguments: write a function "
            "without any that calls it"
        )


def is_next_token_law(found: Any, name: str) -> bool:
    """Whether a spec is a law of the next token (one argument) instead of a program (none).

    Raises
    ------
    BadUse
        It is neither.

    Examples
    --------
    >>> is_next_token_law(lambda tokens: [0.5, 0.5], "spec"), is_next_token_law(lambda: 0, "spec")
    (True, False)
    """
    if not callable(found):
        raise BadUse(f"{name} is a {type(found).__name__}; expected a function")
    needed = _needed(found)
    if len(needed) > 1:
        raise BadUse(
            f"{name} needs {', '.join(needed)}; a spec is a program without arguments, or a function of one "
            "argument: the tuple of tokens so far, to which it returns the law of the next token"
        )
    return len(needed) == 1


def _needed(function: Any) -> list[str]:
    """The arguments without which it can't be called."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in parameters if each.default is each.empty and each.kind not in optional]
