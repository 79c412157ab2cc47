"""What it means that a run ends with an exception: an outcome of the program, or a fault of ours.

Random functions are replaced while a law is enumerated. Where the real one would raise, the replacement must
raise too, and a program may well do so with some probability. But an exception that comes from a mistake in
the replacement is no outcome: the law would be wrong in silence.
"""

import re
import sys
from traceback import walk_tb
from types import FrameType

from tokenlaw.stats.enumeration.errors import REAL, EnumerationError, UndecidableError
from tokenlaw.stats.enumeration.law import Raised
from tokenlaw.stats.enumeration.tape import ADVICE, OURS, is_of_a_library, line_of, line_outside, module_of

MET_A_LAZY = re.compile(
    r"Lazy(Number|Element|Scalar|Array|Tensor|InPlace)|object_|dtype\('O'\)|object arrays?"
    r"|array of references|format O\b|the input types|doesn't have storage"
)
"""What functions say, numpy's and torch's in C above all, when they are given a lazy number for a float."""
CALLED = re.compile(r"([\w.<>]+)\(\) (got|takes|missing) ")
"""What Python says when a function can't be called with some arguments."""


def raising_line(error: BaseException) -> str:
    """Where the program was when something raised an exception: file, line number and text."""
    return line_outside([frame for frame, _ in walk_tb(error.__traceback__)][::-1])


def outcome_of(error: Exception) -> Raised:
    """The outcome of a run that has raised.

    Raises
    ------
    EnumerationError
        It comes from here: what the program did has no law, or a fault of ours has ended the run.
    """
    if isinstance(error, EnumerationError):
        raise error
    where, what = raising_line(error), f"{type(error).__name__}: {error}"
    if MET_A_LAZY.search(str(error)):
        raise UndecidableError(f"{where}: {error}: this can't read a random number. {ADVICE}") from error
    called = CALLED.match(str(error)) if isinstance(error, TypeError) else None
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    if called and _is_ours(called[1]) and not _is_of_the_program(called[1], frames[-1]):
        raise UndecidableError(
            f"{where}: {error}: this call isn't known here, whatever the real function does with it. {ADVICE}"
        ) from error
    raising = [frame for frame in frames if not is_of_a_library(frame)][-1]
    if module_of(raising).startswith(OURS) and raising.f_code not in REAL:
        raise EnumerationError(
            f"{where}: {what}, raised at {line_of(raising)}: this is a fault of the enumeration, no "
            f"outcome of the program; please report it. {ADVICE}"
        ) from error
    return Raised(what)


def _is_of_the_program(name: str, frame: FrameType) -> bool:
    """Whether the program itself, where it was, knows something by this name that isn't ours."""
    first = name.partition(".")[0]
    known = frame.f_locals.get(first, frame.f_globals.get(first))
    # Functions in C may have None for a module.
    return known is not None and not str(getattr(known, "__module__", "")).startswith(OURS)


def _is_ours(name: str) -> bool:
    """Whether a function, by its qualified name, is one of ours that stands for a real one."""
    first = name.partition(".")[0]
    return any(
        getattr(vars(module).get(first), "__module__", None) == module.__name__
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith(OURS)
    )
