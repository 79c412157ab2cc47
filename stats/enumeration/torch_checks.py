"""What is checked before torch's random operators are decided."""

import sys
from functools import cache
from math import isfinite
from types import FrameType

import torch

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


def check_weights(table: list[list[float]], count: int, replacement: bool) -> None:
    """What torch itself checks."""
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and any(count > len(weights) for weights in table):
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if not all(min(weights) >= 0 and isfinite(sum(weights)) for weights in table):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not all(sum(weights) > 0 for weights in table):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
