"""Overloads of torch's random operators beside those in `torch_draws`: ``out``, out of place, unknown ones.

Some of torch's own write noise into memory and read it in C++, where no undecided number is seen. So every
operator that torch itself calls random, and that has a kernel of its own, is decided here or refused.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch

from tokenlaw.stats.enumeration.lazy_tensors import passed_on, refuse
from tokenlaw.stats.enumeration.torch_checks import exists
from tokenlaw.stats.enumeration.torch_draws import TorchDraws

Kernel = Callable[..., Any]

INTO_OUT = {
    "multinomial.out": "multinomial",
    "bernoulli.out": "bernoulli",
    "randperm.generator_out": "randperm",
}
"""Overloads that write into ``out``, and the ones that give a new tensor."""
OUT_OF_PLACE = {"uniform": "uniform_", "exponential": "exponential_"}
"""Operators that give a new tensor, and those that write over one."""
FUSED = ("attention", "_cudnn", "miopen", "_lstm_mps", "sdp", "mem_eff", "_nested", "flash")
"""Parts of names of kernels that draw for dropout only; what they draw shows in the generator's state."""


def all_kernels(draws: TorchDraws, devices: tuple[str, ...]) -> dict[str, Kernel]:
    """For every operator that draws by a kernel of its own what takes its place.

    Parameters
    ----------
    draws : the kernels that decide.
    devices : dispatch keys, such as "CPU".
    """
    found = draws.kernels()
    for name, other in INTO_OUT.items():
        found[name] = partial(_into_out, draws, other, found[other])
    for name, other in OUT_OF_PLACE.items():
        found[name] = partial(_out_of_place, other)
    found["native_dropout"] = _native_dropout
    for name in random_kernels(devices):
        if name not in found and not any(part in name for part in FUSED):
            found[name] = draws.refusal(name)
    return {name: kernel for name, kernel in found.items() if exists(name)}


@cache
def random_kernels(devices: tuple[str, ...]) -> tuple[str, ...]:
    """Operators of torch that are random and have a kernel of their own; as it was at the first call."""
    return tuple(
        name.removeprefix("aten::")
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::")
        and any(torch._C._dispatch_has_kernel_for_dispatch_key(name, device) for device in devices)
        and torch.Tag.nondeterministic_seeded in _tags(name)
    )


def _tags(name: str) -> list[torch.Tag]:
    operator, _, overload = name.partition(".")
    tags: list[torch.Tag] = torch._C._get_operation_overload(operator, overload)[2]
    return tags


def _into_out(
    draws: TorchDraws, name: str, kernel: Kernel, *args: Any, out: torch.Tensor, **options: Any
) -> torch.Tensor:
    if name == "multinomial" and out.dtype != torch.int64:
        refuse(draws.book, f"torch.{name}(out=...)", f"writes integers into a tensor of {out.dtype}")
    found = kernel(*args, **options)
    return out.resize_(found.shape).copy_(found)


def _out_of_place(name: str, like: torch.Tensor, *args: Any, **options: Any) -> Any:
    # A lazy tensor, since code in C++ may be what asks.
    return passed_on(getattr(torch.empty_like(like), name)(*args, **options))


def _native_dropout(
    values: torch.Tensor, share: float, train: bool | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    kept = torch.ones_like(values, dtype=torch.bool)
    if train is False:
        return values.clone(), kept
    kept.bernoulli_(1 - share)
    return values * kept * (0.0 if share == 1 else 1 / (1 - share)), kept
