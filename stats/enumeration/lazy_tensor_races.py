"""argmax, max, topk and sort of lazy tensors: the winners of races, row by row."""

from functools import partial
from typing import Any

import numpy as np
import torch

from tokenlaw.stats.enumeration.array_functions import first_of
from tokenlaw.stats.enumeration.lazy_tensor_arithmetic import calculated, forms_of, register, to_tensor
from tokenlaw.stats.enumeration.lazy_tensor_values import numbers_of
from tokenlaw.stats.enumeration.lazy_tensors import name_of, operators
from tokenlaw.stats.enumeration.noise_book import NoiseBook
from tokenlaw.stats.enumeration.noise_races import largest

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]


def winners(
    book: NoiseBook, function: Any, lazy: torch.Tensor, dim: int, count: int, *, smallest: bool
) -> torch.Tensor:
    """Indices along a dimension of the largest elements, the largest first; int64.

    Returns
    -------
    Of the tensor's shape, but for ``count`` in the given dimension.
    """
    forms = forms_of(book, lazy)
    if lazy.dim() == 0:
        return torch.zeros((), dtype=torch.int64, device=lazy.device)
    moved = type(forms)(*(np.moveaxis(field, dim, -1) for field in vars(forms).values()))
    shape = moved.kind.shape
    rows = type(forms)(*(field.reshape(-1, shape[-1]) for field in vars(moved).values()))
    decide = partial(largest, book, count=count, source=name_of(function), smallest=smallest)
    found = [
        calculated(book, function, partial(decide, rows[number])) for number in range(rows.kind.shape[0])
    ]
    array = np.array(found, np.int64).reshape(*shape[:-1], count)
    return to_tensor(np.moveaxis(array, -1, dim), lazy, torch.int64)


def _argument(args: Arguments, kwargs: Keywords, position: int, name: str, default: Any) -> Any:
    return args[position] if len(args) > position else kwargs.get(name, default)


def _argmax(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    """argmax, argmin"""
    lazy, dim = args[0], _argument(args, kwargs, 1, "dim", None)
    keepdim = _argument(args, kwargs, 2, "keepdim", False)
    shape = lazy.shape
    if dim is None:
        lazy = lazy.reshape(-1)
    smallest = "argmin" in name_of(function)
    found = winners(book, function, lazy, 0 if dim is None else dim, 1, smallest=smallest)
    if keepdim:
        return found if dim is not None else found.reshape([1] * len(shape))
    return found.reshape(()) if dim is None else found.squeeze(dim)


def _max(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    """max and min along a dimension: the winner, and its number, of which no more is decided."""
    lazy, dim = args[0], args[1]
    smallest = name_of(function) == "torch.min"
    index = winners(book, function, lazy, dim, 1, smallest=smallest)
    values = lazy if lazy.dim() == 0 else lazy.gather(dim, index)
    if lazy.dim() and not _argument(args, kwargs, 2, "keepdim", False):
        index, values = index.squeeze(dim), values.squeeze(dim)
    return values, index


def _extreme(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    """max, min, amax, amin: the value alone, which can still be compared with thresholds if it is uniform."""
    lazy, chosen = args[0], _argument(args, kwargs, 1, "dim", [])
    chosen = [chosen] if isinstance(chosen, int) else chosen
    dims = sorted({dim % lazy.dim() for dim in chosen} or range(lazy.dim()))
    if not dims or 0 in (lazy.shape[dim] for dim in dims):
        return lazy.clone() if not dims else function(torch.empty(lazy.shape), *args[1:], **kwargs)
    largest_wanted = "max" in name_of(function)
    rows = lazy.movedim(dims, list(range(-len(dims), 0))).flatten(-len(dims))
    forms = forms_of(book, rows)

    def places() -> list[int]:
        numbers = numbers_of(book, forms)
        size = rows.shape[-1]
        starts = range(0, len(numbers), size)
        return [
            first_of(numbers[start : start + size], largest=largest_wanted, keep=True) for start in starts
        ]

    index = np.array(calculated(book, function, places), np.int64).reshape(*rows.shape[:-1], 1)
    values = rows.gather(-1, to_tensor(index, lazy, torch.int64)).squeeze(-1)
    if _argument(args, kwargs, 2, "keepdim", False):
        for dim in dims:
            values = values.unsqueeze(dim)
    return values


def _topk(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    lazy, count = args[0], args[1]
    dim = _argument(args, kwargs, 2, "dim", -1)
    smallest = not _argument(args, kwargs, 3, "largest", True)
    index = winners(book, function, lazy, dim, count, smallest=smallest)
    return lazy.gather(dim, index), index


def _sort(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    """sort, and argsort, which comes down to it."""
    lazy = args[0]
    places = args[1:] if function._overloadname != "stable" else ()
    dim = places[0] if places else kwargs.get("dim", -1)
    descending = places[1] if len(places) > 1 else kwargs.get("descending", False)
    index = winners(book, function, lazy, dim, lazy.shape[dim], smallest=not descending)
    return lazy.gather(dim, index), index


register("argmax argmin", _argmax)
register("amax amin", _extreme)
operators[torch.ops.aten.max.default] = operators[torch.ops.aten.min.default] = _extreme
operators[torch.ops.aten.max.dim] = operators[torch.ops.aten.min.dim] = _max
register("topk", _topk)
register("sort", _sort)
