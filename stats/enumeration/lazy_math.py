"""The functions of ``math`` for lazy numbers, as long as a law is enumerated.

Otherwise they read a float in C.
"""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.lazy_numbers import LazyNumber
from tokenlaw.stats.enumeration.replacing import Replacements
from tokenlaw.stats.enumeration.tape import Tape

LOG_2, LOG_10 = math.log(2), math.log(10)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": lambda number: number.exp(),
    "exp2": lambda number: 2**number,
    "expm1": lambda number: number.exp() - 1,
    "log": lambda number, *base: number.log() / math.log(*base) if base else number.log(),
    "log2": lambda number: number.log() / LOG_2,
    "log10": lambda number: number.log() / LOG_10,
    "log1p": lambda number: (1 + number).log(),
    "sqrt": lambda number: number.power(0.5),
    "pow": lambda number, exponent: number**exponent,
    "fabs": abs,
    "isnan": lambda number: False,
    "isinf": lambda number: False,
    "isfinite": lambda number: True,
}
"""What each function is for a lazy number."""


class LazyMath:
    """Replaces functions of ``math`` while it is entered.

    Parameters
    ----------
    tape : whose program may hold them by other names.
    """

    def __init__(self, tape: Tape) -> None:
        self._program = tape.program
        self._replaced = Replacements()

    def __enter__(self) -> None:
        functions: dict[int, Any] = {}
        for name, function in FUNCTIONS.items():
            real = getattr(math, name)
            functions[id(real)] = _either(real, function)
            self._replaced.attribute(math, name, functions[id(real)])
        self._replaced.references(self._program, lambda value: functions.get(id(value), value))

    def __exit__(self, *exception: object) -> None:
        self._replaced.close()


def _either(real: Callable[..., Any], lazy: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(real)
    @as_the_real_one
    def function(number: Any, *arguments: Any) -> Any:
        return (lazy if isinstance(number, LazyNumber) else real)(number, *arguments)

    return function
