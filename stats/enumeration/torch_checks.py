"""What is checked before torch's random operators are decided."""

import importlib
import sys
from collections.abc import Sequence
from functools import cache
from math import isfinite
from types import FrameType

import torch

from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.lazy_tensors import refuse
from tokenlaw.stats.enumeration.noise_book import NoiseBook

VMAP, TRANSFORMS = (
    vars(importlib.import_module(f"torch._functorch.{name}")) for name in ("vmap", "eager_transforms")
)
"""Globals of the modules of torch that run functions transformed: their frames are known by them."""
_NAMES = {torch.float32: "float", torch.float64: "double"}
"""What torch calls dtypes in C++."""


@cache
def exists(name: str) -> bool:
    packet, _, overload = name.partition(".")
    return (
        hasattr(torch.ops.aten, packet)
        and (overload or "default") in getattr(torch.ops.aten, packet).overloads()
    )


def is_transformed() -> bool:
    """Whether a function transform is running: it hides tensors inside of others."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        # Their names would have to be looked up, in each of many frames.
        if frame.f_globals is VMAP or frame.f_globals is TRANSFORMS:
            return True
        frame = frame.f_back
    return False


@as_the_real_one
def check_weights(weights: torch.Tensor, count: int, replacement: bool) -> list[list[float]]:
    """What torch itself checks of `multinomial`; the rows of weights."""
    if not weights.is_floating_point():
        kind = weights.type().rpartition(".")[2].removesuffix("Tensor")
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {kind}")
    if not 0 < weights.dim() <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and count > weights.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    table: list[list[float]] = weights.tolist() if weights.dim() > 1 else [weights.tolist()]
    if not all(isfinite(sum(row)) and min(row, default=0) >= 0 for row in table):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not all(sum(row) > 0 for row in table):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    return table


@as_the_real_one
def check_shares(shares: torch.Tensor) -> None:
    """What torch itself checks of `bernoulli`, with a tensor of probabilities."""
    if bool(((shares < 0) | (shares > 1) | shares.isnan()).any()):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")


@as_the_real_one
def check_share(share: float) -> None:
    """The same with one probability."""
    if not 0 <= share <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={share}")


@as_the_real_one
def check_range(low: int, high: int) -> None:
    """What torch itself checks of random integers from ``low`` to ``high - 1``."""
    if high <= low:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")


@as_the_real_one
def check_size(size: Sequence[int]) -> None:
    """What torch itself checks of the shape of a new tensor."""
    for length in size:
        if length < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {length}: {list(size)}")


@as_the_real_one
def check_rate(rate: float) -> None:
    """What torch itself checks of `exponential_`."""
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")


@as_the_real_one
def check_ends(low: float, high: float, dtype: torch.dtype) -> None:
    """What torch itself checks of `uniform_`."""
    largest = torch.finfo(dtype).max
    for name, end in (("from", low), ("to", high)):
        if not abs(end) <= largest:
            raise RuntimeError(f"{name} is out of bounds for {_NAMES[dtype]}")
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if high - low > largest:
        raise RuntimeError(
            "uniform_ expects to-from <= std::numeric_limits<Float>::max(), but found "
            f"to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )


def check_bernoulli(book: NoiseBook, *dtypes: torch.dtype) -> None:
    """Refuse `bernoulli` into a dtype, or with probabilities of one, that torch hasn't."""
    if any(dtype.is_complex for dtype in dtypes) or not all(one.is_floating_point for one in dtypes[1:]):
        refuse(book, "torch.bernoulli", "isn't done by torch itself in these dtypes")


def largest_integer(dtype: torch.dtype) -> int:
    """Up to here a dtype has all integers."""
    if dtype is torch.bool:
        return 1
    return int(2 / torch.finfo(dtype).eps) if dtype.is_floating_point else torch.iinfo(dtype).max


def check_integers(book: NoiseBook, name: str, dtype: torch.dtype, low: int, high: int) -> None:
    """Refuse integers from ``low`` to ``high`` in a dtype that hasn't all of them, as torch does."""
    largest = 0 if dtype.is_complex else largest_integer(dtype)
    smallest = -largest if dtype.is_signed else 0
    if not smallest <= low <= high <= largest:
        refuse(book, name, f"of integers from {low} to {high} isn't done by torch itself in {dtype}")
