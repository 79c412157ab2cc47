"""One run of a program as a list of choices, of which the first are given.

A program that draws random numbers is a tree: every draw is a node, its outcomes are branches with exact
probabilities. A run is a path through it. `Path` replays the branches that it is given, and takes the most
likely one at every node behind them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from tokenlaw.stats.enumeration.errors import NotRepeatableError, TooLong

Weight = float | Fraction
"""A probability; rational where the program's own numbers are."""

CLOSE = 1e-9
"""Weights of a replayed choice may differ by this much: kernels may add in another order."""

MOST_CHOICES = 10_000
"""Choices of a single path, at most: a program that never ends is not followed for ever."""


class Question(Protocol):
    """What a choice decides, for people."""

    def words(self, taken: int, weight: Weight) -> str:
        """The answer in words, such as "u < 0.31" or "torch.multinomial: 2 of 0 .. 3"."""
        ...


@dataclass(frozen=True, slots=True)
class Draw:
    """One of several values, drawn directly.

    Attributes
    ----------
    source : the function that was called, such as ``numpy.random.choice``.
    """

    source: str

    def words(self, taken: object, weight: Weight) -> str:
        """
        >>> Draw("numpy.random.choice").words(2, 0.25)
        'numpy.random.choice: 2 (probability 0.25)'
        """
        return f"{self.source}: {taken} (probability {float(weight):.4g})"


@dataclass(slots=True, eq=False)
class Node:
    """A choice of the program, reached by one sequence of earlier choices.

    Attributes
    ----------
    parent, branch : the choice before it and what was taken there; None and 0 at the root.
    weights : probabilities of the outcomes, given everything before; they sum to one.
    question : what is decided.
    mass : probability of reaching this choice.
    state, segment : the last declared state before it, and the probability of getting here from there.
    place : file, line and text of the program, where they are taken down.
    """

    parent: "Node | None"
    branch: int
    weights: Sequence[Weight]
    question: Question
    mass: Weight
    state: int
    segment: Weight
    place: str = ""

    def line(self, taken: int) -> "list[tuple[Node, int]]":
        """The choices from the root to this one, each with what is taken."""
        found, node = [(self, taken)], self
        while node.parent is not None:
            taken, node = node.branch, node.parent
            found.append((node, taken))
        return found[::-1]


@dataclass(slots=True)
class Path:
    """One run: replays given choices, then takes the most likely branch of every new one.

    Attributes
    ----------
    given : choices to be replayed.
    position : how many choices were made.
    fresh : choices that no earlier run has seen.
    mass : probability of what was taken so far; while choices are replayed it isn't kept.
    state, segment : the last declared state, and the probability since, which isn't kept then either.
    left_out : from each declared state on, how much of the law the guards that are left out change, at most.
    """

    given: "list[tuple[Node, int]]"
    position: int = 0
    fresh: list[Node] = field(default_factory=list)
    mass: Weight = 1
    state: int = 0
    segment: Weight = 1
    node: Node | None = None
    branch: int = 0
    left_out: dict[int, float] = field(default_factory=dict)

    @property
    def replays(self) -> bool:
        """Whether the next choice is given."""
        return self.position < len(self.given)

    def choose(self, weights: Sequence[Weight], question: Question) -> int:
        """Index of the outcome that is taken; weights are above or equal to zero and sum to one."""
        if self.position < len(self.given):
            node, taken = self.given[self.position]
            if node.weights != weights and not _close(node.weights, weights):
                raise NotRepeatableError(self._difference(node, weights, question))
        else:
            if self.position >= MOST_CHOICES:
                raise TooLong
            taken = max(range(len(weights)), key=lambda branch: weights[branch])
            node = Node(self.node, self.branch, weights, question, self.mass, self.state, self.segment)
            self.fresh.append(node)
        self.position += 1
        self.node, self.branch = node, taken
        if self.position >= len(self.given):
            weight = node.weights[taken]
            self.mass, self.segment = node.mass * weight, node.segment * weight
        return taken

    def leave_out(self, effect: float) -> None:
        """Count something that isn't followed, by the total variation that it causes here at most."""
        self.left_out[self.state] = self.left_out.get(self.state, 0.0) + effect

    def line(self) -> "list[tuple[Node, int]]":
        """All choices of the run."""
        return [] if self.node is None else self.node.line(self.branch)

    def missing(self) -> str:
        """What a replay has not come to."""
        node, taken = self.given[self.position]
        return (
            f"the program made {self.position} random choices where it made more before with the same "
            f"outcomes; missing first: {node.question.words(taken, node.weights[taken])}"
        )

    def _difference(self, node: Node, weights: Sequence[Weight], question: Question) -> str:
        taken = self.given[self.position][1]
        before = node.question.words(taken, node.weights[taken])
        if len(weights) != len(node.weights):
            now = f"a choice among {len(weights)} instead of {len(node.weights)} outcomes"
        else:
            now = f"{question.words(taken, weights[taken])}"
        return (
            f"random choice {self.position + 1} differs though all before were the same. "
            f"Earlier run: {before}; now: {now}"
        )


def _close(first: Sequence[Weight], second: Sequence[Weight]) -> bool:
    pairs: Iterator[tuple[Weight, Weight]] = zip(first, second, strict=False)
    return len(first) == len(second) and all(abs(float(one - other)) <= CLOSE for one, other in pairs)
