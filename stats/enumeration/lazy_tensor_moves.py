"""Operators that only move numbers around: they move handles in their place."""

from typing import Any

import numpy as np
import torch

from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.lazy_memory import take_over
from tokenlaw.stats.enumeration.lazy_tensor_arithmetic import (
    PRECISE,
    forms_of,
    register,
    result_type,
    write,
)
from tokenlaw.stats.enumeration.lazy_tensor_decisions import truncated
from tokenlaw.stats.enumeration.lazy_tensors import (
    LazyTensor,
    handles_of,
    name_of,
    operators,
    refuse,
)
from tokenlaw.stats.enumeration.noise_book import NoiseBook

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]

MOVES = """
view _unsafe_view reshape unsqueeze squeeze expand permute transpose t slice select index index_select gather
clone detach alias contiguous repeat flip roll split split_with_sizes unbind as_strided masked_select diagonal
unfold lift_fresh unsafe_split unsafe_chunk chunk narrow take tile repeat_interleave
"""
"""Operators whose first argument alone has numbers to move; the others say where to."""


@as_the_real_one
def _move(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    lazy, *places = args
    if not isinstance(lazy, LazyTensor) or any(isinstance(part, LazyTensor) for part in places):
        return refuse(
            book, name_of(function), "with a random number for an index has no exact probability here"
        )
    moved = function(handles_of(lazy), *places, **kwargs)
    if isinstance(moved, torch.Tensor):
        return LazyTensor.of(book, moved, lazy.dtype)
    return type(moved)(LazyTensor.of(book, part, lazy.dtype) for part in moved)


def as_handles(book: NoiseBook, value: Any, device: torch.device) -> torch.Tensor:
    """Handles of any operand's numbers."""
    if isinstance(value, LazyTensor):
        return handles_of(value)
    return torch.from_numpy(np.asarray(book.write(forms_of(book, value)))).to(device)


@as_the_real_one
def _join(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    """cat, stack: of lists of tensors."""
    parts, *places = args
    device = parts[0].device
    dtype = parts[0].dtype
    for part in parts[1:]:
        dtype = torch.promote_types(dtype, part.dtype)
    handles = [as_handles(book, part, device) for part in parts]
    return LazyTensor.of(book, function(handles, *places, **kwargs), dtype)


@as_the_real_one
def _where(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    condition, *operands = args
    if isinstance(condition, LazyTensor) or len(operands) != 2:
        return refuse(book, name_of(function), "of random numbers themselves isn't decided")
    one, other = (as_handles(book, part, condition.device) for part in operands)
    return LazyTensor.of(book, torch.where(condition, one, other), result_type(*operands))


@as_the_real_one
def _fill(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    """masked_fill, index_put, scatter, index_fill: the last argument's numbers are written into the first."""
    if function._schema.name.startswith("aten::index_put") and len(args) > 3 and not args[3]:
        args = args[:3]
    target, *places, values = args
    if kwargs or len(places) > 2 or any(isinstance(part, LazyTensor) for part in _tensors(places)):
        return refuse(book, name_of(function), "of random numbers has no exact probability here in this form")
    if target.dtype not in PRECISE:
        return refuse(book, name_of(function), f"into {target.dtype} rounds random numbers")
    in_place = function._schema.name.endswith("_")
    lazy = take_over(book, target) if in_place and not isinstance(target, LazyTensor) else target
    source = as_handles(book, values, target.device)
    moved = function(
        as_handles(book, lazy, target.device),
        *places,
        source if isinstance(values, torch.Tensor) else int(source),
    )
    return target if in_place else LazyTensor.of(book, moved, target.dtype)


def _copy(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    """copy_"""
    return write(book, args[0], forms_of(book, args[1]))


def _refill(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    """fill_, zero_"""
    value = args[1] if len(args) > 1 else 0.0
    return write(book, args[0], forms_of(book, value))


def _tensors(values: Any) -> list[Any]:
    found = []
    for value in values:
        found += _tensors(value) if isinstance(value, list | tuple) else [value]
    return found


@as_the_real_one
def _new(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    """Operators that look at shape, dtype and device only."""
    like = args[0]
    if any(isinstance(part, LazyTensor) for part in _tensors(args[1:])):
        return refuse(book, name_of(function), "of random numbers has no exact probability here")
    stand_in = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)
    return function(stand_in, *args[1:], **kwargs)


def _convert(book: NoiseBook, function: Any, args: Arguments, kwargs: Keywords) -> Any:
    """to: another dtype or device. Integers are decided."""
    lazy = args[0]
    dtype = kwargs.get("dtype") or lazy.dtype
    device = kwargs.get("device") or lazy.device
    if dtype in PRECISE:
        return LazyTensor.of(book, handles_of(lazy).to(device, copy=True), dtype)
    if dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
        return refuse(book, f"converting random numbers to {dtype}", "rounds them")
    return truncated(book, function, lazy).to(device=device, dtype=dtype)


register(MOVES, _move)
register("cat stack concat", _join)
register("where", _where)
register("masked_fill masked_fill_ index_put index_put_ scatter scatter_ index_fill index_fill_", _fill)
register("copy_", _copy)
register("fill_ zero_", _refill)
register("_to_copy", _convert)
register(
    "empty_like zeros_like ones_like full_like new_empty new_zeros new_ones new_full new_empty_strided", _new
)
register("rand_like randn_like randint_like", _new)
operators[torch.ops.aten.bernoulli.p] = _new
