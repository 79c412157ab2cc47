"""Where lazy numbers meet numpy and torch: ufuncs, arrays, tensors, and numbers of theirs."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from tokenlaw.stats.enumeration.images import Image

meetings: dict[type, Callable[..., Any]] = {}
"""What is done where a number meets numpy's ufuncs, arrays or tensors: their modules fill it in. That of
``numpy.generic`` makes a result one of numpy's or torch's if the other operand is."""

PYTHON = frozenset({bool, float, Fraction, int})
"""Types of other operands with which results are Python's."""


class Meeting(Image):
    """A function of a uniform that numpy and torch know what to do with."""

    __slots__ = ()

    def _with(self, other: Any, found: Any) -> Any:
        """The result of an operation with another number: as theirs, if it is numpy's or torch's."""
        return found if type(other) in PYTHON else meetings[np.generic](found, other)

    def _array(self, name: str, other: Any, *, swapped: bool = False) -> Any:
        """An operation with an array, elementwise; tensors know themselves what to do."""
        if not isinstance(other, np.ndarray):
            return NotImplemented
        pair = (other, self) if swapped else (self, other)
        return getattr(np, name)(*pair)

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return meetings[np.ufunc](function, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        return meetings[np.ndarray](function, inputs, options)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return meetings[torch.Tensor](function, args, kwargs or {})
