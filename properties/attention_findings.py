"""What breaks a rule of paged attention: a difference of tensors, a wrong result, and the words for them."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tokenlaw.spec.verdicts import Check


class RuleBrokenError(Exception):
    """An implementation broke the rule of a check.

    Attributes
    ----------
    at, expected, found : what a failure message says, in words.
    notes : further lines for the end of the message.
    excusable : the answer would be within the bound of an engine that declares ``scores_in_input_dtype``.
    """

    def __init__(self, at: str, expected: str, found: str, *, excusable: bool = False) -> None:
        super().__init__(f"{at}: expected {expected}, found {found}")
        self.at, self.expected, self.found, self.excusable = at, expected, found, excusable
        self.notes: list[str] = []

    def noting(self, line: str) -> "RuleBrokenError":
        """The same with one more note."""
        self.notes.append(line)
        return self

    def explain(self, check: Check, case: str) -> str:
        """The complete failure message, with the case in words."""
        return "\n".join(
            [
                f"{check.id} ({check.rule}) is refuted: {check.title}",
                f"  severity: {check.severity}",
                f"  at:       {self.at}",
                f"  expected: {self.expected}",
                f"  found:    {self.found}",
                f"case: {case}",
                *self.notes,
            ]
        )


@dataclass(frozen=True)
class Difference:
    """The worst element of a comparison: where it is, both numbers, and the error with its bound.

    ``ratio`` is the error as a share of the bound, infinite when not finite where it should be.
    """

    ratio: float = 0.0
    at: str = ""
    wanted: float = 0.0
    found: float = 0.0
    error: float = 0.0
    bound: float = 0.0


def compare(name: str, found: Tensor, wanted: Tensor, bound: Tensor) -> Difference:
    """The element with the largest error as a share of its bound.

    ``bound`` 0 demands equality. Minus infinity equals itself, NaN equals nothing. Dimensions are
    row, query, head and, for outputs, channel.
    """
    error = (found - wanted).abs()
    error = torch.where(found == wanted, 0.0, torch.nan_to_num(error, nan=torch.inf, posinf=torch.inf))
    ratio = torch.where(error == 0, 0.0, error / bound)
    if ratio.numel() == 0:
        return Difference()
    at = torch.unravel_index(ratio.argmax(), ratio.shape)
    axes = ("row", "query", "head", "channel")
    place = ", ".join(f"{axis} {int(index)}" for axis, index in zip(axes, at, strict=False))
    numbers = (tensor[at].item() for tensor in (wanted, found, error, bound))
    return Difference(float(ratio[at]), f"{name} of {place}", *numbers)


def check_tensor(name: str, tensor: Any, shape: tuple[int, ...], dtype: torch.dtype | None) -> None:
    """Break the rule unless this is a tensor of that shape and dtype (None: any floating dtype)."""
    if not isinstance(tensor, Tensor):
        raise RuleBrokenError(name, "a tensor", type(tensor).__name__)
    if tuple(tensor.shape) != shape:
        raise RuleBrokenError(name, f"shape {list(shape)}", f"shape {list(tensor.shape)}")
    if (dtype is not None and tensor.dtype != dtype) or not tensor.is_floating_point():
        raise RuleBrokenError(name, f"dtype {dtype or 'of floating point'}", str(tensor.dtype))


def check_pair(call: str, result: Any) -> tuple[Any, Any]:
    """Break the rule unless this is a pair (output, lse); ``call`` says what gave it."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise RuleBrokenError(f"the result of {call}", "a pair (output, lse)", type(result).__name__)
    return result[0], result[1]
