"""Numbers that follow from a uniform which isn't decided yet, as a program sees them.

A lazy number stands for a float. It is none (whatever reads a float in C would silently read a wrong
value), but it is compared, shifted, scaled and mapped like one; where it is rounded to an integer, the
integer is decided. Everything else is refused by name, with the program's line: never is a law silently
wrong.

A number with a continuous law equals a constant with probability zero, so ``==`` with a constant is
false.
"""

import sys
from fractions import Fraction
from math import isnan
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from tokenlaw.stats.enumeration import monotone
from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.images import Image, operand
from tokenlaw.stats.enumeration.meetings import Meeting
from tokenlaw.stats.enumeration.states import current

KEEPS_THE_TYPE = ("fractions", "json", "tokenlaw.stats.enumeration")
"""Modules that convert what pretends to be a float (but ``Fraction(u)`` shall see one, and be refused)."""


class LazyNumber(Meeting):
    """A strictly monotone function of a uniform, in place of a float.

    Examples
    --------
    >>> import math, random
    >>> from tokenlaw.stats.enumeration.exact_law import exact_law
    >>> def program():
    ...     u = random.random()
    ...     return u < 0.5, -math.log(u) < 1, int(4 * u)
    >>> exact_law(program).probabilities[True, True, 1]
    0.13212055882855767
    """

    __slots__ = ()
    stands_for: ClassVar[type] = float
    """What ``isinstance`` takes it for, so that programs which ask go on as usual."""

    if not TYPE_CHECKING:  # type checkers know no class that is a property

        @property
        def __class__(self) -> type:
            """What ``isinstance`` takes it for."""
            asking = sys._getframe(1)
            keeps = asking.f_globals.get("__name__", "").startswith(KEEPS_THE_TYPE)
            return type(self) if keeps and asking.f_code.co_name != "__new__" else self.stands_for

    def __lt__(self, other: Any) -> Any:
        kind = type(other)
        if not self.steps and (kind is Fraction or (kind is float and not isnan(other))):
            return self.uniform.below(other)
        return self._order("less", other, below=True)

    def __le__(self, other: Any) -> Any:
        return self._order("less_equal", other, below=True, equal=True)

    def __gt__(self, other: Any) -> Any:
        return self._order("greater", other, below=False)

    def __ge__(self, other: Any) -> Any:
        return self._order("greater_equal", other, below=False, equal=True)

    def _order(self, name: str, other: Any, *, below: bool, equal: bool = False) -> Any:
        """Compare; ``equal`` is the answer to a comparison with itself."""
        value = operand(other)
        if value is None:
            return self._array(name, other)
        if isinstance(value, Image):
            return self._with(other, equal if self.same(value) else self.smaller_than(value) == below)
        is_nan = isinstance(value, float) and isnan(value)
        return self._with(other, not is_nan and self.below(value) == below)

    def __eq__(self, other: object) -> Any:
        return self._equal("equal", other)

    def __ne__(self, other: object) -> Any:
        return self._equal("not_equal", other)

    def _equal(self, name: str, other: object) -> Any:
        value = operand(other)
        if value is None:
            return self._array(name, other)
        same = isinstance(value, Image) and self.same(value)
        return self._with(other, same == (name == "equal"))

    def __add__(self, other: Any) -> Any:
        value = operand(other)
        if value is None:
            return self._array("add", other)
        return self._with(other, self.plus(value) if isinstance(value, Image) else self.affine(1, value))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._array("subtract", other) if operand(other) is None else self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return self._array("subtract", other, swapped=True) if operand(other) is None else -self + other

    def __mul__(self, other: Any) -> Any:
        value = operand(other)
        if value is None:
            return self._array("multiply", other)
        if not isinstance(value, Image):
            return self._with(other, self.affine(value, 0))
        return self.power(2) if self.same(value) else self.refuse("a product of two random numbers")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        value = operand(other)
        if value is None:
            return self._array("divide", other)
        if isinstance(value, Image):
            if not self.same(value):
                self.refuse("a quotient of two random numbers")
            return self._with(other, 1.0)
        if value == 0 and isinstance(other, np.generic):
            return np.divide(self, other)
        return self._with(other, self.affine(monotone.ratio(1, value), 0))

    def __rtruediv__(self, other: Any) -> Any:
        return (
            self._array("divide", other, swapped=True) if operand(other) is None else self.power(-1) * other
        )

    def __neg__(self) -> Any:
        return self.affine(-1, 0)

    def __pos__(self) -> "LazyNumber":
        return self

    def __abs__(self) -> Any:
        return self if self.is_positive() else -self

    def __pow__(self, other: Any) -> Any:
        value = operand(other)
        if value is None:
            return self._array("power", other)
        return (
            self.refuse("a random power")
            if isinstance(value, Image)
            else self._with(other, self.power(value))
        )

    def __rpow__(self, other: Any) -> Any:
        value = operand(other)
        if value is None:
            return self._array("power", other, swapped=True)
        if isinstance(value, Image) or value <= 0:
            self.refuse("a random power of a number not above zero")
        exponent = self * monotone.logarithm(value)
        return self._with(other, exponent.exp() if isinstance(exponent, Image) else 1.0)

    def __floordiv__(self, other: Any) -> Any:
        quotient = self / other
        return self._with(other, float(quotient.floor())) if isinstance(quotient, Image) else quotient // 1

    def __mod__(self, other: Any) -> Any:
        return self - (self // other) * other

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __floor__(self) -> int:
        return self.floor()

    def __ceil__(self) -> int:
        return int(-(-self).floor())

    def __int__(self) -> int:
        return self.floor() if self.is_positive() else -(-self).floor()

    __trunc__ = __int__

    def __round__(self, digits: int | None = None) -> int:
        if digits is not None:
            self.refuse("round() to digits")
        return int((self + monotone.ratio(1, 2)).floor())

    def __copy__(self) -> "LazyNumber":
        return self

    def __deepcopy__(self, memory: object) -> "LazyNumber":
        return self

    # What can't be answered.

    def __float__(self) -> float:
        why = "needs the value of a random number; leave it out"
        self.refuse("float(), or a function that reads a float,", why)

    def __bool__(self) -> bool:
        return bool(self.refuse("the truth of a random number"))

    def __complex__(self) -> complex:
        self.refuse("complex()")

    def __hash__(self) -> int:
        return int(self.refuse("hash(), or returning a random number,"))

    def __format__(self, how: str) -> str:
        self.refuse("printing a random number", "needs its value")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self.refuse("pickling a random number", "needs its value")

    def __repr__(self) -> str:
        if current.get() is self.uniform.tape:
            self.refuse("printing a random number", "needs its value")
        return f"<{monotone.words(self.steps, 'u')}, undecided>"

    @as_the_real_one
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"a random number has no {name}")
        self.refuse(f"`.{name}` of a random number, or returning it,")
