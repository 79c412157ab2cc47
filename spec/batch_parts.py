"""The parts of batches, checked one by one: what a batch is made of, and which numbers may stand in it."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.tensor_checks import FLOATS, first_true, kind_of, require_numbers, require_tensor

Read = Callable[[], Bool[Tensor, "*batch positions"]]
"""Which positions of which rows count; asked for where something is wrong somewhere."""

Part = tuple[str, Any, list[int], tuple[torch.dtype, ...]]
"""The name of a part, what came, and the shape and the dtypes that it must have."""


def check_target(name: str, target: Any) -> None:
    """Refuse what can't be the target's logits, or its laws, which give a batch its sizes and its device.

    Raises
    ------
    TypeError, ValueError
        As `tokenlaw.spec.tensor_checks.require_tensor`; ValueError also for a wrong shape.
    """
    require_tensor(name, target, FLOATS)
    require_numbers(name, target)
    if target.dim() != 3 or min(target.shape[1:]) < 1:
        raise ValueError(
            f"{name} must have the shape [B, K + 1, V] with at least one position and one token, "
            f"but has {list(target.shape)}"
        )


def check_parts(parts: Iterable[Part], name: str, target: Tensor) -> None:
    """Refuse a wrong dtype (`TypeError`), device or shape of all else; ``name`` is that of the target."""
    for part, found, shape, dtypes in parts:
        require_tensor(part, found, dtypes)
        if found.device != target.device:
            raise ValueError(f"{part} is on {found.device}, but {name} on {target.device}")
        if list(found.shape) != shape:
            raise ValueError(
                f"{part} must have the shape {shape}, from {name} {list(target.shape)}, "
                f"but has {list(found.shape)}"
            )


def parts_of_params(params: Any, rows: int) -> Iterator[Part]:
    """The parts of sampling parameters; `TypeError` if they are none."""
    if not isinstance(params, RowParameters):
        raise TypeError(
            f"params must be a RowParameters, but is {kind_of(params)}; RowParameters.default(B) makes one"
        )
    yield "params.temperature", params.temperature, [rows], (torch.float64,)
    yield "params.top_k", params.top_k, [rows], (torch.int64,)
    yield "params.top_p", params.top_p, [rows], (torch.float64,)
    yield "params.min_p", params.min_p, [rows], (torch.float64,)
    if params.seeds is not None:
        yield "params.seeds", params.seeds, [rows], (torch.int64,)


def check_params(params: RowParameters) -> None:
    """Raise `ValueError` for sampling parameters out of range; of rows that share memory one is looked at."""
    for name, (fits, rule) in _RULES.items():
        numbers: Tensor = getattr(params, name)
        if all_fit(numbers[:1] if params.shared else numbers, fits):
            continue
        row = first_true(~fits(numbers))
        if row is not None:
            raise ValueError(f"row {row[0]} has the {name} {numbers[row[0]].item()}; a {name} is {rule}")


_RULES: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "temperature": (lambda number: (number >= 0) & (number < torch.inf), "finite, 0 or more"),
    "top_k": (lambda number: number >= 0, "0, which keeps every token, or more"),
    "top_p": (lambda number: (number > 0) & (number <= 1), "above 0, at most 1"),
    "min_p": (lambda number: (number >= 0) & (number <= 1), "between 0 and 1"),
}


def all_fit(numbers: Tensor, fits: Callable[[float], bool]) -> bool:
    """Whether all numbers are in an interval, seen by the smallest and the largest: NaN is both.

    >>> all_fit(torch.tensor([0.0, 0.5]), lambda number: 0 <= number <= 1), all_fit(torch.ones(0), bool)
    (True, True)
    """
    return not numbers.numel() or all(fits(end.item()) for end in numbers.aminmax())


def check_tokens(
    name: str, tokens: Int64[Tensor, "batch positions"], vocabulary: int, read: Read | None = None
) -> None:
    """Raise `ValueError` unless every token that is read, all without ``read``, is of the vocabulary."""
    if all_fit(tokens, lambda token: 0 <= token < vocabulary):
        return
    outside = (tokens < 0) | (tokens >= vocabulary)
    place = first_true(outside if read is None else outside & read())
    if place is not None:
        raise ValueError(
            f"row {place[0]}, {name} {place[1]}: token {tokens[tuple(place)].item()} is outside "
            f"0 .. {vocabulary - 1}"
        )


def check_logits(
    name: str, logits: Float[Tensor, "batch positions vocabulary"], read: Read | None = None
) -> None:
    """Raise `ValueError` unless every position that is read has finite logits or -inf, and a finite one.

    Finite numbers are told in one pass. Else the largest logit of a position shows all faults: NaN and
    infinity win, and so does the last minus infinity. Rows that share memory are looked at once.
    """
    shared = len(logits) > 1 and logits.stride(0) == 0
    apart = logits[:1] if shared else logits
    if math.isfinite(apart.sum().item()):  # a sum that overflows only costs the longer look
        return
    impossible = ~torch.isfinite(apart.amax(-1))
    if not bool(impossible.any()):
        return
    place = first_true((impossible if read is None else impossible & read()).expand(logits.shape[:2]))
    if place is None:
        return
    row, position = place
    token = first_true(~(logits[row, position] < torch.inf))
    if token is None:
        raise ValueError(f"{name}, row {row}, position {position}: no token is possible")
    raise ValueError(
        f"{name}, row {row}, position {position}, token {token[0]}: {logits[row, position, token[0]].item()} "
        "is no logit; one is finite, or minus infinity if the token is impossible"
    )


def before(lengths: Int64[Tensor, " batch"], positions: int) -> Read:
    """The positions before the length of each row.

    >>> before(torch.tensor([2, 0]), 2)()
    tensor([[ True,  True],
            [False, False]])
    """
    return lambda: torch.arange(positions, device=lengths.device) < lengths[:, None]
