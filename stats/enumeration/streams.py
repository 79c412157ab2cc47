"""Generators of random numbers while a law is enumerated: equal states give equal numbers.

Programs seed generators, often the same way twice: a drafter and a verifier with one seed share their
numbers, a stream that is started again repeats itself. So a draw is kept under the state that its generator
has. Whoever draws in that state again, in the same way, gets the same undecided numbers; in another way, it
is refused, since then numbers depend on each other as only the generator's algorithm knows. After a draw the
generator goes on to a state that follows from the one before. Generators with different seeds count as
independent.
"""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tokenlaw.stats.enumeration.forms import Forms
from tokenlaw.stats.enumeration.lazy_tensor_arithmetic import write
from tokenlaw.stats.enumeration.lazy_tensors import LazyInPlace, LazyTensor, lazy_of, refuse
from tokenlaw.stats.enumeration.noise_book import NoiseBook

Kernel = Callable[..., torch.Tensor]
"""Draws, as an operator of torch: gives a new tensor, or writes into its first argument."""

CPU = torch.device("cpu")
SHAPE_ONLY = ("rand_like",)
"""Operators that look at the shape of their first argument only, beside those that write over it."""


def draw(
    book: NoiseBook, name: str, kernel: Kernel, args: tuple[Any, ...], options: dict[str, Any]
) -> torch.Tensor:
    """The numbers that a generator gives in its state: new ones, or those that it gave in it before.

    Parameters
    ----------
    book : has the random numbers of the run.
    name : of the operator, without its overload, such as ``uniform_``.
    kernel, args, options : what draws new numbers.
    """
    generator = _generator(args, options)
    drawn_before = book.drawn()
    state, unseen = book.generators.state(generator)
    if unseen:
        refuse(
            book,
            f"torch.{name}",
            "comes after random numbers that were drawn by an operator that isn't seen here",
        )
    state = _digest(state, generator)
    asked = _asked(name, args, options)
    before = drawn_before.get(state)
    if before is None:
        drawn = kernel(*args, **options)
        drawn_before[state] = asked, _kept(drawn)
    elif before[0] == asked:
        drawn = _again(book, before[1], args[0] if name.endswith("_") else None)
    else:
        refuse(
            book,
            f"torch.{name}",
            "draws with a seed with which other numbers were drawn before: they depend on each other",
        )
    generator.manual_seed(int.from_bytes(state[:7], "little"))
    return drawn


class _Kept(NamedTuple):
    """What was drawn: decided numbers, or the handles of others and the dtype that they were drawn in."""

    numbers: torch.Tensor
    lazy: torch.dtype | None


def _again(book: NoiseBook, kept: _Kept, target: torch.Tensor | None) -> torch.Tensor:
    """The numbers of an earlier draw, in a new tensor or in one that is there."""
    if target is None:
        numbers = kept.numbers.clone()
        return numbers if kept.lazy is None else LazyTensor.of(book, numbers, kept.lazy)
    if kept.lazy is not None:
        return write(book, target, book.read(kept.numbers.cpu().numpy()))
    if isinstance(target, LazyTensor):
        return write(book, target, Forms.constants(kept.numbers.double().cpu().numpy()))
    return target.copy_(kept.numbers)


def _kept(drawn: torch.Tensor) -> _Kept:
    """The same numbers, of which no change to the tensor is seen."""
    lazy = lazy_of(drawn) if type(drawn) is LazyInPlace else drawn
    if isinstance(lazy, LazyTensor):
        with torch._C.DisableTorchFunctionSubclass():  # which costs more than all else here
            return _Kept(lazy.handles.clone(), lazy.dtype)
    return _Kept(lazy.clone(), None)


def _generator(args: tuple[Any, ...], options: dict[str, Any]) -> torch.Generator:
    """The generator of a call, or that of the device on which it draws."""
    for value in (*options.values(), *args):
        if type(value) is torch.Generator:
            return value
    device = options.get("device") or next((one.device for one in args if isinstance(one, torch.Tensor)), CPU)
    device = device if type(device) is torch.device else torch.device(device)
    if device.type != "cuda":
        return torch.default_generator
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.cuda.default_generators[index]


def _digest(state: bytes, generator: torch.Generator) -> bytes:
    return hashlib.blake2b(state + str(generator.device).encode(), digest_size=16).digest()


def _asked(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
    """What a draw depends on beside its generator: the operator, shapes and weights."""
    first = name.endswith("_") or name in SHAPE_ONLY
    described = [_described(value, whole=not (first and place == 0)) for place, value in enumerate(args)]
    return (name, *described, *((key, _described(options[key], whole=True)) for key in sorted(options)))


def _described(value: Any, *, whole: bool) -> Any:
    if type(value) is torch.Generator:
        return "generator"
    if isinstance(value, torch.Tensor):
        # Random numbers are described by what they are called.
        numbers = value.handles if isinstance(value, LazyTensor) else value
        content = numbers.tolist() if whole else None
        return tuple(value.shape), value.dtype, content
    return repr(value)
