"""Functions of numpy that look for the largest element of a lazy array, the order, places among edges."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cmp_to_key, partial
from inspect import Signature, signature
from math import isnan
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tokenlaw.stats.enumeration.array_memory import Refusal, write_out
from tokenlaw.stats.enumeration.array_rules import asarray
from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.images import Image
from tokenlaw.stats.enumeration.racing import Race, race

Objects = NDArray[np.object_]
_PLACES: Callable[..., Any] = np.searchsorted
"""Without its types, which know nothing of objects."""


def first_of(values: Sequence[Any], *, largest: bool, keep: bool = False) -> int:
    """Index of the largest (or smallest) of several numbers, some of them lazy.

    A race decides; if the value itself is kept, uniforms are compared one by one instead, since what has
    raced can't be compared with thresholds.
    """
    lazy = [index for index, value in enumerate(values) if isinstance(value, Image)]
    for index, value in enumerate(values):
        if not isinstance(value, Image) and isnan(value):
            return index
    one_by_one = keep and all(values[index].is_affine for index in lazy)
    found = None if one_by_one else _race(values, lazy, largest)
    if found is not None:
        return lazy[found.order(1, "argmax" if largest else "argmin")[0]]
    best = 0
    for index in range(1, len(values)):
        if (values[index] > values[best]) if largest else (values[index] < values[best]):
            best = index
    return best


def order_of(values: Sequence[Any]) -> list[int]:
    """Indices in ascending order of the values, some of them lazy."""
    lazy: list[int] = [index for index, value in enumerate(values) if isinstance(value, Image)]
    last = [index for index, value in enumerate(values) if not isinstance(value, Image) and isnan(value)]
    if last:
        kept = [index for index in range(len(values)) if index not in last]
        return [kept[place] for place in order_of([values[index] for index in kept])] + last
    for largest in (False, True):
        found = _race(values, lazy, largest)
        if found is not None:
            first = [lazy[number] for number in found.order(len(lazy), "argsort")]
            rest = [index for index in range(len(values)) if index not in lazy]
            rest.sort(key=lambda index: float(values[index]))
            return rest + first[::-1] if largest else first + rest

    def compare(one: int, other: int) -> int:
        return -1 if values[one] < values[other] else int(values[one] > values[other])

    return sorted(range(len(values)), key=cmp_to_key(compare))


def _race(values: Sequence[Any], lazy: Sequence[int], largest: bool) -> Race | None:
    """A race among the lazy numbers, if the others are all behind them."""
    if len(lazy) < 2:
        return None
    numbers = [values[index] for index in lazy]
    others = [value for value in values if not isinstance(value, Image)]
    if others:
        lows, highs = zip(*(number.span() for number in numbers), strict=True)
        if max(others) > min(lows) if largest else min(others) < max(highs):
            return None
    found = race([(number.uniform, number.steps) for number in numbers], largest=largest)
    return found if found is not None and found.is_free else None


def _along(function: Callable[[Sequence[Any]], Any], a: Any, axis: int | None, keepdims: bool = False) -> Any:
    """Apply a function of a vector along an axis, to all elements if there is none."""
    array = asarray(a, dtype=object)
    if axis is None:
        found = function(list(array.flat))
        return np.full((1,) * array.ndim, found) if keepdims else found
    rows = np.moveaxis(array, axis, -1)
    results = [function(list(rows[place])) for place in np.ndindex(rows.shape[:-1])]
    if rows.ndim == 1:
        return asarray(results[0]) if keepdims else results[0]
    found = np.empty(len(results), dtype=object)
    found[:] = results
    shaped = found.reshape(rows.shape[:-1])
    return np.expand_dims(shaped, axis) if keepdims else shaped


def _index_of(largest: bool, a: Any, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Any:
    found = _along(lambda values: first_of(values, largest=largest), a, axis, keepdims)
    return asarray(found, dtype=np.intp) if isinstance(found, np.ndarray) else np.intp(found)


def _extreme(
    largest: bool,
    a: Any,
    axis: Any = None,
    out: None = None,
    *,
    keepdims: bool = False,
    initial: float | None = None,
) -> Any:
    more = [] if initial is None else [initial]

    def one(values: Sequence[Any]) -> Any:
        every = [*values, *more]
        return every[first_of(every, largest=largest, keep=True)]

    return _along(one, a, axis, keepdims)


def _argsort(
    a: Any, axis: Any = -1, kind: object = None, order: None = None, *, stable: object = None
) -> Any:
    array = asarray(a, dtype=object)
    if order is not None:
        _refuse(array, "sorting by fields")
    if axis is None:
        array, axis = array.reshape(-1), -1
    rows = np.moveaxis(array, axis, -1)
    found = np.empty(rows.shape, dtype=np.intp)
    for place in np.ndindex(rows.shape[:-1]):
        found[place] = order_of(list(rows[place]))
    return np.moveaxis(found, -1, axis)


def _sort(a: Any, axis: Any = -1, kind: object = None, order: None = None, *, stable: object = None) -> Any:
    array = asarray(a, dtype=object)
    if axis is None:
        array, axis = array.reshape(-1), -1
    return np.take_along_axis(array, _argsort(array, axis, order=order), axis)


def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    edges = asarray(a) if sorter is None else asarray(a)[sorter]
    if edges.dtype.kind == "f" and np.isnan(edges).any():
        _refuse(_objects(v), "searching among edges of which one is nan")
    listed = edges.tolist()
    if edges.dtype == object or sorted(listed) != listed:
        return _PLACES(edges.astype(object), _objects(v), side)
    if isinstance(v, Image):
        return np.intp(v.position(listed))

    def place(value: Any) -> int:
        is_lazy = isinstance(value, Image)
        return value.position(listed) if is_lazy else int(_PLACES(edges, value, side))

    return asarray(np.frompyfunc(place, 1, 1)(asarray(v, dtype=object)), dtype=np.intp)


def _objects(v: Any) -> Objects:
    """Numbers as objects; one lazy number as an array without dimensions."""
    found = np.empty((), dtype=object)
    if not isinstance(v, Image):
        return asarray(v, dtype=object)
    found[()] = v
    return found


def _refuse(array: Any, operation: str) -> NoReturn:
    next(value for value in array.flat if isinstance(value, Image)).refuse(operation)


@as_the_real_one
def _digitize(x: Any, bins: Any, right: bool = False) -> Any:
    edges = asarray(bins)
    if edges.dtype != object:
        np.digitize(0.0, edges, right)  # it raises, if they aren't in order
    if (edges[1:] < edges[:-1]).any():
        return len(edges) - _searchsorted(edges[::-1], x, "left" if not right else "right")
    return _searchsorted(edges, x, "left" if right else "right")


def _round(a: Any, decimals: int = 0, out: None = None) -> Any:
    if decimals:
        _refuse(asarray(a, dtype=object), "round to decimals")
    return np.frompyfunc(lambda value: float(round(value)), 1, 1)(a)


def _like(
    make: Callable[..., Any], a: Any, *fill: Any, dtype: Any = float, shape: Any = None, **options: Any
) -> Any:
    return make(np.shape(a) if shape is None else shape, *fill, dtype=dtype or float)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "argmax": partial(_index_of, True),
    "argmin": partial(_index_of, False),
    "max": partial(_extreme, True),
    "amax": partial(_extreme, True),
    "min": partial(_extreme, False),
    "amin": partial(_extreme, False),
    "argsort": _argsort,
    "sort": _sort,
    "searchsorted": _searchsorted,
    "digitize": _digitize,
    "round": _round,
    "around": _round,
    "zeros_like": partial(_like, np.zeros),
    "ones_like": partial(_like, np.ones),
    "empty_like": partial(_like, np.zeros),
    "full_like": partial(_like, np.full),
}
"""Functions with a meaning of their own for lazy numbers; their arguments are plain arrays of objects."""


@cache
def signature_of(name: str) -> Signature:
    """Arguments that one of `FUNCTIONS` knows."""
    return signature(FUNCTIONS[name])


def call_own(name: str, inputs: Sequence[Any], options: Mapping[str, Any], refuse: Refusal) -> Any:
    """Call one of `FUNCTIONS`, also with ``out``, into which it writes then.

    Raises
    ------
    UndecidableError
        It doesn't know an argument, which numpy's own function may know.
    """
    try:
        given = signature_of(name).bind(*inputs, **options)
    except TypeError as error:
        refuse(f"isn't known here with all of these arguments ({error})")
    out = given.arguments.pop("out", None)
    found = FUNCTIONS[name](*given.args, **given.kwargs)
    return found if out is None else write_out(out, found, refuse)
