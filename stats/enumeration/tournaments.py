"""Exponential clocks that are compared two by two, as ``max(..., key=...)`` and ``sorted`` do.

What is known of them is who rang before whom: trees, in which every clock rings before all that are below
it. The first of a tree rings after an exponential time whose rate is the sum of all rates in the tree,
whatever the tree looks like, and the trees below it are as new when it has rung, since exponential times
have no memory. So two trees are compared by their sums, and the loser's becomes a branch of the winner;
for two clocks inside of one tree this is repeated from their last common ancestor on, until one of them
is above the other.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.deciding import decide
from tokenlaw.stats.enumeration.tape import Tape

CLOSE = 1e-12
"""Rates of a clock may differ by this much between two comparisons, relatively."""


@dataclass(slots=True, eq=False)
class Runner:
    """A clock and those that are known to ring after it.

    Attributes
    ----------
    rate : its own, in units of the tree that it is in.
    above : who is known to ring before it, last.
    below : who are known to ring after it, first; with trees of their own.
    """

    rate: Weight = 0
    above: "Runner | None" = None
    below: "list[Runner]" = field(default_factory=list)

    @property
    def total(self) -> Weight:
        """Sum of all rates of the tree that begins here."""
        return self.rate + sum(runner.total for runner in self.below)

    def line(self) -> "list[Runner]":
        """From the first of its tree to itself."""
        runner: Runner | None = self
        found: list[Runner] = []
        while runner is not None:
            found.append(runner)
            runner = runner.above
        return found[::-1]

    def scale(self, factor: Weight) -> None:
        """Change the unit of the tree that begins here."""
        self.rate *= factor
        for runner in self.below:
            runner.scale(factor)

    def put_below(self, other: "Runner") -> None:
        """It is known to ring after another one that has the same one above it."""
        if self.above is not None:
            self.above.below.remove(self)
        self.above = other
        other.below.append(self)


def rings_before(
    tape: Tape, first: Runner, second: Runner, rates: tuple[Weight, Weight], row: int = 0
) -> bool | None:
    """Whether one clock rings before another one; None if they were compared with other rates before.

    Parameters
    ----------
    tape, row : decide.
    first, second : the clocks; new ones have the rate 0.
    rates : of the clocks in this comparison, both above zero; only their ratio matters.

    Examples
    --------
    The first choice of a path is the most likely one.

    >>> from tokenlaw.stats.enumeration.choices import Path
    >>> tape, clocks = Tape(), [Runner(), Runner(), Runner()]
    >>> tape.start([Path([])])
    >>> rings_before(tape, clocks[0], clocks[1], (1, 2)), rings_before(tape, clocks[1], clocks[2], (2, 4))
    (False, False)
    >>> rings_before(tape, clocks[2], clocks[0], (4, 1)), [node.weights for node, _ in tape.paths[0].line()]
    (True, [[Fraction(1, 3), Fraction(2, 3)], [Fraction(3, 7), Fraction(4, 7)]])
    """
    if not _agree(first, second, rates):
        return None
    while True:
        mine, others = first.line(), second.line()
        common = sum(one is other for one, other in zip(mine, others, strict=False))
        if common == len(mine) or common == len(others):
            return common == len(mine)
        one, other = mine[common], others[common]
        if decide(tape, [one.total, other.total], "comparing two random numbers", row) == 0:
            other.put_below(one)
        else:
            one.put_below(other)


def _agree(first: Runner, second: Runner, rates: tuple[Weight, Weight]) -> bool:
    """Bring both to the same unit, if they have one; whether the rates are those they have."""
    own: list[Weight] = [Fraction(rate) if isinstance(rate, int) else rate for rate in rates]
    for runner, rate in zip((first, second), own, strict=True):
        runner.rate = runner.rate or rate
    factor = (first.rate / own[0]) / (second.rate / own[1])
    one, other = first.line()[0], second.line()[0]
    if one is other:
        return -CLOSE <= factor - 1 <= CLOSE
    other.scale(factor)
    return True
