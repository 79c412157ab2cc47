"""Paths that are still to be run, the most likely first.

Whatever order paths are run in, all of them give the same law. If time runs out, this one leaves the least
probability unexplored, and so the closest bounds.
"""

import heapq
import math
from dataclasses import dataclass
from itertools import count

from tokenlaw.stats.enumeration.choices import Node, Weight


@dataclass(slots=True)
class _Open:
    """A choice with outcomes that nobody has taken yet, in the order in which they will be."""

    node: Node
    left: list[int]


class Frontier:
    """Choices with untried outcomes, the most likely on top."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, _Open]] = []
        self._tie = count()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, node: Node, taken: int) -> None:
        """A choice that has just been seen for the first time; ``taken`` is already tried."""
        weights = node.weights
        left = [branch for branch in range(len(weights)) if branch != taken and weights[branch] > 0]
        if left:
            left.sort(key=lambda branch: weights[branch])
            self._push(_Open(node, left))

    def take(self) -> "list[tuple[Node, int]]":
        """The most likely path to run next, as the choices to replay."""
        _, _, choice = heapq.heappop(self._heap)
        branch = choice.left.pop()
        if choice.left:
            self._push(choice)
        return choice.node.line(branch)

    def at_most(self) -> float:
        """An upper bound of the probability of what is left, which is quickly found."""
        return -math.fsum(key * len(choice.left) for key, _, choice in self._heap)

    def unexplored(self) -> dict[int, Weight]:
        """Probability of what is left, from each declared state."""
        found: dict[int, Weight] = {}
        for _, _, choice in self._heap:
            node = choice.node
            weight = node.segment * sum(node.weights[branch] for branch in choice.left)
            found[node.state] = found.get(node.state, 0) + weight
        return found

    def _push(self, choice: _Open) -> None:
        mass = choice.node.mass * choice.node.weights[choice.left[-1]]
        heapq.heappush(self._heap, (-float(mass), next(self._tie), choice))
