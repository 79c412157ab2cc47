"""The exact law of an unmodified program: run every path that its random numbers can take.

Every run replays the choices of a path and goes on from there; the choices it makes for the first time are
where other paths begin. No sampling, hence no noise: a deviation of 1e-8 is visible.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from tokenlaw.stats.enumeration.choices import Node
from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.exploration import Exploration
from tokenlaw.stats.enumeration.law import Law
from tokenlaw.stats.enumeration.sources import default_sources
from tokenlaw.stats.enumeration.states import NoStates, current
from tokenlaw.stats.enumeration.tape import Source, Tape

MAX_PATHS = 200_000
"""Paths that are run at most, unless asked for more; they also bound the memory."""

Progress = Callable[[int, float], bool | None]
"""Is told the number of paths run, and the probability explored; true leaves the rest unexplored."""


def exact_law(
    program: Callable[[], Any],
    *,
    max_paths: int = MAX_PATHS,
    seconds: float | None = None,
    progress: Progress | None = None,
    sources: Callable[[Tape], Iterable[Source]] = default_sources,
) -> Law:
    """The law of what a program returns, over all its random numbers.

    Parameters
    ----------
    program : called once for each path, without arguments. Its random numbers come from ``random``,
        ``numpy.random`` or torch. It returns something hashable, or a list, an array or a tensor. What it
        raises is an outcome as well (`Raised`). It must not keep state between calls.
    max_paths, seconds : stop there; the law then has an unexplored part, and its probabilities have bounds.
    progress : told about every path; may end it as ``seconds`` does.
    sources : where random numbers come from; the default knows all of the above.

    Raises
    ------
    UndecidableError
        A random number is used in a way that has no exact probability here.
    NotRepeatableError
        The same choices led to something else.
    VoidLawError
        The probabilities don't sum to one.

    Examples
    --------
    >>> import random
    >>> law = exact_law(lambda: "heads" if random.random() < 0.25 else "tails")
    >>> dict(law.probabilities), law.paths
    ({'tails': 0.75, 'heads': 0.25}, 2)
    """

    @as_the_real_one
    def one_row() -> list[Any]:
        return [program()]

    return exact_laws(one_row, 1, max_paths=max_paths, seconds=seconds, progress=progress, sources=sources)


def exact_laws(
    program: Callable[[], Sequence[Any]],
    rows: int,
    *,
    max_paths: int = MAX_PATHS,
    seconds: float | None = None,
    progress: Progress | None = None,
    sources: Callable[[Tape], Iterable[Source]] = default_sources,
) -> Law:
    """The law of each row of a batched program whose rows are equal and independent, many paths a run.

    Parameters
    ----------
    program : gives one outcome for each row; every row follows a path of its own. Of random tensors one
        dimension is the rows: choose a number that is no other size. That rows don't influence each other is
        taken for granted here.
    rows : rows of the batch.
    max_paths, seconds, progress, sources : as in `exact_law`.
    """
    with Enumerator(program, sources) as enumerator:
        return enumerator.laws(program, rows, max_paths=max_paths, seconds=seconds, progress=progress)


class Enumerator:
    """Random numbers stay replaced while it is entered, so that the laws of many small programs cost less.

    Parameters
    ----------
    programs : all that is enumerated, or what refers to it: random functions that it holds are replaced too.
    sources : as in `exact_law`.
    """

    def __init__(
        self, programs: object, sources: Callable[[Tape], Iterable[Source]] = default_sources
    ) -> None:
        self._tape = Tape()
        self._tape.program = programs
        self._sources, self._stack = sources, ExitStack()

    def __enter__(self) -> "Enumerator":
        with ExitStack() as stack:
            for source in self._sources(self._tape):
                stack.enter_context(source)
            token = current.set(self._tape)
            stack.callback(current.reset, token)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    def laws(
        self,
        program: Callable[[], Sequence[Any]],
        rows: int,
        *,
        max_paths: int = MAX_PATHS,
        seconds: float | None = None,
        progress: Progress | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> Law:
        """As `exact_laws`; ``seconds`` are those of the clock."""
        exploration = Exploration(rows, self._tape)
        started = clock()
        while exploration.unfinished and exploration.paths < max_paths:
            exploration.run(program)
            if progress is not None and progress(exploration.paths, exploration.explored):
                break
            if exploration.negligible():
                break
            if seconds is not None and clock() - started >= seconds:
                break
        else:
            exploration.repeat_ends(program)
        return exploration.law(clock() - started)

    def repeat(
        self, program: Callable[[], Sequence[Any]], line: "list[tuple[Node, int]]", outcome: Hashable
    ) -> None:
        """Run a path of one row once more; see `repeat_path`."""
        Exploration(1, self._tape, NoStates()).repeat(program, line, outcome)


def repeat_path(
    program: Callable[[], Any],
    line: "list[tuple[Node, int]]",
    outcome: Hashable,
    sources: Callable[[Tape], Iterable[Source]] = default_sources,
) -> None:
    """Run a path of a law once more, after whatever has happened since.

    Parameters
    ----------
    program, sources : as of `exact_law`.
    line : the choices of the path, from the first one on.
    outcome : what it led to.

    Raises
    ------
    NotRepeatableError
        It leads to something else: the program keeps state.
    """

    @as_the_real_one
    def one_row() -> list[Any]:
        return [program()]

    with Enumerator(program, sources) as enumerator:
        enumerator.repeat(one_row, line, outcome)
