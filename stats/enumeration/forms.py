"""Arrays of random numbers, each a known monotone function of one uniform number.

Whatever programs do to noise before they decide something (scale it, shift it, take its logarithm, divide
probabilities by it), each element stays ``scale * x ** power + shift``, where x is a uniform number u
in (0, 1), an exponential one, -log u, or the logarithm of an exponential one; or the same of 1 - u.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Known = Floats | np.float64
Integers = NDArray[np.int64]

CONSTANT, UNIFORM, EXPONENTIAL, LOGARITHM = range(4)
"""What x is: nothing random, u, -log u, or log(-log u)."""

NEGLIGIBLE = 2.0**-33
"""Guards such as ``clamp(min=1e-10)`` and ``log(u + 1e-20)`` are left out if they change the law of a number
by less, in total variation: the numbers that programs draw have a coarser grid than that (2^-24)."""

leave_out: ContextVar[Callable[[Integers, Floats], None]] = ContextVar(
    "who counts the guards that are left out"
)
"""Is told the random numbers whose guards are left out, and how much of the law of each that changes."""


class NoFormError(ValueError):
    """The result has no such form; the message says why."""


@dataclass(frozen=True)
class Forms:
    """An array of numbers ``scale * x ** power + shift``, all fields of the array's shape.

    Attributes
    ----------
    variable : which random number x comes from; -1 for constants, which are ``shift``.
    kind : what x is: CONSTANT, UNIFORM, EXPONENTIAL or LOGARITHM (whose power is one).
    mirrored : whether x is made of 1 - u instead of u.
    power, scale, shift : finite for what isn't constant; scale and power are not zero.
    """

    variable: Integers
    kind: Integers
    mirrored: Integers
    power: Floats
    scale: Floats
    shift: Floats

    @classmethod
    def constants(cls, values: Known) -> "Forms":
        """Numbers that are known."""
        values = np.asarray(values, np.float64)
        ones, zeros = np.ones(values.shape), np.zeros(values.shape, np.int64)
        return cls(zeros - 1, zeros + CONSTANT, zeros, ones, ones, values)

    @property
    def random(self) -> NDArray[np.bool_]:
        """Which elements are not constant."""
        return np.asarray(self.kind != CONSTANT)

    def flat(self) -> "Forms":
        """As a vector, row by row."""
        return self if self.kind.ndim == 1 else self._map(lambda field: field.ravel())

    def __getitem__(self, index: object) -> "Forms":
        return self._map(lambda field: field[index])

    def broadcast(self, shape: tuple[int, ...]) -> "Forms":
        """Repeated to a larger shape."""
        return self if self.kind.shape == shape else self._map(lambda field: np.broadcast_to(field, shape))

    def where(self, condition: NDArray[np.bool_], other: "Forms") -> "Forms":
        """These numbers where the condition holds, others elsewhere; all of the same shape."""
        return Forms(*(np.where(condition, getattr(self, name), getattr(other, name)) for name in _FIELDS))

    def plus(self, values: Known) -> "Forms":
        """Known numbers added."""
        return replace(self, shift=self.shift + values)._with_constants()

    def times(self, values: Known) -> "Forms":
        """Multiplied by known numbers."""
        return replace(
            self,
            scale=np.where(self.random, self.scale * values, 1.0),
            shift=self._shift_by(np.multiply, values),
        )._with_constants()

    def divided(self, values: Known) -> "Forms":
        """Divided by known numbers."""
        return replace(
            self,
            scale=np.where(self.random, self.scale / values, 1.0),
            shift=self._shift_by(np.divide, values),
        )._with_constants()

    def to_power(self, exponent: Known) -> "Forms":
        """Raised to a known power.

        Raises
        ------
        NoFormError
            Numbers are shifted, negative, or logarithms of exponentials.
        """
        pure = self._without_shift("a power")
        exponent = np.broadcast_to(exponent, self.kind.shape)
        if np.any(pure.random & ((pure.kind == LOGARITHM) | (pure.scale < 0) | (exponent == 0))):
            raise NoFormError("takes a power of negative random numbers")
        constant = Forms.constants(pure.shift**exponent)
        moved = replace(pure, power=pure.power * exponent, scale=np.abs(pure.scale) ** exponent)
        return moved.where(pure.random, constant)._with_constants()

    def log(self) -> "Forms":
        """Natural logarithm.

        Raises
        ------
        NoFormError
            Numbers are shifted, negative, or logarithms already.
        """
        pure = self._without_shift("the logarithm")
        if np.any(pure.random & ((pure.kind == LOGARITHM) | (pure.scale < 0))):
            raise NoFormError("takes the logarithm of random numbers that are logarithms, or negative")
        uniform = pure.kind == UNIFORM
        moved = replace(
            pure,
            kind=np.where(uniform, EXPONENTIAL, LOGARITHM),
            power=np.ones_like(pure.power),
            scale=np.where(uniform, -pure.power, pure.power),
            shift=np.log(np.abs(pure.scale)),
        )
        return moved.where(pure.random, Forms.constants(np.log(pure.shift)))._with_constants()

    def exp(self) -> "Forms":
        """Exponential function.

        Raises
        ------
        NoFormError
            Numbers are not what a logarithm gives.
        """
        exponential = self.kind == EXPONENTIAL
        if np.any(self.random & ~((exponential & (self.power == 1)) | (self.kind == LOGARITHM))):
            raise NoFormError("takes exp of random numbers that are no logarithms")
        moved = replace(
            self,
            kind=np.where(exponential, UNIFORM, EXPONENTIAL),
            power=np.where(exponential, -self.scale, self.scale),
            scale=np.exp(self.shift),
            shift=np.zeros_like(self.shift),
        )
        return moved.where(self.random, Forms.constants(np.exp(self.shift)))._with_constants()

    def levels(self, bounds: Floats) -> "tuple[Floats, NDArray[np.bool_]]":
        """Where in u an element passes a bound.

        Returns
        -------
        The levels, from 0 to 1, and whether the element is below its bound if u is below the level (or
        else, if u is above it). For constants 0 or 1, so that it is below for no u, or for all. Nothing is
        below NaN.
        """
        with np.errstate(all="ignore"):
            if not ((self.kind != UNIFORM) | (self.power != 1) | self.mirrored).any():
                # The most frequent numbers, in fewer steps.
                level = np.clip((bounds - self.shift) / self.scale, 0, 1)
                rising = self.scale > 0
                return np.where(np.isnan(bounds), np.where(rising, 0.0, 1.0), level), rising
            reached = (bounds - self.shift) / np.where(self.random, self.scale, 1.0)
            x = np.where(self.kind == LOGARITHM, reached, np.maximum(reached, 0) ** (1 / self.power))
            level = np.where(self.kind == UNIFORM, np.clip(x, 0, 1), 0.0)
            level = np.where(self.kind == EXPONENTIAL, np.exp(-np.maximum(x, 0)), level)
            level = np.where(self.kind == LOGARITHM, np.exp(-np.exp(x)), level)
        level = np.where(self.mirrored == 1, 1 - level, level)
        rising = (self.kind == UNIFORM) ^ (self.mirrored == 1) ^ (self.scale < 0) ^ (self.power < 0)
        known = ~self.random
        level = np.where(known, self.shift < bounds, level)
        return np.where(np.isnan(bounds), np.where(rising | known, 0.0, 1.0), level), rising | known

    def at(self, u: Floats) -> Floats:
        """The numbers, if the uniform numbers that they follow from are u; a vector of each."""
        with np.errstate(all="ignore"):
            u = np.where(self.mirrored == 1, 1 - u, u)
            x = np.where(self.kind == UNIFORM, u, -np.log(u))
            x = np.where(self.kind == LOGARITHM, np.log(x), x**self.power)
            return np.where(self.random, self.scale * x + self.shift, self.shift)

    def _without_shift(self, what: str) -> "Forms":
        """The same numbers with shift zero where they are random: c - c u is c (1 - u)."""
        flips = self.random & (self.kind == UNIFORM) & (self.power == 1) & (self.shift != 0)
        flips &= np.abs(self.shift + self.scale) <= 1e-12 * np.abs(self.scale)
        effects = self._effects_of_shifts()
        tiny = self.random & ~flips & (self.shift != 0) & (effects <= NEGLIGIBLE)
        if np.any(self.random & (self.shift != 0) & ~flips & ~tiny):
            raise NoFormError(f"takes {what} of random numbers that are shifted")
        if tiny.any() and (count := leave_out.get(None)) is not None:
            count(self.variable[tiny], effects[tiny])
        return replace(
            self,
            mirrored=np.where(flips, 1 - self.mirrored, self.mirrored),
            scale=np.where(flips, -self.scale, self.scale),
            shift=np.where(flips | tiny, 0.0, self.shift),
        )

    def _effects_of_shifts(self) -> Floats:
        """Total variation at most between the laws with shift and without; infinite if it isn't known.

        The density of x ** power has one peak. So it is the largest probability of an interval as long as
        the shift: that at zero if the power is one or more; else the density is at most 1 / power.
        """
        known = self.random & (self.power > 0) & (self.kind != LOGARITHM)
        with np.errstate(all="ignore"):
            lengths = np.abs(self.shift / self.scale)
            effects = np.where(self.power < 1, lengths / self.power, lengths ** (1 / self.power))
        return np.where(known, effects, np.inf)

    def _shift_by(self, operation: np.ufunc, values: Known) -> Floats:
        """The shift, multiplied or divided; one that is zero beside a random number stays so."""
        return np.where(self.random & (self.shift == 0), 0.0, operation(self.shift, values))

    def _with_constants(self) -> "Forms":
        """Elements that have become constant, as constants: zero or infinity times x, infinity plus x."""
        with np.errstate(all="ignore"):
            fixed = self.random & ~(np.isfinite(self.scale) & np.isfinite(self.shift) & (self.scale != 0))
            if not fixed.any():
                return self
            zero = np.where(self.scale == 0, 0.0, np.where(np.isfinite(self.scale), 1.0, self.scale))
            values = zero + self.shift
        return Forms.constants(values).where(fixed, self)

    def _map(self, function: Callable[[Any], Any]) -> "Forms":
        return Forms(*(function(getattr(self, name)) for name in _FIELDS))


_FIELDS = ("variable", "kind", "mirrored", "power", "scale", "shift")
