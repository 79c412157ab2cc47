"""Functions that read the memory of tensors past their Python class, where random numbers aren't seen.

They are refused such tensors while a law is enumerated; scripted ones may not write random numbers either.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.lazy_arrays import LazyArray
from tokenlaw.stats.enumeration.lazy_memory import is_held_elsewhere
from tokenlaw.stats.enumeration.lazy_tensors import LazyInPlace, LazyTensor, is_of, passed_on, refuse
from tokenlaw.stats.enumeration.noise_book import NoiseBook
from tokenlaw.stats.enumeration.replacing import Replacements

SCRIPTED = (torch._C.ScriptFunction, torch._C.ScriptMethod)
"""Classes of functions that TorchScript runs."""
READING = (
    *((torch.Tensor, name) for name in ("__new__", "_make_subclass", "as_subclass", "set_")),
    *((torch, name) for name in ("to_dlpack", "frombuffer", "sparse_coo_tensor", "sparse_csr_tensor")),
    (torch.utils.dlpack, "to_dlpack"),
    (torch._C, "_to_dlpack"),
    (torch.utils, "swap_tensors"),
    (torch.autograd.Variable, "__new__"),
)
"""Functions that make something of a tensor's memory itself."""
LEGACY_TYPE = type(torch.FloatTensor)
STATIC = ("__new__", "_make_subclass")
NAMES = {
    (torch.Tensor, "__new__"): "torch.Tensor()",
    (torch.autograd.Variable, "__new__"): "torch.autograd.Variable()",
    (torch.Tensor, "as_subclass"): "torch.Tensor.as_subclass",
    (torch.Tensor, "set_"): "torch.Tensor.set_",
}
"""What people call some of them."""


def replace_readers(replaced: Replacements, book: NoiseBook) -> dict[int, Any]:
    """Replace all of them.

    Returns
    -------
    By the identity of a function what has replaced it.
    """
    for kind in SCRIPTED:
        replaced.attribute(kind, "__call__", _guarded(book, kind.__call__))
    replaced.attribute(torch.Tensor, "data", _data_of(torch.Tensor.data, book))
    new: dict[int, Any] = {}
    for owner, name in READING:
        real = getattr(owner, name)
        new[id(real)] = _refused(book, owner, name, real)
        replaced.attribute(owner, name, staticmethod(new[id(real)]) if name in STATIC else new[id(real)])
    return new | _replace_legacy_types(replaced, book)


def _replace_legacy_types(replaced: Replacements, book: NoiseBook) -> dict[int, Any]:
    new: dict[int, Any] = {}
    for module in (torch, torch.cuda):
        for name, real in list(vars(module).items()):
            if type(real) is LEGACY_TYPE:
                new[id(real)] = _LegacyType(book, f"{module.__name__}.{name}()", real)
                replaced.attribute(module, name, new[id(real)])
    replaced.attribute(torch.Tensor, "type", _type_of(torch.Tensor.type))
    return new


class _LegacyType:
    """Stands for ``torch.FloatTensor`` and its like, which share the memory of a tensor that they get."""

    def __init__(self, book: NoiseBook, called: str, real: Any) -> None:
        self.real, self._book, self._called = real, book, called

    @as_the_real_one
    def __call__(self, *args: Any, **options: Any) -> Any:
        if _has_lazy([args, options], LazyInPlace):
            refuse(self._book, self._called, "reads memory in which random numbers aren't decided")
        return self.real(*args, **options)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self.real)

    def __getattr__(self, name: str) -> Any:
        # A copy is asked before it has one.
        return getattr(object.__getattribute__(self, "real"), name)


def _type_of(real: Callable[..., Any]) -> Callable[..., Any]:
    """``torch.Tensor.type``, which is given such types as well."""

    @wraps(real)
    @as_the_real_one
    def function(*args: Any, **options: Any) -> Any:
        return real(*map(_real, args), **{key: _real(one) for key, one in options.items()})

    return function


def _real(value: Any) -> Any:
    return value.real if type(value) is _LegacyType else value


def passing_on(book: NoiseBook, make: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is given lazy tensors in place of those that became lazy, if there are any."""

    @wraps(make)
    @as_the_real_one
    def function(*args: Any, **options: Any) -> Any:
        if not book.taken_over:
            return make(*args, **options)
        return make(*passed_on(args), **{key: passed_on(value) for key, value in options.items()})

    return function


def _refused(book: NoiseBook, owner: Any, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    kinds = (LazyInPlace, LazyTensor, *([LazyArray] if name == "frombuffer" else []))
    called = NAMES.get((owner, name), f"torch.{name}")

    @wraps(real)
    @as_the_real_one
    def function(*args: Any, **options: Any) -> Any:
        if _has_lazy([args, options], *kinds):
            if name == "as_subclass" and is_of(args[0], args[-1]):
                return args[0]
            refuse(book, called, "reads memory in which random numbers aren't decided")
        return real(*args, **options)

    return function


def _guarded(book: NoiseBook, call: Callable[..., Any]) -> Callable[..., Any]:
    """A call of a scripted function, which reads the memory of tensors past their Python class."""

    @as_the_real_one
    def scripted(function: Any, *args: Any, **options: Any) -> Any:
        if _has_lazy([args, options], LazyInPlace) or is_held_elsewhere(book.taken_over):
            refuse(book, "a scripted function", "reads random numbers that aren't decided")
        book.scripted += 1
        try:
            return call(function, *args, **options)
        finally:
            book.scripted -= 1

    return scripted


def _has_lazy(value: Any, *kinds: type) -> bool:
    if isinstance(value, list | tuple):
        return any(_has_lazy(part, *kinds) for part in value)
    if isinstance(value, dict):
        return _has_lazy(list(value.values()), *kinds)
    return type(value) in kinds


def _data_of(real: Any, book: NoiseBook) -> property:
    """``torch.Tensor.data``, which can't be set to random numbers: torch would look for their memory."""

    @as_the_real_one
    def read(tensor: torch.Tensor) -> Any:
        return real.__get__(tensor)

    @as_the_real_one
    def write(tensor: torch.Tensor, value: Any) -> None:
        if isinstance(value, LazyTensor) or type(value) is LazyInPlace:
            refuse(
                book, "setting torch.Tensor.data", "to random numbers that aren't decided; use copy_ instead"
            )
        real.__set__(tensor, value)

    return property(read, write)
