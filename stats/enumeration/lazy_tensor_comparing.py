"""Comparisons of a few uniform numbers with known ones, which programs make most often: in fewer steps.

What they decide, and in which order, is what `tokenlaw.stats.enumeration.lazy_tensor_decisions` would.
"""

from collections.abc import Callable
from functools import partial
from math import isnan
from typing import Any

import torch

from tokenlaw.stats.enumeration.lazy_tensors import LazyTensor, handles_of, shortcuts
from tokenlaw.stats.enumeration.noise_book import FEW, NoiseBook
from tokenlaw.stats.enumeration.torch_operands import TURNED

ORDERINGS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
"""Comparisons by their two names in torch."""
EXACT = 2**53
"""Integers up to here are floats too."""
_tensor: Callable[..., torch.Tensor] = torch.tensor  # the real one: programs get another while a law is made


def compared(name: str, first: Any, second: Any) -> torch.Tensor | None:
    """The answers; None where more must be looked at."""
    if type(first) is not LazyTensor:
        name, first, second = TURNED[name], second, first
    if type(first) is not LazyTensor or torch._C._len_torch_dispatch_stack():
        return None
    book, handles = first.book, handles_of(first)
    bounds = _bounds(handles, second) if handles.numel() <= FEW else None
    variables = [book.plain.get(handle) for handle in handles.reshape(-1).tolist()] if bounds else []
    known = [variable for variable in variables if variable is not None]
    if not bounds or len(known) < len(bounds):
        return None
    below = [_is_below(book, variable, bound) for variable, bound in zip(known, bounds, strict=True)]
    if name in ("gt", "ge"):  # nothing is above NaN, nor below it
        below = [not one and not isnan(bound) for one, bound in zip(below, bounds, strict=True)]
    return _tensor(below, dtype=torch.bool, device=handles.device).reshape(handles.shape)


def _is_below(book: NoiseBook, variable: int, bound: float) -> bool:
    return book.uniform(variable).below(bound) if 0 < bound < 1 else bound >= 1


def _bounds(handles: torch.Tensor, other: Any) -> list[float] | None:
    """What each number is compared with, if that is plain to see."""
    if type(other) is float or (type(other) is int and abs(other) <= EXACT):
        return [float(other)] * handles.numel()
    if type(other) is not torch.Tensor or torch._C._functorch.is_functorch_wrapped_tensor(other):
        return None
    if other.layout is not torch.strided or other.dtype.is_complex or other.is_quantized:
        return None
    if other.shape == handles.shape:
        return other.double().reshape(-1).tolist()
    if other.numel() == 1 and other.dim() <= handles.dim():
        return [float(other.item())] * handles.numel()
    return None


for _name, _other_name in ORDERINGS.items():
    for _function in (
        getattr(_owner, one) for _owner in (torch, torch.Tensor) for one in (_name, _other_name)
    ):
        shortcuts[_function] = partial(compared, _name)
