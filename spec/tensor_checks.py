"""Is a value the tensor that was asked for? Messages say which it is, what was expected, and what came."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
"""What laws and logits may be given in."""


def kind_of(found: object) -> str:
    """What a value is, for the end of a message.

    >>> kind_of([1]), kind_of(3), kind_of(None), kind_of(dict)
    ('a list', 'an int', 'None', 'the class dict')
    """
    if found is None:
        return "None"
    if isinstance(found, type):
        return f"the class {found.__name__}"
    name = type(found).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def require_tensor(name: str, found: Any, dtypes: Sequence[torch.dtype]) -> None:
    """Raise unless it is a dense tensor of one of some dtypes.

    Raises
    ------
    TypeError
        It is no tensor, or of another dtype.
    ValueError
        It is sparse, or nested.

    Examples
    --------
    >>> require_tensor("draft_tokens", [[1]], [torch.int64])
    Traceback (most recent call last):
    TypeError: draft_tokens must be a tensor of int64, but is a list; torch.as_tensor makes one of it
    """
    if not isinstance(found, Tensor):
        is_array = isinstance(found, list | tuple) or hasattr(found, "__array__")
        hint = "; torch.as_tensor makes one of it" if is_array else ""
        raise TypeError(f"{name} must be a tensor of {_listed(dtypes)}, but is {kind_of(found)}{hint}")
    if found.dtype not in dtypes:
        raise TypeError(f"{name} must be {_listed(dtypes)}, but is {_short(found.dtype)}")
    if found.is_nested:  # it has no shape
        raise ValueError(f"{name} must be a dense tensor, but is nested")
    if found.layout != torch.strided:
        raise ValueError(f"{name} must be a dense tensor, but has the layout {_short(found.layout)}")


def require_numbers(name: str, tensor: Tensor) -> None:
    """Raise `ValueError` for a tensor on the device ``meta``.

    >>> require_numbers("logits", torch.zeros(1, device="meta"))
    Traceback (most recent call last):
    ValueError: logits is on the device meta, where tensors have no numbers
    """
    if tensor.is_meta:
        raise ValueError(f"{name} is on the device meta, where tensors have no numbers")


def require_device(device: Any) -> None:
    """Raise `ValueError` unless tensors with numbers can be made there.

    >>> require_device("meta")
    Traceback (most recent call last):
    ValueError: device 'meta' can't be used: its tensors have no numbers
    """
    try:
        made = torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"device {device!r} can't be used: {' '.join(str(error).split())}") from None
    if made.is_meta:
        raise ValueError(f"device {device!r} can't be used: its tensors have no numbers")


def first_true(found: Bool[Tensor, "*shape"]) -> list[int] | None:
    """Indices of the first true entry; None if there is none.

    >>> first_true(torch.tensor([[False, False], [True, True]]))
    [1, 0]
    """
    if not bool(found.any()):
        return None
    place: list[int] = found.nonzero()[0].tolist()
    return place


def _listed(dtypes: Sequence[torch.dtype]) -> str:
    """The names of dtypes, with "or" before the last."""
    *others, last = map(_short, dtypes)
    return f"{', '.join(others)} or {last}" if others else last


def _short(name: torch.dtype | torch.layout) -> str:
    return str(name).removeprefix("torch.")
