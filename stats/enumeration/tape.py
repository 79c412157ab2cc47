"""Where the random numbers of a run come from while a law is enumerated."""

import linecache
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import NoReturn, Protocol

from tokenlaw.stats.enumeration.choices import Path, Question, Weight
from tokenlaw.stats.enumeration.errors import (
    EnumerationError,
    NotRepeatableError,
    Refused,
    UndecidableError,
)
from tokenlaw.stats.enumeration.states import StateGraph

ADVICE = "Probe it (injected uniforms), or sample."


class Source(Protocol):
    """Functions that draw random numbers, replaced by ones that ask a tape while it is entered."""

    def __enter__(self) -> object: ...

    def __exit__(self, *exception: object) -> None: ...


class Tape:
    """Decides every random number of the runs of a program.

    Parameters
    ----------
    rows : paths that one run follows side by side. With more than one, random numbers belong to rows: whoever
        asks says which one, and rows must not influence each other.
    graph : takes down declared states.
    places : whether choices take down the line of the program that makes them, which is slow.

    Attributes
    ----------
    paths : one for each row.
    program : whose random numbers are decided; sources look for what it holds by another name.
    run : number of the run; lazy numbers that outlive their run are found by it.
    beginning : what sources do when a run begins.
    """

    def __init__(self, rows: int = 1, graph: StateGraph | None = None, *, places: bool = False) -> None:
        self.rows, self.run = rows, 0
        self.paths: list[Path] = []
        self.program: object = None
        self.beginning: list[Callable[[], None]] = []
        self._graph = graph or StateGraph()
        self._places = places
        self._thread, self._process = threading.get_ident(), os.getpid()
        self._error: EnumerationError | None = None

    def renew(self, rows: int, graph: StateGraph) -> None:
        """Begin with another program."""
        self.rows, self._graph, self._error = rows, graph, None

    def start(self, paths: list[Path]) -> None:
        """Begin a run on these paths, one for each row."""
        self.paths = paths
        self.run += 1
        for begin in self.beginning:
            begin()

    def choose(self, weights: Sequence[Weight], question: Question, row: int = 0) -> int:
        """Decide: index of one of the outcomes, whose weights are at least zero and sum to one."""
        if os.getpid() != self._process:
            raise UndecidableError(
                f"{calling_line()}: random numbers drawn in another process aren't seen here. {ADVICE}"
            )
        if threading.get_ident() != self._thread:
            error = UndecidableError(
                f"{calling_line()}: random numbers drawn in another thread have no order. {ADVICE}"
            )
            self._error = self._error or error
            raise SystemExit  # ends a thread without a traceback
        path = self.paths[row]
        try:
            taken = path.choose(weights, question)
        except EnumerationError as error:
            self.refuse(error)
        if self._places and path.node is not None and not path.node.place:
            path.node.place = calling_line()
        return taken

    def same_state(self, key: object) -> None:
        """See `tokenlaw.stats.enumeration.states.same_state`."""
        if self.rows > 1:
            self.refuse(EnumerationError("declared states are for runs of one row at a time"))
        try:
            self._graph.enter(self.paths[0], key)
        except EnumerationError as error:
            self.refuse(error)

    def check_run(self, run: int) -> None:
        """Refuse a lazy number that was drawn in another run."""
        if run != self.run:
            self.refuse(
                NotRepeatableError(
                    f"{calling_line()}: a random number is used that was drawn in an earlier run; "
                    "the program must not keep state from one run to the next"
                )
            )

    def refuse(self, error: EnumerationError) -> NoReturn:
        """Stop this run, and the enumeration; the program can't catch it."""
        self._error = self._error or error
        raise Refused

    def undecidable(self, operation: str, why: str) -> NoReturn:
        """Refuse an operation on lazy random numbers, by its name, and say where it is."""
        self.refuse(UndecidableError(f"{calling_line()}: {operation} {why}. {ADVICE}"))

    def check(self) -> None:
        """Raise what stopped a run, even if the program has hidden it."""
        if self._error is not None:
            raise self._error


OURS = "tokenlaw.stats.enumeration"
LIBRARIES = frozenset({"torch", "numpy", "scipy"})
STANDARD = (sysconfig.get_path("stdlib"), "<frozen ")
"""Where the code of the standard library is; a program may have a module by one of its names."""
RETURNING = "frozen"
"""Name of the function of this package that takes what the program returns."""


def calling_line() -> str:
    """File, line number and text of the program that is running, outside of libraries and of this package."""
    frames = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return line_outside(frames)


def line_outside(frames: Iterable[FrameType]) -> str:
    """The same of the first of several frames that is outside; of the last one, if none is."""
    outermost = ""
    for frame in frames:
        if module_of(frame).startswith(OURS):
            if frame.f_code.co_name == RETURNING:
                return "what the program returns"
        elif is_of_a_library(frame):
            outermost = outermost or line_of(frame)
        else:
            return line_of(frame)
    return outermost or "unknown place"


def is_of_a_library(frame: FrameType) -> bool:
    """Whether a frame's code is of the standard library, torch, numpy or scipy."""
    name = module_of(frame).partition(".")[0]
    if name in sys.stdlib_module_names:
        return frame.f_code.co_filename.startswith(STANDARD)
    return name in LIBRARIES


def module_of(frame: FrameType) -> str:
    """Name of the module that a frame's code is of."""
    return str(frame.f_globals.get("__name__", ""))


def line_of(frame: FrameType) -> str:
    """File, line number and text of what a frame is at."""
    number, path = frame.f_lineno, frame.f_code.co_filename
    text = linecache.getline(path, number).strip()
    place = f"{os.path.basename(path)}:{number}"
    return f"{place} `{text}`" if text else place
