"""Tensors of random numbers that aren't decided yet.

A `LazyTensor` has the shape, dtype and device of the tensor it stands for, and no data: where its numbers
would be it has handles into a `NoiseBook`. Operators on it come to `operators`, and nothing else can read it:
whatever isn't known there is refused by name.

Programs also write noise into tensors that they have (``torch.empty(n).exponential_()``). Such a tensor, and
every other one that shares its memory, becomes a `LazyInPlace`, which passes all that is done with it to a
lazy tensor.
"""

import gc
import sys
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NoReturn

import torch

from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.forms import Forms
from tokenlaw.stats.enumeration.lazy_arrays import images
from tokenlaw.stats.enumeration.noise_book import NoiseBook
from tokenlaw.stats.enumeration.torch_operands import call

Handler = Callable[[NoiseBook, Any, tuple[Any, ...], dict[str, Any]], Any]

operators: dict[Any, Handler] = {}
"""What each known operator does with lazy tensors."""

functions: dict[Any, Callable[..., Any]] = {}
"""What functions give that take numbers out of a lazy tensor."""

READERS = (
    *("data_ptr", "storage", "untyped_storage", "__dlpack__", "__deepcopy__"),
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
    handler = operators.get(function)
    if handler is None:
        # In inference mode operators come here that are made of others.
        found = function.decompose(*args, **(kwargs or {}))
        if found is not NotImplemented:
            return found
        refuse(book, name_of(function), "of random numbers has no exact probability here")
    return handler(book, function, _passed_on(args), kwargs or {})


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
        args, options = _passed_on(args), {key: _passed_on(part) for key, part in (kwargs or {}).items()}
        known = functions.get(function)
        if known is not None:
            return known(*args, **options)
        if any(True for _ in images([*args, *options.values()])):
            return call(function, args, options)
        name = getattr(function, "__name__", str(function))
        if name in READERS:
            lazy = next(part for part in args if isinstance(part, LazyTensor))
            refuse(lazy.book, f"torch.Tensor.{name}", "needs the value of a random number that isn't decided")
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
        found = function(*_passed_on(args), **{key: _passed_on(part) for key, part in (kwargs or {}).items()})
        return args[0] if args and type(args[0]) is LazyInPlace and found is lazy_of(args[0]) else found


def lazy_of(tensor: torch.Tensor) -> LazyTensor:
    """The lazy tensor that a `LazyInPlace` passes everything on to."""
    lazy: LazyTensor = tensor.__dict__["lazy"]
    return lazy


def _passed_on(value: Any) -> Any:
    """An argument, or arguments, with lazy tensors in place of those that became lazy."""
    if type(value) is LazyInPlace:
        return lazy_of(value)
    if type(value) in (tuple, list):
        return type(value)(_passed_on(part) for part in value)
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


def take_over(book: NoiseBook, tensor: torch.Tensor) -> LazyTensor:
    """Make an ordinary tensor lazy, and all that share its memory; its numbers become constants.

    Raises
    ------
    UndecidableError
        Not all of them can be found.
    """
    aliases = _aliases(book, tensor)
    memory = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())
    values = memory.to("cpu", torch.float64, copy=True).numpy()
    handles = torch.from_numpy(book.write(Forms.constants(values))).to(tensor.device)
    # Whatever reads the memory in spite of all gets no plausible numbers.
    memory.fill_(torch.nan if memory.is_floating_point() else torch.iinfo(memory.dtype).min)
    for alias in aliases:
        own = handles.as_strided(alias.shape, alias.stride(), alias.storage_offset())
        alias.__dict__.update(own_class=type(alias), lazy=LazyTensor.of(book, own, alias.dtype))
        alias.__class__ = LazyInPlace
        book.taken_over.append(weakref.ref(alias))
    return lazy_of(tensor)


def give_back(taken_over: "Sequence[weakref.ref[Any]]") -> None:
    """Make tensors ordinary again; their numbers are lost."""
    for reference in taken_over:
        tensor = reference()
        if tensor is not None and type(tensor) is LazyInPlace:
            own_class = tensor.__dict__["own_class"]
            tensor.__dict__.clear()
            tensor.__class__ = own_class


def _aliases(book: NoiseBook, tensor: torch.Tensor) -> list[torch.Tensor]:
    """All tensors that share the memory of one."""
    storage = tensor.untyped_storage()
    if not storage.resizable():
        refuse(
            book,
            "writing random numbers into a tensor",
            "whose memory is shared with numpy, or another library",
        )
    count = torch._C._storage_Use_Count(storage._cdata) - 1
    found = [tensor]
    if count > 1 and tensor._base is not None:
        found.append(tensor._base)
    if count > len(found):
        found = [one for one in _local_tensors() if _shares(one, storage)]
    if count > len(found):
        found = [
            one for one in gc.get_objects() if torch.Tensor in type(one).__mro__ and _shares(one, storage)
        ]
    if len(found) != count:
        refuse(
            book, "writing random numbers into a tensor", "whose memory is shared with others out of reach"
        )
    if any(alias.dtype != tensor.dtype for alias in found):
        refuse(book, "writing random numbers into a tensor", "whose memory is shared with another dtype")
    return found


def _local_tensors() -> list[torch.Tensor]:
    """Tensors in the local variables of whoever is running; far quicker than all objects."""
    found: dict[int, torch.Tensor] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        found |= {id(one): one for one in frame.f_locals.values() if torch.Tensor in type(one).__mro__}
        frame = frame.f_back
    return list(found.values())


def _shares(tensor: torch.Tensor, storage: torch.UntypedStorage) -> bool:
    if isinstance(tensor, LazyTensor | LazyInPlace) or tensor.layout != torch.strided or tensor.is_meta:
        return False
    return bool(tensor.untyped_storage()._cdata == storage._cdata)


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
