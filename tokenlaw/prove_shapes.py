"""Outcomes that know the shape of their path: the branches that comparisons took."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from tokenlaw.stats.enumeration.choices import Draw, Node
from tokenlaw.stats.enumeration.deciding import Among
from tokenlaw.stats.enumeration.errors import EnumerationError
from tokenlaw.stats.enumeration.exploration import frozen
from tokenlaw.stats.enumeration.law import Raised
from tokenlaw.stats.enumeration.tape import Source, Tape

Line = list[tuple[Node, int]]
"""The choices of a run, each with what is taken."""

Shape = tuple[int, ...]
"""The branches that a path takes at comparisons; -1 stands for a value that is drawn."""

Sources = Callable[[Tape], Iterable[Source]]
"""Where random numbers come from."""

_DRAWN = -1


@dataclass(frozen=True)
class Shaped:
    """An outcome together with the shape of the path that led to it."""

    outcome: Hashable
    shape: Shape

    def __repr__(self) -> str:
        return repr(self.outcome)


def with_shapes(program: Callable[[], Any], tape: Callable[[], Tape]) -> Callable[[], Any]:
    """The program with `Shaped` outcomes, so that its law keeps an example of every shape.

    ``sys.exit`` becomes an outcome, as exceptions are.

    Parameters
    ----------
    program : called without arguments.
    tape : the one that decides its random numbers.
    """

    def shaped() -> Any:
        try:
            outcome = program()
        except SystemExit as error:
            return Raised(f"SystemExit: {error}")
        try:
            return Shaped(frozen(outcome), shape_of(tape().paths[0].line()))
        except EnumerationError as error:
            # Raised as it is, it would count as the program's own.
            tape().refuse(error)

    return shaped


def shape_of(line: Line) -> Shape:
    """The shape of a path.

    >>> from tokenlaw.stats.enumeration.choices import Path
    >>> path = Path([])
    >>> path.choose([0.25, 0.75], Draw("random.choice"))
    1
    >>> shape_of(path.line())
    (-1,)
    """
    return tuple(
        _DRAWN if isinstance(node.question, Draw | Among) or len(node.weights) > 2 else taken
        for node, taken in line
    )


def outcome_of(found: Any) -> Hashable:
    """The outcome without the shape of its path."""
    return found.outcome if isinstance(found, Shaped) else found


def line_of(example: tuple[Node, int] | None) -> Line:
    """All choices of an example (`tokenlaw.stats.enumeration.law.Law.examples`)."""
    return [] if example is None else example[0].line(example[1])
