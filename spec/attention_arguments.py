"""What attention may be asked: checks of arguments, with messages for people."""

import math

import torch
from torch import Tensor


def check_arguments(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    scale: float,
    *,
    window: int | None,
    softcap: float | None,
    alibi_slopes: Tensor | None,
    sinks: Tensor | None,
) -> None:
    """Raise `ValueError` unless these are arguments of `tokenlaw.spec.attention.attend`.

    >>> one = torch.ones(1, 1, 1).double()
    >>> check_arguments(one, one, one, 1.0, window=0, softcap=None, alibi_slopes=None, sinks=None)
    Traceback (most recent call last):
    ValueError: window is 0; it must be at least 1 (a query sees itself), or None for no window
    """
    _check_shapes(query, keys, values)
    check_float64(query=query, keys=keys, values=values)
    check_finite(query=query, keys=keys, values=values)
    if not math.isfinite(scale):
        raise ValueError(f"scale is {scale}; it must be finite, usually head_size ** -0.5")
    if window is not None and window < 1:
        raise ValueError(
            f"window is {window}; it must be at least 1 (a query sees itself), or None for no window"
        )
    if softcap is not None and not (math.isfinite(softcap) and softcap > 0):
        raise ValueError(f"softcap is {softcap}; it must be positive and finite, or None for no softcap")
    if alibi_slopes is not None:
        _check_per_head(query.shape[1], alibi_slopes=alibi_slopes)
        check_finite(alibi_slopes=alibi_slopes)
    if sinks is not None:
        _check_per_head(query.shape[1], sinks=sinks)
        check_finite(sinks=sinks.masked_fill(sinks == -math.inf, 0.0))


def _check_per_head(query_heads: int, **tensors: Tensor) -> None:
    check_float64(**tensors)
    for name, tensor in tensors.items():
        if tensor.shape != (query_heads,):
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; it must be ({query_heads},), one number per head"
            )


def _check_shapes(query: Tensor, keys: Tensor, values: Tensor) -> None:
    for name, tensor in (("query", query), ("keys", keys), ("values", values)):
        if tensor.dim() != 3:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}; it must be [tokens, heads, head_size]")
    if keys.shape != values.shape:
        raise ValueError(f"keys {tuple(keys.shape)} and values {tuple(values.shape)} must have one shape")
    if query.shape[2] != keys.shape[2]:
        raise ValueError(f"query has head size {query.shape[2]}, keys have {keys.shape[2]}; they must agree")
    if keys.shape[1] == 0 or query.shape[1] == 0 or query.shape[1] % keys.shape[1]:
        raise ValueError(
            f"{query.shape[1]} query heads can't share {keys.shape[1]} KV heads evenly; the number of query "
            "heads must be a positive multiple of the number of KV heads"
        )


def check_float64(**tensors: Tensor) -> None:
    """Raise `ValueError` unless all tensors are float64; the keyword names the tensor in the message."""
    for name, tensor in tensors.items():
        if tensor.dtype != torch.float64:
            raise ValueError(f"{name} is {tensor.dtype}; the specification is float64: pass {name}.double()")


def check_finite(**tensors: Tensor) -> None:
    """Raise `ValueError` if a tensor holds NaN or infinity; the keyword names it in the message."""
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise ValueError(f"{name} holds NaN or infinity; attention is specified for finite numbers")
