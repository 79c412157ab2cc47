"""What numpy's ufuncs are where an argument is a lazy number, and which functions only move elements."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tokenlaw.stats.enumeration.images import Image
from tokenlaw.stats.enumeration.monotone import logarithm

asarray = np.asarray
"""numpy's own function, also while programs get another one."""
LOG_2, LOG_10 = logarithm(2), logarithm(10)


def divide(one: Any, other: Any) -> Any:
    """By zero as floats do: infinite, with the sign of what is divided."""
    if isinstance(other, Image) or other != 0:
        return one / other
    return np.inf if one.is_positive() else -np.inf


def _log(number: Any) -> Any:
    return number.log() if number.is_positive() else np.nan


def _power(one: Any, other: Any) -> Any:
    return np.float64(0) if not isinstance(one, Image) and one == 0 else one**other


RULES: dict[str, Callable[..., Any]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": divide,
    "power": _power,
    "float_power": _power,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": abs,
    "fabs": abs,
    "sign": lambda number: 1.0 if number.is_positive() else -1.0,
    "floor": lambda number: float(number.floor()),
    "ceil": lambda number: float(number.__ceil__()),
    "trunc": lambda number: float(number.__int__()),
    "rint": lambda number: float(round(number)),
    "exp": lambda number: number.exp(),
    "exp2": lambda number: 2**number,
    "expm1": lambda number: number.exp() - 1,
    "log": _log,
    "log2": lambda number: _log(number) / LOG_2,
    "log10": lambda number: _log(number) / LOG_10,
    "log1p": lambda number: _log(1 + number),
    "sqrt": lambda number: number.power(0.5),
    "square": lambda number: number.power(2),
    "reciprocal": lambda number: number.power(-1),
    "minimum": lambda one, other: one if one <= other else other,
    "maximum": lambda one, other: one if one >= other else other,
    "fmin": lambda one, other: one if one <= other else other,
    "fmax": lambda one, other: one if one >= other else other,
    "clip": lambda number, low, high: low if number < low else high if number > high else number,
    "isnan": lambda number: False,
    "isinf": lambda number: False,
    "isfinite": lambda number: True,
}
"""Ufuncs of which an argument is a lazy number."""

REDUCTIONS = ("add", "multiply", "maximum", "minimum")
"""Ufuncs that numpy may reduce or accumulate with, over Python's own operators."""

STRUCTURAL = frozenset((
    "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to",
    "clip", "column_stack", "compress", "concatenate", "copy", "cumsum", "delete", "diff", "dstack",
    "expand_dims", "extract", "flip", "fliplr", "flipud", "hsplit", "hstack", "insert", "moveaxis", "ndim",
    "prod", "ravel", "repeat", "reshape", "roll", "rollaxis", "rot90", "select", "shape", "size", "split",
    "squeeze", "stack", "sum", "swapaxes", "take", "take_along_axis", "tile", "transpose", "vsplit",
    "vstack", "where",
))  # fmt: skip
"""Functions that move elements, compare them or compute with Python's own operators."""
