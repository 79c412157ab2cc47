"""Numbers that leave a lazy tensor: ``item``, ``tolist``, ``numpy``. They stay undecided."""

from typing import Any

import torch

from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.forms import EXPONENTIAL, LOGARITHM, Forms
from tokenlaw.stats.enumeration.lazy_arrays import lazy_array
from tokenlaw.stats.enumeration.lazy_numbers import LazyNumber
from tokenlaw.stats.enumeration.lazy_tensor_arithmetic import forms_of
from tokenlaw.stats.enumeration.lazy_tensors import LazyTensor, functions
from tokenlaw.stats.enumeration.monotone import EXP, LOG, Affine, Step, Steps, then
from tokenlaw.stats.enumeration.noise_book import NoiseBook


def steps_of(kind: int, mirrored: int, power: float, scale: float, shift: float) -> Steps:
    """The steps that lead from a uniform to ``scale * x ** power + shift``."""
    steps: list[Step] = [Affine(-1, 1)] if mirrored else []
    if kind in (EXPONENTIAL, LOGARITHM):
        steps += [LOG, Affine(-1, 0)]
    if kind == LOGARITHM:
        steps.append(LOG)
    if power != 1:
        steps += [LOG, Affine(power, 0), EXP]
    found: Steps = ()
    for step in [*steps, Affine(scale, shift)]:
        found = then(found, step)
    return found


def numbers_of(book: NoiseBook, forms: Forms) -> list[Any]:
    """All numbers of an array, row by row: lazy ones, or floats where they are known."""
    columns = (field.ravel().tolist() for field in vars(forms).values())
    return [
        shift
        if variable < 0
        else LazyNumber(book.uniform(variable), steps_of(kind, turned, power, scale, shift))
        for variable, kind, turned, power, scale, shift in zip(*columns, strict=True)
    ]


@as_the_real_one
def _item(lazy: LazyTensor) -> Any:
    numbers = numbers_of(lazy.book, forms_of(lazy.book, lazy))
    if len(numbers) != 1:
        raise RuntimeError(f"a Tensor with {len(numbers)} elements cannot be converted to Scalar")
    return numbers[0]


def _numpy(lazy: LazyTensor, *options: Any, **keywords: Any) -> Any:
    forms = forms_of(lazy.book, lazy)
    if not forms.random.any():
        return torch.from_numpy(forms.shift.copy()).to(lazy.dtype).numpy()
    return lazy_array(numbers_of(lazy.book, forms), tuple(lazy.shape))


def _tolist(lazy: LazyTensor) -> Any:
    return _item(lazy) if lazy.dim() == 0 else _numpy(lazy).tolist()


functions[torch.Tensor.item] = _item
functions[torch.Tensor.tolist] = _tolist
functions[torch.Tensor.numpy] = functions[torch.Tensor.__array__] = _numpy
