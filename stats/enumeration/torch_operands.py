"""Lazy numbers and arrays where torch wants a float, or an array of floats.

torch reads those in C. It takes anything else for a mistake of the program and raises, and a program that
catches this goes a way which it never goes with floats. So random numbers are refused here before that, or,
in comparisons with tensors, decided.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.images import Image
from tokenlaw.stats.enumeration.lazy_arrays import images
from tokenlaw.stats.enumeration.meetings import meetings

COMPARISONS: dict[str, Callable[[Any, Any], NDArray[np.bool_]]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
"""What torch's comparisons are called in numpy."""
TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
"""What a comparison is with its operands exchanged."""
MAKERS = ("tensor", "as_tensor", "asarray", "from_numpy")
"""Functions of torch that make tensors of numbers or arrays."""


def call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A function, or method, of torch with a lazy number among its arguments.

    Returns
    -------
    Of a comparison with a tensor the answers, as a tensor of bool; anything else is refused.
    """
    name = function.__name__.removeprefix("__").removesuffix("__")
    if name not in COMPARISONS or len(args) != 2 or kwargs:
        _refuse(f"torch.{name}", [*args, *kwargs.values()])
    one, other = (
        value.detach().cpu().double().numpy() if isinstance(value, torch.Tensor) else value for value in args
    )
    device = next(value.device for value in args if isinstance(value, torch.Tensor))
    return torch.from_numpy(np.asarray(COMPARISONS[name](one, other))).to(device)


def refusing(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A function that makes a tensor of numbers; where it fails at lazy ones, the run is stopped."""

    @wraps(make)
    @as_the_real_one
    def function(*args: Any, **kwargs: Any) -> torch.Tensor:
        try:
            return make(*args, **kwargs)
        except Exception:
            _refuse(f"torch.{make.__name__}", [*args, *kwargs.values()])
            raise

    return function


def _refuse(operation: str, values: Sequence[Any]) -> None:
    found: Image | None = next(images(values), None)
    if found is not None:
        found.refuse(operation, "reads the value of a random number that isn't decided")


meetings[torch.Tensor] = call
