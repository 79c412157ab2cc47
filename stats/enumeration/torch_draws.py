"""What torch's random operators do while a law is enumerated.

Draws from finitely many values are decided at once, real numbers stay undecided, and whatever has too many
values, and no use that could be decided, is refused by name.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch

from tokenlaw.stats.enumeration.deciding import decide
from tokenlaw.stats.enumeration.forms import EXPONENTIAL, UNIFORM, Forms
from tokenlaw.stats.enumeration.lazy_memory import READ_IN_CPP, WRITING, is_of_cpp
from tokenlaw.stats.enumeration.lazy_tensor_arithmetic import PRECISE, write
from tokenlaw.stats.enumeration.lazy_tensors import LazyTensor, operators, refuse
from tokenlaw.stats.enumeration.noise_book import NoiseBook
from tokenlaw.stats.enumeration.streams import draw
from tokenlaw.stats.enumeration.torch_checks import (
    check_bernoulli,
    check_ends,
    check_integers,
    check_range,
    check_rate,
    check_share,
    check_shares,
    check_size,
    check_weights,
    exists,
    is_transformed,
    largest_integer,
)

aten = torch.ops.aten

REFUSED = """
normal_ normal randn randn_like poisson binomial _standard_gamma _sample_dirichlet cauchy_ log_normal_
geometric_ rrelu_with_noise rrelu_with_noise_ _fused_dropout
"""
"""Operators whose draws have too many values, and no use that could be decided."""

UNDECIDED = ("uniform_", "exponential_")
"""Operators that write numbers which aren't decided."""

MOST_VALUES = 100_000
"""Values of one random integer, at most."""


class TorchDraws:
    """Kernels in place of those of torch; each has its arguments.

    Parameters
    ----------
    book : of the random numbers.
    """

    def __init__(self, book: NoiseBook) -> None:
        self.book = book

    def kernels(self) -> dict[str, Callable[..., Any]]:
        """For each operator its kernel; only of those that this torch has."""
        found: dict[str, Callable[..., Any]] = {
            "rand": self.rand,
            "rand.generator": self.rand,
            "rand_like": self.rand_like,
            "rand_like.generator": self.rand_like_generator,
            "uniform_": self.uniform_,
            "exponential_": self.exponential_,
            "bernoulli_.Tensor": self.bernoulli_tensor_,
            "bernoulli_.float": self.bernoulli_float_,
            "bernoulli": self.bernoulli,
            "multinomial": self.multinomial,
            "random_": self.random_,
            "random_.to": self.random_to_,
            "random_.from": self.random_from_,
            "randperm": self.randperm,
            "randperm.generator": self.randperm,
        }
        for name in REFUSED.split():
            for overload in getattr(aten, name).overloads() if hasattr(aten, name) else ():
                found[name if overload == "default" else f"{name}.{overload}"] = self.refusal(name)
        return {name: self._in_stream(name, kernel) for name, kernel in found.items() if exists(name)}

    def _in_stream(self, name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """The kernel, which gives the same numbers again for the same state of the generator."""
        operator = name.partition(".")[0]

        def in_stream(*args: Any, **options: Any) -> Any:
            if name in UNDECIDED and is_of_cpp(args) and not is_transformed():
                refuse(self.book, WRITING, READ_IN_CPP)
            return draw(self.book, operator, kernel, args, options)

        return in_stream

    def rand(self, size: Sequence[int], **options: Any) -> torch.Tensor:
        dtype = options.get("dtype") or torch.get_default_dtype()
        return self._lazy("torch.rand", size, dtype, options.get("device"))

    def rand_like(self, like: torch.Tensor, **options: Any) -> torch.Tensor:
        dtype, device = options.get("dtype") or like.dtype, options.get("device") or like.device
        return self._lazy("torch.rand_like", like.shape, dtype, device)

    def rand_like_generator(
        self, like: torch.Tensor, generator: object = None, **options: Any
    ) -> torch.Tensor:
        return self.rand_like(like, **options)

    def uniform_(self, target: torch.Tensor, low: float = 0, high: float = 1, **options: Any) -> torch.Tensor:
        self._check_dtype("torch.Tensor.uniform_", target.dtype)
        check_ends(low, high, target.dtype)
        return self._write("torch.Tensor.uniform_", target, UNIFORM, high - low, low)

    def exponential_(self, target: torch.Tensor, rate: float = 1, **options: Any) -> torch.Tensor:
        self._check_dtype("torch.Tensor.exponential_", target.dtype)
        check_rate(rate)
        return self._write("torch.Tensor.exponential_", target, EXPONENTIAL, 1 / rate)

    def bernoulli(self, weights: torch.Tensor, **options: Any) -> torch.Tensor:
        return self.bernoulli_tensor_(torch.empty_like(weights), weights)

    def bernoulli_tensor_(self, target: torch.Tensor, weights: torch.Tensor, **options: Any) -> torch.Tensor:
        if isinstance(weights, LazyTensor):
            refuse(self.book, "torch.bernoulli", "with random probabilities has no exact probability here")
        check_bernoulli(self.book, target.dtype, weights.dtype)
        shares = torch.broadcast_to(weights, target.shape)
        check_shares(shares)
        return self._decided("torch.bernoulli", target, [[1 - one, one] for one in _numbers(shares)])

    def bernoulli_float_(self, target: torch.Tensor, weight: float = 0.5, **options: Any) -> torch.Tensor:
        check_share(weight)
        check_bernoulli(self.book, target.dtype)
        return self._decided("torch.bernoulli", target, [[1 - weight, weight]] * target.numel())

    def multinomial(
        self, weights: torch.Tensor, count: int, replacement: bool = False, **options: Any
    ) -> torch.Tensor:
        name = "torch.multinomial"
        table = check_weights(weights, count, replacement)
        batched = weights.dim() > 1
        rows = self._rows(name, weights.shape[:-1]) if batched else [0]
        found = [
            self._draws_of(name, row_weights, count, replacement, row)
            for row_weights, row in zip(table, rows, strict=True)
        ]
        made = torch.tensor(found if batched else found[0], dtype=torch.int64, device=weights.device)
        return made if found else made.reshape(0, count)

    def random_(self, target: torch.Tensor, **options: Any) -> torch.Tensor:
        if target.dtype is torch.bool:
            return self.random_from_(target, 0, 2)
        return self.random_from_(target, 0, largest_integer(target.dtype) + 1)

    def random_to_(self, target: torch.Tensor, high: int, **options: Any) -> torch.Tensor:
        return self.random_from_(target, 0, high)

    def random_from_(self, target: torch.Tensor, low: int, high: int | None, **options: Any) -> torch.Tensor:
        if high is None or high - low > MOST_VALUES:
            size = "all integers" if high is None else f"{high - low} values"
            refuse(self.book, "torch.randint", f"among {size} is too many to enumerate")
        check_range(low, high)
        check_integers(self.book, "torch.randint", target.dtype, low, high - 1)
        share = 1 / (high - low)
        return self._decided("torch.randint", target, [[share] * (high - low)] * target.numel(), low)

    def randperm(self, size: int, **options: Any) -> torch.Tensor:
        name, dtype = "torch.randperm", options.get("dtype") or torch.int64
        check_size([size])
        check_integers(self.book, name, dtype, 0, max(size - 1, 2))  # none of bool
        found = self._draws_of(name, [1.0] * size, size, False, self._rows(name, ())[0])
        return torch.tensor(found, dtype=dtype, device=options.get("device"))

    def _draws_of(
        self, name: str, weights: list[float], count: int, replacement: bool, row: int
    ) -> list[int]:
        """Several draws; without replacement each from what the others have left."""
        found: list[int] = []
        if not replacement and count > sum(weight > 0 for weight in weights):
            refuse(self.book, name, f"draws {count} values without replacement, and fewer can be drawn")
        for _ in range(count):
            found.append(decide(self.book.tape, weights, name, row))
            if not replacement:
                weights[found[-1]] = 0.0
        return found

    def _rows(self, name: str, shape: Sequence[int]) -> list[int]:
        """For each element of a shape the row of the batch that it belongs to."""
        if is_transformed():
            refuse(self.book, name, "inside torch.vmap or another function transform isn't followed")
        rows, size = self.book.tape.rows, prod(shape)
        if rows == 1:
            return [0] * size
        places = [place for place, length in enumerate(shape) if length == rows]
        if len(places) != 1:
            refuse(
                self.book, name, f"draws a shape {tuple(shape)} without one dimension that is the {rows} rows"
            )
        ranks = np.arange(rows).reshape([rows if place in places else 1 for place in range(len(shape))])
        return np.broadcast_to(ranks, tuple(shape)).ravel().tolist()

    def _lazy(self, name: str, size: Sequence[int], dtype: torch.dtype, device: Any) -> torch.Tensor:
        self._check_dtype(name, dtype)
        check_size(size)
        handles = self.book.fresh(self._rows(name, size)).reshape(tuple(size))
        return LazyTensor.of(self.book, torch.from_numpy(handles).to(device), dtype)

    def _write(
        self, name: str, target: torch.Tensor, kind: int, scale: float, shift: float = 0.0
    ) -> torch.Tensor:
        rows = self._rows(name, target.shape)
        if scale == 0:
            return write(self.book, target, Forms.constants(np.full(tuple(target.shape), shift)))
        handles = self.book.fresh(rows, kind, scale, shift)
        return write(self.book, target, self.book.read(handles.reshape(tuple(target.shape))))

    def _check_dtype(self, name: str, dtype: torch.dtype) -> None:
        if dtype not in PRECISE:
            refuse(self.book, name, f"in {dtype} is too coarse for a real number; draw in torch.float32")

    def _decided(
        self, name: str, target: torch.Tensor, weights: list[list[float]], first: int = 0
    ) -> torch.Tensor:
        rows = self._rows(name, target.shape)
        tape = self.book.tape
        found = [first + decide(tape, one, name, row) for one, row in zip(weights, rows, strict=True)]
        values = np.array(found, np.float64).reshape(tuple(target.shape))
        if isinstance(target, LazyTensor):
            return write(self.book, target, Forms.constants(values))
        return target.copy_(torch.from_numpy(values))

    def refusal(self, name: str) -> Callable[..., Any]:
        """A kernel that stops the run."""

        def kernel(*args: Any, **options: Any) -> Any:
            return refuse(self.book, f"torch.{name}", "draws numbers of which no use can be decided here")

        return kernel


def _on_lazy(method: Callable[..., Any]) -> Any:
    """What a draw into a tensor does that is lazy already."""
    name = method.__name__.removesuffix("tensor_").removesuffix("float_")
    return lambda book, function, args, kwargs: draw(
        book, name, partial(method, TorchDraws(book)), args, kwargs
    )


operators[aten.uniform_.default] = _on_lazy(TorchDraws.uniform_)
operators[aten.exponential_.default] = _on_lazy(TorchDraws.exponential_)
operators[aten.bernoulli_.Tensor] = _on_lazy(TorchDraws.bernoulli_tensor_)
operators[aten.bernoulli_.float] = _on_lazy(TorchDraws.bernoulli_float_)


def _numbers(tensor: torch.Tensor) -> list[float]:
    return tensor.detach().double().reshape(-1).tolist()
