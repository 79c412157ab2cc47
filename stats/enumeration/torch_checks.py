"""What is checked before torch's random operators are decided."""

import sys
from functools import cache
from math import isfinite
from types import FrameType

import torch

from tokenlaw.stats.enumeration.errors import as_the_real_one

TRANSFORMS = ("torch._functorch.vmap", "torch._functorch.eager_transforms")
"""Modules of torch that run functions transformed."""


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
        if frame.f_globals.get("__name__") in TRANSFORMS:
            return True
        frame = frame.f_back
    return False


@as_the_real_one
def check_weights(table: list[list[float]], count: int, replacement: bool) -> None:
    """What torch itself checks of `multinomial`."""
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and any(count > len(weights) for weights in table):
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if not all(min(weights) >= 0 and isfinite(sum(weights)) for weights in table):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not all(sum(weights) > 0 for weights in table):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


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
