"""What it means that a run ends with an exception: an outcome of the program, or a fault of ours.

Random functions are replaced while a law is enumerated. Where the real one would raise, the replacement must
raise too, and a program may well do so with some probability. But an exception that comes from a mistake in
the replacement is no outcome: the law would be wrong in silence.
"""

import re
from traceback import walk_tb

from tokenlaw.stats.enumeration.errors import REAL, EnumerationError, UndecidableError
from tokenlaw.stats.enumeration.law import Raised
from tokenlaw.stats.enumeration.tape import ADVICE, LIBRARIES, OURS, line_of, line_outside, module_of

MET_A_LAZY = re.compile(r"Lazy(Number|Element|Array)|object_|dtype\('O'\)|object arrays?|the input types")
"""What functions say, numpy's and torch's in C above all, when they are given a lazy number for a float."""


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
    raising = [
        frame
        for frame, _ in walk_tb(error.__traceback__)
        if module_of(frame).partition(".")[0] not in LIBRARIES
    ][-1]
    if module_of(raising).startswith(OURS) and raising.f_code not in REAL:
        raise EnumerationError(
            f"{where}: {what}, raised at {line_of(raising)}: this is a fault of the enumeration, no "
            f"outcome of the program; please report it. {ADVICE}"
        ) from error
    return Raised(what)
