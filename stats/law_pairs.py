"""A law that was found beside the exact one, and the proof that compares some of them."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tokenlaw.stats.enumeration.errors import EnumerationError
from tokenlaw.stats.enumeration.law import Law, Raised, sum_of
from tokenlaw.stats.enumeration.narrative import Line

Cell = TypeVar("Cell", bound=Hashable)
"""What the laws are about."""


@dataclass(frozen=True)
class LawPair(Generic[Cell]):
    """A law that was found, and the exact one.

    Attributes
    ----------
    found : probabilities that were found, as far as paths were run.
    exact : those of the spec.
    least, most : between these lies the total variation.
    """

    found: Mapping[Cell, float]
    exact: Mapping[Cell, float]
    least: float
    most: float

    def excess(self, cell: Cell) -> float:
        """How much more probable than it should be."""
        return self.found.get(cell, 0.0) - self.exact.get(cell, 0.0)

    def farthest(self, number: int) -> list[Cell]:
        """The cells whose probabilities differ most.

        >>> LawPair({0: 0.5, 1: 0.5}, {0: 0.4, 2: 0.6}, 0.6, 0.6).farthest(2)
        [2, 1]
        """
        cells = {**self.found, **self.exact}
        return sorted(cells, key=lambda cell: abs(self.excess(cell)), reverse=True)[:number]

    def telling(self) -> set[Cell]:
        """What happens most too often: what can't happen, where there is enough of that.

        >>> sorted(LawPair({0: 0.6, 1: 0.3, 2: 0.1}, {0: 0.2, 1: 0.8}, 0.5, 0.5).telling())
        [2]
        """
        excess = {cell: self.excess(cell) for cell in self.found if self.excess(cell) > 0}
        # What can't happen tells more than what happens too often.
        impossible = {cell: weight for cell, weight in excess.items() if cell not in self.exact}
        telling = impossible if sum(impossible.values()) > self.least / 10 else excess
        largest = max(telling.values(), default=0.0)
        return {cell for cell, weight in telling.items() if weight >= largest / 2}


def tv_between(
    found: Mapping[Any, float], exact: Mapping[Any, float], left: float, neglected: float = 0.0
) -> tuple[float, float]:
    """Between which values the total variation lies.

    Parameters
    ----------
    left : probability of the first law that isn't known.
    neglected : total variation by which it may be off besides.

    >>> tv_between({0: 0.5, 1: 0.25}, {0: 0.25, 1: 0.75}, left=0.25)
    (0.25, 0.5)
    >>> tv_between({0: 0.5, 1: 0.5}, {0: 0.25, 1: 0.75}, left=0.0, neglected=0.125)
    (0.125, 0.375)
    """
    above = sum_of(max(weight - exact.get(cell, 0.0), 0.0) for cell, weight in found.items())
    # What is missing shows as well as what is too much, where nothing is left unexplored.
    below = sum_of(max(weight - found.get(cell, 0.0), 0.0) for cell, weight in exact.items()) - left
    least = float(max(above, below))
    return max(least - neglected, 0.0), min(least + left + neglected, 1.0)


Pair = TypeVar("Pair", bound=LawPair[Any])


@dataclass(frozen=True, kw_only=True)
class Proof(Generic[Pair]):
    """What all paths of a case say about its laws.

    Attributes
    ----------
    comparisons : every law that is asked for, with bounds; empty where the case can't be enumerated.
    law : of the outcomes; None likewise.
    reason : why it can't be enumerated.
    """

    comparisons: tuple[Pair, ...] = ()
    law: Law | None = None
    reason: str = ""

    @property
    def paths(self) -> int:
        """How many were run."""
        return 0 if self.law is None else self.law.paths

    @property
    def worst(self) -> Pair | None:
        """The law that is farthest off for certain, and of equals the one that may be farthest off."""
        return max(self.comparisons, key=lambda one: (one.least, one.most), default=None)

    @property
    def least(self) -> float:
        """How far that is; 0 if nothing is known."""
        return self.worst.least if self.worst else 0.0

    @property
    def most(self) -> float:
        """How far any law may be off; 1 if nothing is known."""
        return max((one.most for one in self.comparisons), default=1.0)

    def refuted(self, tolerance: float) -> bool:
        """Whether some law is farther off than it may be."""
        return self.least > tolerance

    def proved(self, tolerance: float) -> bool:
        """Whether every law is close enough, whatever wasn't run."""
        return bool(self.comparisons) and self.most <= tolerance

    def decided(self, tolerance: float) -> bool:
        """Whether it is either."""
        return self.proved(tolerance) or self.refuted(tolerance)

    def found_wrong(self) -> tuple[Pair, Law]:
        """The law that is farthest off, and that of the outcomes.

        Raises
        ------
        ValueError
            The case couldn't be enumerated.
        """
        if self.worst is None or self.law is None:
            raise ValueError(f"nothing was enumerated: {self.reason}")
        return self.worst, self.law


def require_answers(law: Law) -> None:
    """Refuse a law with exceptions among its outcomes: they have no place in it; samples will show them.

    Raises
    ------
    EnumerationError
        It has one.
    """
    raised = next((outcome for outcome in law.probabilities if isinstance(outcome, Raised)), None)
    if raised is not None:
        raise EnumerationError(f"with its random numbers decided, it raised {raised.message}")


def shortest_line(law: Law, shows: Callable[[Any], bool]) -> tuple[Line, Any] | None:
    """The path of the fewest choices to an outcome that shows something; None if none does."""
    examples: Iterable[tuple[Any, Any]] = law.examples.items()
    lines = [
        (example[0].line(example[1]), outcome)
        for outcome, example in examples
        if example is not None and shows(outcome)
    ]
    return min(lines, key=lambda pair: len(pair[0]), default=None)
