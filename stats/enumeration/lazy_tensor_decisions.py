"""Operators that decide something about lazy tensors: what they give is an ordinary tensor."""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tokenlaw.stats.enumeration.forms import NEGLIGIBLE, Floats, Forms, NoFormError
from tokenlaw.stats.enumeration.images import MOST_INTEGERS
from tokenlaw.stats.enumeration.lazy_tensor_arithmetic import (
    a_tensor,
    calculated,
    copied,
    forms_of,
    lazily,
    register,
    result_type,
    to_tensor,
    write,
)
from tokenlaw.stats.enumeration.lazy_tensor_values import numbers_of
from tokenlaw.stats.enumeration.lazy_tensors import LazyTensor, functions, name_of, refuse
from tokenlaw.stats.enumeration.noise_book import NoiseBook
from tokenlaw.stats.enumeration.torch_operands import COMPARISONS, TURNED

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]
Bools = NDArray[np.bool_]


def compare(book: NoiseBook, name: str, first: Forms, second: Forms) -> Bools:
    """Decide comparisons; a random number equals another one with probability zero."""
    shape = np.broadcast_shapes(first.kind.shape, second.kind.shape)
    first = first.broadcast(shape).flat()
    if first.random.all() and not second.random.any():
        # The most frequent comparison, in fewer steps.
        return _against(book, name, first, np.broadcast_to(second.shift, shape).ravel()).reshape(shape)
    second = second.broadcast(shape).flat()
    both = first.random & second.random
    swapped = second.random & ~both
    random, bounds = second.where(swapped, first), np.where(swapped, first.shift, second.shift)
    found = COMPARISONS[name](first.shift, second.shift)
    where = random.random & ~both
    if both.any():
        pairs = zip(numbers_of(book, first[both]), numbers_of(book, second[both]), strict=True)
        found[both] = [getattr(operator, name)(one, other) for one, other in pairs]
    for turned, mask in ((False, where & ~swapped), (True, where & swapped)):
        if mask.any():
            found[mask] = _against(book, TURNED[name] if turned else name, random[mask], bounds[mask])
    return found.reshape(shape)


def _against(book: NoiseBook, name: str, forms: Forms, bounds: Floats) -> Bools:
    """Random numbers compared with known ones; vectors."""
    if name in ("eq", "ne"):
        return np.full(bounds.shape, name == "ne")
    below = book.below(forms, bounds)
    return below if name in ("lt", "le") else ~below & ~np.isnan(bounds)


def _compare(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    name = function._schema.name.removeprefix("aten::")
    first, second = args[0], args[1]
    found = calculated(
        book, function, lambda: compare(book, name, forms_of(book, first), forms_of(book, second))
    )
    return to_tensor(found, a_tensor(args), torch.bool)


def truncated(book: NoiseBook, function: Any, lazy: Any) -> torch.Tensor:
    """Numbers rounded towards zero, decided; float64."""
    forms = forms_of(book, lazy)
    floors = floor(book, function, forms)
    # What is below zero is rounded up; that it is an integer already has probability zero.
    known = np.trunc(forms.shift)
    return to_tensor(
        np.where(forms.random, np.where(floors < 0, floors + 1, floors), known), lazy, torch.float64
    )


def floor(book: NoiseBook, function: Any, forms: Forms) -> Floats:
    """Decide between which integers each number lies: the lower one."""
    shape, forms = forms.kind.shape, forms.flat()
    found = np.floor(forms.shift)
    for index in np.flatnonzero(forms.random).tolist():
        one = forms[index : index + 1]
        low, high = book.span(one)
        if not high - low <= MOST_INTEGERS:
            refuse(book, name_of(function), f"has more than {MOST_INTEGERS} outcomes")
        first, last = int(np.floor(low)), int(np.ceil(high)) - 1
        bounds = np.arange(first + 1, last + 1, dtype=np.float64)
        below = book.below(one.broadcast((1,))[np.zeros(len(bounds), np.int64)], bounds)
        found[index] = first + np.count_nonzero(~below)
    return found.reshape(shape)


def _round(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    """floor, ceil, trunc, and their forms in place."""
    name = function._schema.name.removeprefix("aten::")
    forms = forms_of(book, args[0])
    if name.startswith("trunc"):
        found = truncated(book, function, args[0]).numpy(force=True)
    else:
        up = name.startswith("ceil")
        found = floor(book, function, forms)
        found = np.where(forms.random, found + up, np.ceil(forms.shift) if up else found)
    if name.endswith("_"):
        return write(book, args[0], Forms.constants(found))
    return to_tensor(found, args[0], args[0].dtype)


def _searchsorted(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    """searchsorted(sequence, values), bucketize(values, sequence): how many of the sequence are smaller."""
    sequence, values = args[0], args[1]
    if "bucketize" in name_of(function):
        sequence, values = values, sequence
    if isinstance(sequence, LazyTensor) or kwargs.get("sorter") is not None:
        return refuse(book, name_of(function), "among random numbers isn't decided")
    edges = copied(sequence)
    if np.any(np.diff(edges) < 0) or np.isnan(edges).any():
        return refuse(book, name_of(function), "in a sequence that isn't sorted finds something arbitrary")
    forms = forms_of(book, values)
    rows = edges.reshape(-1, edges.shape[-1])
    if len(rows) > 1:
        rows = np.repeat(rows, forms.kind.shape[-1], axis=0).reshape(*forms.kind.shape, -1)
    wide = Forms(*(np.asarray(getattr(forms, name))[..., None] for name in Forms.__annotations__))
    right = bool(kwargs.get("right")) or kwargs.get("side") == "right"
    found = calculated(
        book, function, lambda: compare(book, "le" if right else "lt", Forms.constants(rows), wide)
    ).sum(-1)
    integer = torch.int32 if kwargs.get("out_int32") else torch.int64
    return to_tensor(found.reshape(forms.kind.shape), values, integer)


def _clamp(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    """clamp, minimum, maximum, by bounds that are known: what is beyond them is decided."""
    name = function._schema.name.removeprefix("aten::")
    bare = name.rstrip("_")
    if bare == "clamp":
        bounds = [*args[1:], *[None] * (3 - len(args))]
        low, high = kwargs.get("min", bounds[0]), kwargs.get("max", bounds[1])
    else:
        low, high = (args[1], None) if bare in ("clamp_min", "maximum") else (None, args[1])
    dtype = args[0].dtype if name.startswith("clamp") else result_type(args[0], args[1])
    forms = forms_of(book, args[0])
    for bound, above in ((low, False), (high, True)):
        if bound is not None:
            limit = forms_of(book, bound)
            forms = calculated(book, function, partial(_limited, book, forms, limit, above))
    return write(book, args[0], forms) if name.endswith("_") else lazily(book, forms, a_tensor(args), dtype)


def _limited(book: NoiseBook, forms: Forms, limit: Forms, above: bool) -> Forms:
    shape = np.broadcast_shapes(forms.kind.shape, limit.kind.shape)
    forms, limit = forms.broadcast(shape).flat(), limit.broadcast(shape).flat()
    if np.isnan(limit.shift).any():
        raise NoFormError("limits random numbers by nan")
    if limit.random.any():
        forms, limit = limit, forms
    levels, rising = forms.levels(limit.shift)
    share = np.where(rising == above, 1 - levels, levels)
    ignored = forms.random & ~limit.random & (share < NEGLIGIBLE)
    book.leave_out(forms.variable[ignored & (share > 0)], share[ignored & (share > 0)])
    name = "gt" if above else "lt"
    beyond = np.zeros(forms.kind.shape, bool)
    beyond[~ignored] = compare(book, name, forms[~ignored], limit[~ignored])
    return Forms(*(field.reshape(shape) for field in vars(limit.where(beyond, forms)).values()))


def _is(name: str, value: bool) -> Callable[[LazyTensor], torch.Tensor]:
    """isnan, isinf, isfinite: random numbers are finite."""

    def ask(lazy: LazyTensor) -> torch.Tensor:
        forms = forms_of(lazy.book, lazy)
        return to_tensor(np.where(forms.random, value, getattr(np, name)(forms.shift)), lazy, torch.bool)

    return ask


def _scalar(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    forms = forms_of(book, args[0])
    if forms.random.any():
        return refuse(book, "torch.Tensor.item", "needs the value of a random number that isn't decided")
    return forms.shift.item()


register("lt le gt ge eq ne", _compare)
register("floor ceil trunc floor_ ceil_ trunc_", _round)
register("searchsorted bucketize", _searchsorted)
register("clamp clamp_ clamp_min clamp_min_ clamp_max clamp_max_ minimum maximum", _clamp)
for _name, _value in (("isnan", False), ("isinf", False), ("isfinite", True)):
    functions[getattr(torch, _name)] = functions[getattr(torch.Tensor, _name)] = _is(_name, _value)
register("_local_scalar_dense", _scalar)
functions[torch.Tensor.__int__] = lambda lazy: int(truncated(lazy.book, torch.Tensor.__int__, lazy))
