"""Declared states: where the rest of a run depends on nothing but a key.

A program that says so at the right places (`same_state`) is explored as a graph instead of a tree: what
follows a state is explored once, and counted as often as the state is reached. A state may even lead back to
itself, as the loop of a rejection sampler does.
"""

from collections import defaultdict
from collections.abc import Hashable
from contextvars import ContextVar
from fractions import Fraction
from typing import Protocol

import numpy as np

from tokenlaw.stats.enumeration.choices import Node, Path, Weight
from tokenlaw.stats.enumeration.errors import Merged, NotRepeatableError

START = 0
"""The state in which every run begins."""


class _Tape(Protocol):
    def same_state(self, key: Hashable) -> None: ...


current: ContextVar[_Tape | None] = ContextVar("current tape", default=None)


def same_state(key: Hashable) -> None:
    """Declare that the law of everything after this point depends on ``key`` only, the outcome included.

    Outside of an enumeration this does nothing.

    Parameters
    ----------
    key : whatever the rest of the run, and what the program returns in the end, depends on: the tokens so
        far, say, if all caches follow from them.
    """
    tape = current.get()
    if tape is not None:
        tape.same_state(key)


class StateGraph:
    """Which declared states lead to which, with what probability, and to which outcomes.

    Attributes
    ----------
    outcomes : for each state, the probability of each outcome that is reached without another state between.
    """

    def __init__(self) -> None:
        self.outcomes: dict[int, dict[Hashable, Weight]] = {START: defaultdict(int)}
        self._numbers: dict[Hashable, int] = {}
        self._owners: list[tuple[Node | None, int]] = [(None, 0)]
        self._edges: dict[tuple[int, int], Weight] = defaultdict(int)

    def enter(self, path: Path, key: Hashable) -> None:
        """A run comes to a declared state; ends it (`Merged`) if another one has been here."""
        number = self._numbers.get(key)
        if path.replays:
            if number is None:
                raise NotRepeatableError(
                    f"the declared state {key!r} is reached by choices that missed it before"
                )
            path.state, path.segment = number, 1
            return
        here = (path.node, path.branch)
        if number is None:
            number = self._numbers[key] = len(self._owners)
            self._owners.append(here)
            self.outcomes[number] = defaultdict(int)
        elif self._owners[number] == here:
            # Declared twice without a choice between: one state is enough.
            return
        else:
            self._edges[path.state, number] += path.segment
            raise Merged
        self._edges[path.state, number] += path.segment
        path.state, path.segment = number, 1

    def totals(self) -> list[Weight]:
        """Expected number of visits to each state: what outcomes that start there are weighted with.

        Solves x = start + (edges transposed) x, with fractions where all probabilities are.
        """
        size = len(self._owners)
        if size == 1:
            return [1]
        start: list[Weight] = [1, *[0] * (size - 1)]
        system: list[list[Weight]] = [[int(row == column) for column in range(size)] for row in range(size)]
        for (source, target), weight in self._edges.items():
            system[target][source] -= weight
        if all(isinstance(weight, Fraction | int) for weight in self._edges.values()):
            return _solve(system, start)
        return list(np.linalg.solve(np.array(system, float), np.array(start, float)).tolist())


class NoStates(StateGraph):
    """Declared states of a path that is known to its end."""

    def enter(self, path: Path, key: Hashable) -> None:
        """Nothing is merged."""


def _solve(system: list[list[Weight]], right: list[Weight]) -> list[Weight]:
    """Gauss's elimination, exact over fractions.

    >>> _solve([[Fraction(2), 1], [1, Fraction(3)]], [5, 10])
    [Fraction(1, 1), Fraction(3, 1)]
    """
    rows = [[Fraction(cell) for cell in [*row, value]] for row, value in zip(system, right, strict=True)]
    for column in range(len(rows)):
        pivot = next(number for number in range(column, len(rows)) if rows[number][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        lead = rows[column][column]
        rows[column] = [cell / lead for cell in rows[column]]
        for number, row in enumerate(rows):
            if number != column and row[column]:
                factor = row[column]
                rows[number] = [cell - factor * top for cell, top in zip(row, rows[column], strict=True)]
    return [row[-1] for row in rows]
