"""Running one path of a program again, to see where in the program its choices are made."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

from tokenlaw.stats.enumeration.choices import Path
from tokenlaw.stats.enumeration.errors import CutShort
from tokenlaw.stats.enumeration.sources import default_sources
from tokenlaw.stats.enumeration.states import NoStates, current
from tokenlaw.stats.enumeration.tape import Source, Tape


def retell(
    program: Callable[[], Any],
    path: Path,
    sources: Callable[[Tape], Iterable[Source]] = default_sources,
) -> Exception | None:
    """Take down the program's line at each choice of a path; what the program raises is returned.

    Parameters
    ----------
    program, sources : as of `tokenlaw.stats.enumeration.exact_law.exact_law`.
    path : made of all choices, none of which was replayed yet.
    """
    tape = Tape(graph=NoStates(), places=True)
    tape.program = program
    with ExitStack() as stack:
        for source in sources(tape):
            stack.enter_context(source)
        token = current.set(tape)
        stack.callback(current.reset, token)
        tape.start([path])
        try:
            program()
        except CutShort:  # all that can come of it is known
            return None
        except Exception as error:
            return error
    return None
