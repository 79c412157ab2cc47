"""Memory of ordinary tensors, when random numbers are written into it.

Nothing can be in such memory that would be right for whoever reads it. So all tensors of Python that share it
become lazy, and where somebody else may read it, such as code in C++, the run is refused.
"""

import gc
import sys
import warnings
import weakref
from collections.abc import Sequence
from functools import cache
from types import FrameType
from typing import Any

import torch
from torch import library

from tokenlaw.stats.enumeration.forms import Forms
from tokenlaw.stats.enumeration.lazy_tensors import LazyInPlace, LazyTensor, lazy_of, refuse
from tokenlaw.stats.enumeration.noise_book import NoiseBook

WRITING = "writing random numbers into a tensor"
READ_IN_CPP = (
    "inside a function in C++, such as a scripted or traced one, isn't seen by what this does with them: "
    "call the function of Python that was scripted"
)
_LIBRARY: Any = library.Library  # torch gives it no types
_TENSOR: Any = torch.Tensor  # nor its own methods


def take_over(book: NoiseBook, tensor: torch.Tensor) -> LazyTensor:
    """Make an ordinary tensor lazy, and all that share its memory; its numbers become constants.

    Raises
    ------
    UndecidableError
        Not all of them can be found.
    """
    if book.scripted:
        refuse(book, WRITING, READ_IN_CPP)
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


def is_held_elsewhere(taken_over: "Sequence[weakref.ref[Any]]") -> bool:
    """Whether something in C++, such as a scripted module, holds a tensor that was taken over."""
    with torch._C.DisableTorchFunctionSubclass():
        return any(
            type(tensor) is LazyInPlace and _TENSOR._use_count(tensor) > 1
            for tensor in (reference() for reference in taken_over)
        )


def is_of_cpp(args: tuple[Any, ...]) -> bool:
    """Whether the first argument of a kernel is a tensor that nothing in Python refers to.

    So it is where code in C++ has made it, and will read it. To be called by the kernel itself, which takes
    ``*args, **options``.
    """
    return bool(args) and sys.getrefcount(args[0]) <= _references_of_cpp()


@cache
def _references_of_cpp() -> int:
    """Python's references to a tensor of C++ in a kernel; -1 if it has as many as one of Python's."""
    found: list[int] = []

    def count(args: tuple[Any, ...]) -> int:
        return sys.getrefcount(args[0])

    def kernel(*args: Any, **options: Any) -> Any:
        found.append(count(args))
        return args[0]

    counting = _LIBRARY("aten", "IMPL")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # replacing a kernel is what torch warns of
            counting.impl("cauchy_", kernel, "CPU")
        torch.ops.aten.cauchy(torch.empty(1))
        torch.empty(1).cauchy_()
    finally:
        counting._destroy()
    return found[0] if found[0] < found[1] else -1


def prepare() -> None:
    """Count once what must be known of this torch, before its kernels are replaced."""
    _references_of_cpp()
    _references_of_storage()


@cache
def _references_of_storage() -> int:
    """References to a storage that nobody holds but a tensor, and one variable."""
    tensor = torch.empty(1)
    storage = tensor.untyped_storage()
    return sys.getrefcount(storage)


def _aliases(book: NoiseBook, tensor: torch.Tensor) -> list[torch.Tensor]:
    """All tensors that share the memory of one."""
    storage = tensor.untyped_storage()
    if not storage.resizable():
        refuse(book, WRITING, "whose memory is shared with numpy, or another library")
    if sys.getrefcount(storage) > _references_of_storage():
        gc.collect()  # frames of exceptions that are over may hold it
        if sys.getrefcount(storage) > _references_of_storage():
            refuse(book, WRITING, "whose storage the program holds")
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
        refuse(book, WRITING, "whose memory is shared with others out of reach")
    if any(alias.dtype != tensor.dtype for alias in found):
        refuse(book, WRITING, "whose memory is shared with another dtype")
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
