"""Runs the paths of a program one by one, or in the rows of a batch, and adds up their outcomes."""

import math
from collections import defaultdict
from collections.abc import Callable, Coroutine, Generator, Hashable, Sequence
from typing import Any, cast

from tokenlaw.stats.enumeration.choices import Node, Path, Weight
from tokenlaw.stats.enumeration.errors import (
    EnumerationError,
    Merged,
    NotRepeatableError,
    Refused,
    TooLong,
    as_the_real_one,
)
from tokenlaw.stats.enumeration.frontier import Frontier
from tokenlaw.stats.enumeration.law import NEGLIGIBLE, Law, sum_of
from tokenlaw.stats.enumeration.raising import outcome_of
from tokenlaw.stats.enumeration.states import StateGraph
from tokenlaw.stats.enumeration.tape import Tape

REPEAT_FACTOR = 4
"""A path is run a second time after 1, 4, 16, ... paths, so that this costs little where there are many."""

CLOSE_TO_ALL = 1e-9
"""What is left is added up only if about so little of the probability is."""
LOOK_FACTOR = 8
"""It is added up again once an eighth more paths were run, which keeps this cheap."""
SPARE_PATHS = 200
"""Paths that are run beyond that, since the law may be complete after them."""


class Exploration:
    """The paths of a program that were run, and those that are left.

    Parameters
    ----------
    rows : of a batch.
    tape : decides the program's random numbers.
    graph : takes down declared states; an empty one by default.

    Attributes
    ----------
    paths : paths run so far.
    explored : their probability, as far as it doesn't lead through declared states.
    """

    def __init__(self, rows: int, tape: Tape, graph: StateGraph | None = None) -> None:
        self._graph, self.tape = graph or StateGraph(), tape
        tape.renew(rows, self._graph)
        self.paths, self.explored = 0, 0.0
        self._frontier = Frontier()
        self._cut: dict[int, Weight] = defaultdict(int)
        self._left_out: dict[int, float] = {}
        self._examples: dict[Hashable, tuple[int, tuple[Node, int] | None]] = {}
        self._checked_at, self._next_look = 1, 1
        self._first: tuple[list[tuple[Node, int]], Hashable] | None = None
        self._last: tuple[list[tuple[Node, int]], Hashable] | None = None
        self._spare: int | None = None

    @property
    def unfinished(self) -> bool:
        """Whether there is a path left to run."""
        return not self.paths or len(self._frontier) > 0

    def run(self, program: Callable[[], Sequence[Any]]) -> None:
        """Run the next paths, one in each row."""
        given = [self._frontier.take() for _ in range(min(self.tape.rows, len(self._frontier)))] or [[]]
        outcomes, paths = self._outcomes(program, given)
        for number, path in enumerate(paths[: len(given)]):
            self._finish(path)
            if outcomes is not None:
                self._add(path, outcomes[number])
        if outcomes is None:
            return
        self._last = paths[0].line(), outcomes[0]
        self._first = self._first or self._last
        if self.paths >= self._checked_at:
            self._checked_at = REPEAT_FACTOR * self.paths
            self.repeat(program, *self._last)
            self._last = None

    def repeat_ends(self, program: Callable[[], Sequence[Any]]) -> None:
        """Run the last path and the first one again: what counts its runs, or keeps them, has changed."""
        for end in (self._last, self._first) if self.paths > 1 else ():
            if end is not None:
                self.repeat(program, *end)

    def repeat(
        self, program: Callable[[], Sequence[Any]], line: "list[tuple[Node, int]]", outcome: Hashable
    ) -> None:
        """Run a path again: keeping state, or drawing from elsewhere, is likely to give another outcome.

        Raises
        ------
        NotRepeatableError
            It does.
        """
        again, [repeated, *_] = self._outcomes(program, [line])
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
            sum_of(totals[state] * effect for state, effect in self._left_out.items()),
        )

    def negligible(self) -> bool:
        """Whether so little is left that it needn't be followed: of loops without end there is always more.

        What is left is looked at now and then. A few more paths are run, since the law may be complete then.
        """
        if self.tape.rows > 1 or self.paths < self._next_look or 1 - self.explored > CLOSE_TO_ALL:
            return False
        self._next_look = self.paths + max(self.paths // LOOK_FACTOR, 1)
        if self._frontier.at_most() > NEGLIGIBLE:
            return False
        if self._spare is None:
            self._spare = self.paths + SPARE_PATHS
        return self.paths >= self._spare

    @as_the_real_one
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
        except SystemExit:  # of the program, or out of a thread that was refused
            self.tape.check()
            raise
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
        return [outcome_of(error)]

    def _finish(self, path: Path) -> None:
        self.paths += 1
        for state, effect in path.left_out.items():
            self._left_out[state] = max(effect, self._left_out.get(state, 0.0))
        for node, taken in path.line()[len(path.given) :]:
            self._frontier.add(node, taken)

    def _add(self, path: Path, outcome: Hashable) -> None:
        self.explored += float(path.mass)
        self._graph.outcomes[path.state][outcome] += path.segment
        shortest = self._examples.get(outcome)
        if shortest is None or path.position < shortest[0]:
            example = None if path.node is None else (path.node, path.branch)
            self._examples[outcome] = (path.position, example)


def frozen(outcome: Any) -> Hashable:
    """An outcome as something hashable: lists, arrays and tensors become tuples, keys of dicts are sorted.

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
        return tuple((frozen(key), frozen(outcome[key])) for key in sorted(outcome, key=repr))
    if isinstance(outcome, float) and math.isnan(outcome):
        return math.nan  # always the same one: others are equal to nothing
    if isinstance(outcome, Generator | Coroutine) or repr(outcome) == object.__repr__(outcome):
        raise _no_outcome(outcome)
    try:
        hash(outcome)
    except TypeError:
        raise _no_outcome(outcome) from None
    return cast(Hashable, outcome)


def _no_outcome(outcome: object) -> EnumerationError:
    return EnumerationError(
        f"the program returned a {type(outcome).__name__}, which can't be compared with other outcomes; "
        "return numbers, texts, lists, arrays or tensors"
    )
