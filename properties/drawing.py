"""Integers and choices that hypothesis draws evenly, and equally whatever else is loaded; or dice do.

hypothesis gives small integers and those that stand in the source of loaded modules an extra share, so a
constant in the code of a caller would change which traces a seed gives. Here integers are drawn from a range
far from every constant and moved afterwards.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

_FAR = 38_654_705_663
Value = TypeVar("Value")

Pick = Callable[[int, int], int]
"""``pick(low, high)``: an integer from low to high, both included; of hypothesis, or of dice."""


def evenly(low: int, high: int) -> st.SearchStrategy[int]:
    """Integers ``low`` .. ``high``, both included; fewer than a thousand million of them."""
    return st.integers(_FAR + 1, _FAR + 1 + high - low).map(lambda number: number - _FAR - 1 + low)


def any_of(values: Sequence[Value]) -> st.SearchStrategy[Value]:
    """One of the values; what stands twice is drawn twice as often."""
    return evenly(0, len(values) - 1).map(values.__getitem__)


def picking(draw: st.DrawFn) -> Pick:
    """Integers that hypothesis draws."""
    return lambda low, high: draw(evenly(low, high))


def one_of(pick: Pick, values: Sequence[Value]) -> Value:
    """One of the values."""
    return values[pick(0, len(values) - 1)]


def coin(pick: Pick) -> bool:
    """One of two."""
    return pick(0, 1) == 1
