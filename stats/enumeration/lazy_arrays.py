"""Arrays of random numbers that aren't decided yet.

A lazy array holds lazy numbers as Python objects, so that numpy's own indexing, shaping and broadcasting
work on it. What computes goes through here: ufuncs element by element, with the meaning they have for
floats (``1 / 0.0`` is infinite), the largest and the smallest element as a race, places among thresholds
as one choice. Functions that aren't known here are refused by name.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenlaw.stats.enumeration.array_functions import FUNCTIONS, call_own
from tokenlaw.stats.enumeration.array_memory import WithoutMemory, write_out
from tokenlaw.stats.enumeration.array_rules import REDUCTIONS, RULES, STRUCTURAL, asarray
from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.images import Image
from tokenlaw.stats.enumeration.lazy_numbers import LazyNumber
from tokenlaw.stats.enumeration.lazy_scalars import LazyElement, as_numpy
from tokenlaw.stats.enumeration.meetings import meetings

Objects = NDArray[np.object_]
COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")


class LazyArray(WithoutMemory):
    """An array with lazy numbers among its elements, in place of one of ``numpy.float64``."""

    @property
    def dtype(self) -> Any:
        """That of the array which it stands for."""
        return np.dtype(np.float64)

    @as_the_real_one
    def __getitem__(self, key: Any) -> Any:
        return as_numpy(super().__getitem__(key))

    def tolist(self) -> Any:
        """Lists of Python's numbers."""
        return _listed(plain(self).tolist())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return apply(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call(func, args, kwargs)

    def astype(self, dtype: Any, *arguments: Any, **options: Any) -> Any:
        """Itself as floating-point numbers, the integer parts as integers."""
        if np.issubdtype(dtype, np.integer):
            return plain(self).astype(dtype)
        if not np.issubdtype(dtype, np.floating) or np.dtype(dtype) == np.float16:
            refuse(self, f"a cast to {np.dtype(dtype)}", "rounds random numbers, or reads them")
        return self.copy()

    def argmax(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        """Place of the largest element, decided by a race."""
        return np.argmax(self, axis, out, **options)

    def argmin(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        """Place of the smallest element, decided by a race."""
        return np.argmin(self, axis, out, **options)

    def max(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        """The largest element, decided by a race."""
        return np.max(self, axis, out, **options)

    def min(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        """The smallest element, decided by a race."""
        return np.min(self, axis, out, **options)

    def argsort(self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
        """The ascending order of the elements, decided by a race."""
        return np.argsort(self, axis, kind, order, stable=stable)

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        """Places in an array of random numbers."""
        return np.searchsorted(self, v, side, sorter)

    def round(self, decimals: Any = 0, out: Any = None) -> Any:
        """The nearest integers."""
        return np.rint(self) if decimals == 0 else refuse(self, "round() to decimals")


def lazy_array(numbers: Sequence[LazyNumber | float], shape: tuple[int, ...]) -> LazyArray:
    """Lazy numbers, and known ones among them, as an array of a shape."""
    found = np.empty(len(numbers), dtype=object)
    for place, number in enumerate(numbers):
        found[place] = number if isinstance(number, float) else LazyElement(number.uniform, number.steps)
    return found.reshape(shape).view(LazyArray)


def plain(value: Any) -> Any:
    """Without the class, also inside of lists; a lazy number as an array without dimensions."""
    if isinstance(value, Image):
        found = np.empty((), dtype=object)
        found[()] = value
        return found
    if isinstance(value, LazyArray):
        return value.view(np.ndarray)
    if isinstance(value, list | tuple):
        return type(value)(plain(part) for part in value)
    return value


def wrap(found: Any) -> Any:
    """An array of objects as a lazy array, or as an ordinary one if nothing in it is lazy any more."""
    if isinstance(found, list | tuple):
        return type(found)(wrap(part) for part in found)
    if not _holds_objects(found):
        return found
    made = lazily(found)
    return made if made is not found else np.array(found.tolist()).reshape(found.shape)


def lazily(found: Any) -> Any:
    """An array of objects as a lazy array if one of them is lazy, anything else as it is."""
    if not _holds_objects(found):
        return found
    return found.view(LazyArray) if any(isinstance(value, Image) for value in found.flat) else found


def _holds_objects(value: Any) -> bool:
    return isinstance(value, np.ndarray) and (isinstance(value, LazyArray) or value.dtype == object)


def _listed(values: Any) -> Any:
    if isinstance(values, list):
        return [_listed(value) for value in values]
    return values.item() if isinstance(values, np.generic | LazyElement) else values


def images(values: Any) -> Iterator[Image]:
    """The lazy numbers in something."""
    if isinstance(values, Image):
        yield values
    elif _holds_objects(values):
        yield from (value for value in values.flat if isinstance(value, Image))
    elif isinstance(values, list | tuple):
        for value in values:
            yield from images(value)


def refuse(values: Any, operation: str, why: str = "has no exact law here") -> Any:
    """Stop the run: an operation on these values is not known."""
    for image in images(values):
        image.refuse(operation, why)
    raise TypeError(f"{operation} {why}")


@as_the_real_one
def apply(function: np.ufunc, method: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """A ufunc of lazy numbers or arrays."""
    out = options.get("out", (None,))[0]
    given = {key: value for key, value in options.items() if key != "out"}
    name = function.__name__
    if method == "__call__" and name in RULES and not given:
        found = _elementwise(function, inputs)
    elif method in ("reduce", "accumulate") and name in REDUCTIONS:
        found = wrap(getattr(function, method)(*plain(tuple(inputs)), **given))
    else:
        return refuse(list(inputs), f"numpy.{name}" + ("" if method == "__call__" else f".{method}"))
    if out is None:
        return found
    return write_out(out, found, partial(refuse, list(inputs), f"numpy.{name}"))


@as_the_real_one
def _elementwise(function: np.ufunc, inputs: Sequence[Any]) -> Any:
    name = function.__name__
    rule = RULES[name]

    def one(*values: Any) -> Any:
        if not any(isinstance(value, Image) for value in values):
            return function(*values)
        # A number of numpy's would come back here with its ufunc.
        found = rule(*(value.item() if isinstance(value, np.generic) else value for value in values))
        return np.float64(found) if type(found) is int else as_numpy(found)

    objects = [asarray(plain(value), dtype=object) for value in inputs]
    if name in COMPARISONS:
        _decide_together(*objects)
    found = np.frompyfunc(one, len(objects), 1)(*objects)
    if not isinstance(found, np.ndarray):
        return found
    return found.astype(bool) if name in COMPARISONS or name.startswith("is") else wrap(found)


def _decide_together(first: Objects, second: Objects) -> None:
    """A number that is compared with several thresholds finds its place among them by one choice."""
    if max(first.size, second.size) == 1:
        return
    thresholds: dict[int, tuple[Image, set[Weight]]] = {}
    for one, other in np.broadcast(first, second):
        pairs = [(one, other)] if isinstance(one, Image) else [(other, one)]
        for number, threshold in pairs:
            if isinstance(number, Image) and isinstance(threshold, int | float) and not isnan(threshold):
                thresholds.setdefault(id(number), (number, set()))[1].add(threshold)
    for number, edges in thresholds.values():
        if len(edges) > 1:
            number.position(sorted(edges))


@as_the_real_one
def call(function: Any, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """A function of numpy with lazy numbers or arrays among its arguments."""
    name = function.__name__
    refusal = partial(refuse, [*inputs, *options.values()], f"numpy.{name}")
    if name in FUNCTIONS and len(inputs) == 2 and isinstance(inputs[1], Image):  # a number among thresholds
        return call_own(name, inputs, options, refusal)
    given = {key: plain(value) for key, value in options.items()}
    if name in FUNCTIONS:
        return wrap(call_own(name, plain(tuple(inputs)), given, refusal))
    if name in STRUCTURAL:
        return wrap(function(*plain(tuple(inputs)), **given))
    return refusal()


meetings[np.ufunc], meetings[np.ndarray] = apply, call
