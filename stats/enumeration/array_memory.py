"""Memory of lazy arrays, which has no floats to read, and that of arrays given as ``out``."""

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tokenlaw.stats.enumeration.images import Image

Refusal = Callable[[str], NoReturn]
"""Stops the run; its argument says why."""


class WithoutMemory(np.ndarray[Any, Any]):
    """An array whose memory can't be read, or written, past its elements."""


def _refuse_memory(array: Any, name: str) -> NoReturn:
    for value in array.view(np.ndarray).flat:
        if isinstance(value, Image):
            value.refuse(name, "of an array reads or writes the values of random numbers that aren't decided")
    raise TypeError(f"{name} of an array of objects")


def _attribute(name: str) -> property:
    def read(array: Any) -> NoReturn:
        _refuse_memory(array, f"`.{name}`")

    return property(read)


for _name in (
    *("data", "ctypes", "__array_interface__", "__array_struct__", "tofile", "tobytes", "dump", "dumps"),
    *("byteswap", "getfield", "setfield", "__dlpack__", "__bytes__"),
    "__buffer__",  # of Python 3.12 and later; before, what reads a buffer can't be asked
):
    setattr(WithoutMemory, _name, _attribute(_name))


def write_out(out: Any, found: Any, refuse: Refusal) -> Any:
    """Write a result into the array that a function was given for it, and give that back.

    Raises
    ------
    UndecidableError
        It doesn't fit there, or would be rounded.
    """
    if not isinstance(out, np.ndarray) or out.shape != np.shape(found):
        refuse("with an `out` of another shape isn't known here")
    memory, values = out.view(np.ndarray), found.view(np.ndarray) if isinstance(found, np.ndarray) else found
    if memory.dtype != object:
        given = getattr(values, "dtype", np.dtype(object))
        if given.kind != memory.dtype.kind:
            refuse(f"with an `out` of {memory.dtype} writes random numbers, or rounds them")
    memory[...] = values
    return out
