"""Operators with ``out``: what they would give without is written there."""

from functools import cache
from typing import Any

import torch

from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.lazy_tensor_arithmetic import forms_of, write
from tokenlaw.stats.enumeration.lazy_tensors import OUT, LazyTensor, name_of, operators, outs_of, refuse
from tokenlaw.stats.enumeration.noise_book import NoiseBook


@cache
def without_out(function: Any) -> Any:
    """The overload of an operator that gives new tensors; None if there is none.

    >>> without_out(torch.ops.aten.sort.values_stable)
    <OpOverload(op='aten.sort', overload='stable')>
    """
    packet = getattr(torch.ops.aten, function._schema.name.removeprefix("aten::"))
    given = _arguments(function)
    for name in packet.overloads():
        other = getattr(packet, name)
        asked = _arguments(other)
        more = [
            argument
            for argument in other._schema.arguments
            if (argument.name, str(argument.type)) not in given
        ]
        if (
            not outs_of(other)
            and set(given) <= set(asked)
            and all(one.has_default_value() and one.kwarg_only for one in more)
        ):
            return other
    return None


def _arguments(function: Any) -> list[tuple[str, str]]:
    return [
        (argument.name, str(argument.type)) for argument in function._schema.arguments if not argument.is_out
    ]


@as_the_real_one
def _into_out(book: NoiseBook, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    outs = [kwargs[name] for name in outs_of(function)]
    make = without_out(function)
    if make is None:
        refuse(book, f"{name_of(function)}(out=...)", "of random numbers has no exact probability here")
    found = make(*args, **{key: value for key, value in kwargs.items() if key not in outs_of(function)})
    for out, result in zip(outs, found if isinstance(found, list | tuple) else [found], strict=True):
        _put(book, function, out, result)
    return outs[0] if len(outs) == 1 else tuple(outs)


def _put(book: NoiseBook, function: Any, out: torch.Tensor, result: torch.Tensor) -> None:
    if result.dtype != out.dtype:
        refuse(book, f"{name_of(function)}(out=...)", f"writes {result.dtype} into a tensor of {out.dtype}")
    if out.shape != result.shape:
        if isinstance(out, LazyTensor):
            refuse(
                book,
                f"{name_of(function)}(out=...)",
                f"of shape {tuple(result.shape)} changes a shape by that",
            )
        out.resize_(result.shape)
    if isinstance(result, LazyTensor) or isinstance(out, LazyTensor):
        write(book, out, forms_of(book, result))
    else:
        out.copy_(result)


operators[OUT] = _into_out
