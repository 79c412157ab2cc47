"""Tensors of random numbers that aren't decided yet.

A `LazyTensor` has the shape, dtype and device of the tensor it stands for, and no data: where its numbers
would be it has handles into a `NoiseBook`. Operators on it come to `operators`, and nothing else can read it:
whatever isn't known there is refused by name.

Programs also write noise into tensors that they have (``torch.empty(n).exponential_()``). Such a tensor, and
every other one that shares its memory, becomes a `LazyInPlace`, which passes all that is done with it to a
lazy tensor.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NoReturn

import torch

from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.lazy_arrays import images
from tokenlaw.stats.enumeration.noise_book import NoiseBook
from tokenlaw.stats.enumeration.torch_operands import call

Handler = Callable[[NoiseBook, Any, tuple[Any, ...], dict[str, Any]], Any]

operators: dict[Any, Handler] = {}
"""What each known operator does with lazy tensors."""

OUT = "out"
"""Under this `operators` has what is done with those that write into tensors given as ``out``."""

functions: dict[Any, Callable[..., Any]] = {}
"""What functions give that take numbers out of a lazy tensor."""

shortcuts: dict[Any, Callable[[Any, Any], torch.Tensor | None]] = {}
"""For functions of two operands what decides most of their calls; gives None where it doesn't."""

READERS = (
    *("data_ptr", "storage", "untyped_storage", "__dlpack__", "__deepcopy__", "as_subclass"),
    *(
        "__repr__",
        "__format__",
        "__set__",
        "__reduce_ex__",
        "__float__",
        "__int__",
        "__complex__",
        "__index__",
        "to_dlpack",
    ),
)
"""Functions that would read a lazy tensor past its operators."""


@as_the_real_one
def _dispatched(cls: type, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """An operator on a lazy tensor."""
    book = _find(args, kwargs).book
    handler = operators.get(function) or (operators[OUT] if outs_of(function) else None)
    if handler is None:
        # In inference mode operators come here that are made of others.
        found = function.decompose(*args, **(kwargs or {}))
        if found is not NotImplemented:
            return found
        refuse(book, name_of(function), "of random numbers has no exact probability here")
    return handler(
        book, function, passed_on(args), {key: passed_on(part) for key, part in (kwargs or {}).items()}
    )


@cache
def outs_of(function: Any) -> tuple[str, ...]:
    """Names of the arguments of an operator into which it writes its results.

    >>> outs_of(torch.ops.aten.topk.values)
    ('values', 'indices')
    """
    return tuple(argument.name for argument in function._schema.arguments if argument.is_out)


class LazyTensor(torch.Tensor):
    """Undecided random numbers.

    Attributes
    ----------
    handles : int64, of the same shape; views share them as they would share memory.
    book : what they stand for.
    run : of the tape, when they were drawn.
    """

    handles: torch.Tensor
    book: NoiseBook
    run: int

    @staticmethod
    def of(book: NoiseBook, handles: torch.Tensor, dtype: torch.dtype) -> "LazyTensor":
        """A tensor of numbers that are in the book."""
        made = torch.Tensor._make_wrapper_subclass(
            LazyTensor, handles.shape, strides=handles.stride(), dtype=dtype, device=handles.device
        )
        made.handles, made.book, made.run = handles, book, book.tape.run
        return made

    @classmethod
    @as_the_real_one
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        args, options = passed_on(args), {key: passed_on(part) for key, part in (kwargs or {}).items()}
        if function in shortcuts and len(args) == 2 and not options:
            found = shortcuts[function](*args)
            if found is not None:
                return found
        known = functions.get(function)
        if known is not None:
            return known(*args, **options)
        if any(True for _ in images([*args, *options.values()])):
            return call(function, args, options)
        name = getattr(function, "__name__", str(function))
        if name in READERS:
            lazy = next(part for part in args if isinstance(part, LazyTensor))
            advice = "; use .item()" if name == "__float__" else ""
            refuse(
                lazy.book,
                f"torch.Tensor.{name}",
                f"needs the value of a random number that isn't decided{advice}",
            )
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **options)

    # torch declares it as a method of instances, which a class method may not override.
    __torch_dispatch__: Any = classmethod(_dispatched)


class LazyInPlace(torch.Tensor):
    """A tensor that the program already had when random numbers were written into it.

    Attributes
    ----------
    lazy : has the numbers.
    own_class : to be restored in the end.
    """

    lazy: LazyTensor
    own_class: type

    @classmethod
    @as_the_real_one
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        found = function(*passed_on(args), **{key: passed_on(part) for key, part in (kwargs or {}).items()})
        return args[0] if args and type(args[0]) is LazyInPlace and found is lazy_of(args[0]) else found


def lazy_of(tensor: torch.Tensor) -> LazyTensor:
    """The lazy tensor that a `LazyInPlace` passes everything on to."""
    lazy: LazyTensor = tensor.__dict__["lazy"]
    return lazy


def is_of(tensor: Any, kind: Any) -> bool:
    """Whether a tensor that became lazy was of a class; torch asks when that class is the program's own."""
    return type(tensor) is LazyInPlace and tensor.__dict__["own_class"] is kind


def passed_on(value: Any) -> Any:
    """An argument, or arguments, with lazy tensors in place of those that became lazy."""
    if type(value) is LazyInPlace:
        return lazy_of(value)
    if type(value) in (tuple, list):
        return type(value)(passed_on(part) for part in value)
    return value


def refuse(book: NoiseBook, operation: str, why: str) -> NoReturn:
    """Stop the run; see `Tape.undecidable`."""
    book.tape.undecidable(operation, why)


def name_of(function: Any) -> str:
    """How people write an operator.

    >>> name_of(torch.ops.aten.cumsum.default)
    'torch.cumsum'
    """
    return "torch." + str(function).removeprefix("aten.").partition(".")[0]


def handles_of(lazy: LazyTensor) -> torch.Tensor:
    """The handles of a lazy tensor, which must be of this run."""
    lazy.book.tape.check_run(lazy.run)
    return lazy.handles


def _find(args: Sequence[Any], kwargs: dict[str, Any] | None) -> LazyTensor:
    """A lazy tensor among the arguments of an operator."""
    for part in [*args, *(kwargs or {}).values()]:
        if isinstance(part, LazyTensor):
            return part
        if type(part) in (tuple, list):
            for inner in part:
                if isinstance(inner, LazyTensor):
                    return inner
    raise AssertionError("an operator without lazy tensors came here")
