"""The exact law of an unmodified program: run every path that its random numbers can take.

Every run replays the choices of a path and goes on from there; the choices it makes for the first time are
where other paths begin. No sampling, hence no noise: a deviation of 1e-8 is visible.
"""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from tokenlaw.stats.enumeration.choices import Node, Path, Weight
from tokenlaw.stats.enumeration.errors import (
    EnumerationError,
    Merged,
    NotRepeatableError,
    Refused,
    TooLong,
    UndecidableError,
)
from tokenlaw.stats.enumeration.frontier import Frontier
from tokenlaw.stats.enumeration.law import Law, Raised, sum_of
from tokenlaw.stats.enumeration.sources import default_sources
from tokenlaw.stats.enumeration.states import StateGraph, current
from tokenlaw.stats.enumeration.tape import ADVICE, Source, Tape, raising_line

MAX_PATHS = 200_000
"""Paths that are run at most, unless asked for more; they also bound the memory."""

MET_A_LAZY = re.compile(r"Lazy(Number|Element|Array)|object_|dtype\('O'\)|object arrays?|the input types")
"""What functions say, numpy's and torch's in C above all, when they are given a lazy number for a float."""

Progress = Callable[[int, float], None]
"""Is told the number of paths run, and the probability explored."""


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
    progress : told about every path.
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
    return exact_laws(
        lambda: [program()], 1, max_paths=max_paths, seconds=seconds, progress=progress, sources=sources
    )


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
    programs : all that is enumerated, or something that refers to it: what it holds by another name is replaced.
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
    ) -> Law:
        """As `exact_laws`."""
        exploration = Exploration(rows, self._tape)
        started = time.perf_counter()
        while exploration.unfinished and exploration.paths < max_paths:
            exploration.run(program)
            if progress is not None:
                progress(exploration.paths, exploration.explored)
            if seconds is not None and time.perf_counter() - started >= seconds:
                break
        return exploration.law(time.perf_counter() - started)


class Exploration:
    """The paths of a program that were run, and those that are left.

    Parameters
    ----------
    rows : of a batch.
    tape : decides the program's random numbers.

    Attributes
    ----------
    paths : paths run so far.
    explored : their probability, as far as it doesn't lead through declared states.
    """

    def __init__(self, rows: int, tape: Tape) -> None:
        self._graph, self.tape = StateGraph(), tape
        tape.renew(rows, self._graph)
        self.paths, self.explored = 0, 0.0
        self._frontier = Frontier()
        self._cut: dict[int, Weight] = defaultdict(int)
        self._examples: dict[Hashable, tuple[int, tuple[Node, int] | None]] = {}
        self._checked_at = 1

    @property
    def unfinished(self) -> bool:
        """Whether there is a path left to run."""
        return not self.paths or len(self._frontier) > 0

    def run(self, program: Callable[[], Sequence[Any]]) -> None:
        """Run the next paths, one in each row."""
        given = [self._frontier.take() for _ in range(min(self.tape.rows, len(self._frontier)))] or [[]]
        outcomes, paths = self._outcomes(program, given)
        for number, path in enumerate(paths[: len(given)]):
            self._finish(path, None if outcomes is None else outcomes[number])
        if outcomes is not None and self.paths >= self._checked_at:
            self._checked_at = 2 * self.paths
            self._repeat(program, paths[0], outcomes[0])

    def law(self, seconds: float) -> Law:
        """What is known of the law."""
        totals = self._graph.totals()
        found: dict[Hashable, list[Weight]] = defaultdict(list)
        for state, outcomes in self._graph.outcomes.items():
            for outcome, weight in outcomes.items():
                found[outcome].append(totals[state] * weight)
        left = [totals[state] * weight for state, weight in self._frontier.unexplored().items()]
        left += [totals[state] * weight for state, weight in self._cut.items()]
        return Law(
            {outcome: sum_of(weights) for outcome, weights in found.items()},
            sum_of(left),
            self.paths,
            seconds,
            {outcome: example for outcome, (_, example) in self._examples.items()},
        )

    def _outcomes(
        self, program: Callable[[], Sequence[Any]], given: "list[list[tuple[Node, int]]]"
    ) -> tuple[list[Hashable] | None, list[Path]]:
        """One outcome for each row, None if the run ended early; rows without a path repeat the last one."""
        paths = [Path(given[min(row, len(given) - 1)]) for row in range(self.tape.rows)]
        self.tape.start(paths)
        try:
            found = [frozen(outcome) for outcome in program()]
        except (Merged, TooLong) as end:
            return self._ended(end, paths[0])
        except Refused:
            found = []
        except Exception as error:
            found = self._raised(error)
        self.tape.check()
        for path in paths:
            if path.replays:
                raise NotRepeatableError(path.missing())
        if len(found) != self.tape.rows:
            raise EnumerationError(f"{len(found)} outcomes came back for {self.tape.rows} rows")
        return found, paths

    def _ended(self, end: Merged | TooLong, path: Path) -> tuple[None, list[Path]]:
        self.tape.check()
        if self.tape.rows > 1:
            raise EnumerationError("a row of a batch goes on without end; enumerate one row at a time")
        if isinstance(end, TooLong):
            self._cut[path.state] += path.segment
        return None, [path]

    def _raised(self, error: Exception) -> list[Hashable]:
        self.tape.check()
        if self.tape.rows > 1:
            raise EnumerationError(
                f"the program raised {type(error).__name__}: {error} in a batch, where the row is unknown; "
                "enumerate one row at a time"
            ) from error
        if isinstance(error, EnumerationError):
            raise error
        if MET_A_LAZY.search(str(error)):
            line = raising_line(error)
            raise UndecidableError(f"{line}: {error}: this can't read a random number. {ADVICE}") from error
        return [Raised(f"{type(error).__name__}: {error}")]

    def _finish(self, path: Path, outcome: Hashable | None) -> None:
        self.paths += 1
        for node, taken in path.line()[len(path.given) :]:
            self._frontier.add(node, taken)
        if outcome is None:
            return
        self.explored += float(path.mass)
        self._graph.outcomes[path.state][outcome] += path.segment
        shortest = self._examples.get(outcome)
        if shortest is None or path.position < shortest[0]:
            example = None if path.node is None else (path.node, path.branch)
            self._examples[outcome] = (path.position, example)

    def _repeat(self, program: Callable[[], Sequence[Any]], path: Path, outcome: Hashable) -> None:
        """Run a path again: keeping state, or drawing from elsewhere, is likely to give another outcome."""
        again, [repeated, *_] = self._outcomes(program, [path.line()])
        if repeated.fresh:
            question = repeated.fresh[0].question.words(
                repeated.branch, repeated.fresh[0].weights[repeated.branch]
            )
            raise NotRepeatableError(
                f"the same choices led to an end, and then to another choice: {question}"
            )
        found = "no outcome" if again is None else repr(again[0])
        if found != repr(outcome):
            raise NotRepeatableError(
                f"the same choices led to {outcome!r} and then to {found}: the program keeps state between "
                "calls, or draws random numbers that aren't seen here"
            )


def frozen(outcome: Any) -> Hashable:
    """An outcome as something hashable: lists, arrays and tensors become tuples.

    Raises
    ------
    EnumerationError
        It can't be compared with other outcomes.
    """
    if hasattr(outcome, "tolist"):
        outcome = outcome.tolist()
    if isinstance(outcome, list | tuple):
        return tuple(frozen(part) for part in outcome)
    if isinstance(outcome, dict):
        return tuple((frozen(key), frozen(part)) for key, part in outcome.items())
    try:
        hash(outcome)
    except TypeError:
        raise EnumerationError(
            f"the program returned a {type(outcome).__name__}, which can't be compared with other outcomes; "
            "return numbers, texts, lists, arrays or tensors"
        ) from None
    return outcome  # type: ignore[no-any-return]
