"""Lazy numbers in place of those of numpy and torch, whose comparisons give no ``bool`` but one of theirs.

``~(u < p)`` is true for every ``bool``: of a program that has a number of numpy's there, nothing but a number
of numpy's has the right law. As in numpy and torch, a result is theirs as soon as one operand is.
"""

from typing import Any

import numpy as np
import torch

from tokenlaw.stats.enumeration.array_rules import divide
from tokenlaw.stats.enumeration.images import Image
from tokenlaw.stats.enumeration.lazy_numbers import LazyNumber
from tokenlaw.stats.enumeration.meetings import meetings


class _OfLibrary(LazyNumber):
    """A lazy number in place of one of numpy's or torch's."""

    __slots__ = ()

    def __lt__(self, other: Any) -> Any:
        # That of Python's numbers gives a ``bool`` for some, which is quicker.
        return self._order("less", other, below=True)

    def item(self) -> LazyNumber:
        """Itself as Python's number."""
        return LazyNumber(self.uniform, self.steps)


class LazyElement(_OfLibrary):
    """A lazy number in place of a ``numpy.float64``."""

    __slots__ = ()
    stands_for = np.float64
    dtype, shape, ndim, size = np.dtype(np.float64), (), 0, 1

    def _with(self, other: Any, found: Any) -> Any:
        return as_tensor(found) if isinstance(other, torch.Tensor | LazyScalar) else as_numpy(found)

    def __truediv__(self, other: Any) -> Any:
        """numpy divides by zero without an error."""
        if isinstance(other, int | float) and not other:
            return as_numpy(divide(self, other))
        return super().__truediv__(other)

    def astype(self, dtype: Any) -> Any:
        """Itself as a floating-point number, its integer part as an integer."""
        if np.issubdtype(dtype, np.integer):
            return np.dtype(dtype).type(int(self))
        is_precise = np.issubdtype(dtype, np.floating) and np.dtype(dtype) != np.float16
        return self if is_precise else self.refuse(f"a cast to {np.dtype(dtype)}")


class LazyScalar(_OfLibrary):
    """A lazy number in place of a tensor without dimensions: what a number of Python's and a tensor make."""

    __slots__ = ()
    stands_for = torch.Tensor

    def _with(self, other: Any, found: Any) -> Any:
        return as_tensor(found)


def promoted(found: Any, other: Any) -> Any:
    """The result of an operation between a lazy number of Python's and another number."""
    if isinstance(other, torch.Tensor | LazyScalar):
        return as_tensor(found)
    return as_numpy(found) if isinstance(other, np.generic | np.ndarray | LazyElement) else found


def as_numpy(found: Any) -> Any:
    """A number, or an answer, as one of numpy's; anything else as it is.

    >>> type(as_numpy(True)), type(as_numpy(0.5)), as_numpy(3)
    (<class 'numpy.bool'>, <class 'numpy.float64'>, 3)
    """
    if isinstance(found, Image):
        return LazyElement(found.uniform, found.steps)
    kind = {bool: np.bool_, float: np.float64}.get(type(found))
    return found if kind is None else kind(found)


def as_tensor(found: Any) -> Any:
    """A number, or an answer, as a tensor without dimensions."""
    return LazyScalar(found.uniform, found.steps) if isinstance(found, Image) else torch.tensor(found)


meetings[np.generic] = promoted
