"""What can be asked of a monotone function of an undecided uniform, and what can be made of it."""

import numbers
from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor, isfinite, isnan, nan
from typing import Any, NoReturn, Self, cast

from tokenlaw.stats.enumeration import monotone
from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.errors import as_the_real_one
from tokenlaw.stats.enumeration.monotone import EXP, LOG, Affine, Step, Steps, ratio, then
from tokenlaw.stats.enumeration.racing import compare
from tokenlaw.stats.enumeration.uniforms import Uniform

MINUS = Affine(-1, 0)
MOST_INTEGERS = 100_000
"""Integers that one number may be rounded to, at most."""


class Image:
    """A strictly monotone function of a uniform.

    What asks something of it decides no more than is needed for the answer.

    Parameters
    ----------
    uniform : shared with all numbers that follow from it.
    steps : the function, the innermost first; none for the uniform itself.
    """

    __slots__ = ("steps", "uniform")

    def __init__(self, uniform: Uniform, steps: Steps = ()) -> None:
        self.uniform, self.steps = uniform, steps

    def refuse(self, operation: str, why: str = "has no exact probability here") -> NoReturn:
        """Stop the run: the operation is named, and the program's line."""
        self.uniform.tape.undecidable(operation, why)

    def span(self) -> tuple[Weight, Weight]:
        """The interval that it is known to lie in."""
        first = monotone.forward(self.steps, self.uniform.low)
        last = monotone.forward(self.steps, self.uniform.high)
        return (first, last) if first <= last else (last, first)

    @property
    def is_affine(self) -> bool:
        """Whether it is a uniform, at most shifted and scaled."""
        return all(isinstance(step, Affine) for step in self.steps)

    def below(self, threshold: Weight) -> bool:
        """Whether it is below a threshold."""
        steps = self.steps
        if not steps:
            return self.uniform.below(threshold)
        return self.uniform.below(monotone.inverse(steps, threshold), steps) == monotone.is_rising(steps)

    def same(self, other: "Image") -> bool:
        """Whether it is the same number; others are equal with probability zero."""
        return self.uniform is other.uniform and self.steps == other.steps

    def smaller_than(self, other: "Image") -> bool:
        """Whether it is below another random number, which isn't the same."""
        if self.uniform is other.uniform:
            return self._smaller_than_image_of_same(other)
        (low, high), (other_low, other_high) = self.span(), other.span()
        if high <= other_low or other_high <= low:
            return high <= other_low
        if self.uniform.row != other.uniform.row:
            self.refuse("comparing random numbers of two rows", "lets rows influence each other")
        first, second, rising = monotone.without_common_end(self.steps, other.steps)
        alike = not first and not second and self.uniform.clock is None and other.uniform.clock is None
        if alike and self.is_affine:
            return self.uniform.smaller_than(other.uniform) == rising
        smaller = compare((self.uniform, self.steps), (other.uniform, other.steps))
        if smaller is not None:
            return smaller
        if not alike:
            self.refuse("comparing two random numbers of different laws")
        return self.uniform.smaller_than(other.uniform) == rising

    def _smaller_than_image_of_same(self, other: "Image") -> bool:
        first, second, rising = monotone.without_common_end(self.steps, other.steps)
        one, two = _affine(first), _affine(second)
        if one is None or two is None:
            self.refuse("comparing two functions of one random number")
        scale, shift = one.scale - two.scale, one.shift - two.shift
        if scale == 0:
            return (shift < 0) == rising
        below = self.uniform.below(ratio(-shift, scale))
        return (below == (scale > 0)) == rising

    def is_positive(self) -> bool:
        """Whether it is above zero."""
        if not self.steps or self.steps[-1] is EXP:
            return True
        low, high = self.span()
        return low >= 0 or (high > 0 and not self.below(0))

    def floor(self) -> int:
        """The largest integer that isn't above it: one choice among all that are in reach."""
        low, high = self.span()
        if not high - low <= MOST_INTEGERS:
            self.refuse("rounding to an integer", f"has more than {MOST_INTEGERS} outcomes")
        first, last = floor(low), ceil(high) - 1
        return first + self.position(range(first + 1, last + 1))

    def position(self, edges: Sequence[Weight]) -> int:
        """How many of the ascending edges are below it: one choice among all places that are left."""
        places = [monotone.inverse(self.steps, edge) for edge in edges]
        if monotone.is_rising(self.steps):
            return self.uniform.piece(places)
        return len(places) - self.uniform.piece(places[::-1])

    def affine(self, scale: Weight, shift: Weight) -> "Self | Weight":
        """scale * x + shift, a constant where that is one."""
        if scale == 0 or not isfinite(scale) or not isfinite(shift):
            return self._degenerate(scale, shift)
        return self.then(Affine(scale, shift))

    def _degenerate(self, scale: Weight, shift: Weight) -> Weight:
        if scale == 0 or (isfinite(scale) and not isfinite(shift)):
            return shift
        if isnan(scale):
            return nan
        return (scale if self.is_positive() else -scale) + shift

    def then(self, step: Step) -> "Self":
        """The number that follows by one more step."""
        return type(self)(self.uniform, then(self.steps, step))

    def exp(self) -> "Self":
        """exp(x)."""
        return self.then(EXP)

    @as_the_real_one
    def log(self) -> "Self":
        """The natural logarithm.

        Raises
        ------
        ValueError
            It isn't above zero, as ``math.log`` does.
        """
        if not self.is_positive():
            raise ValueError("math domain error")
        return self.then(LOG)

    def power(self, exponent: Weight) -> "Self | Weight":
        """x to a constant power."""
        if exponent in (0, 1):
            return self if exponent == 1 else 1.0
        if not isfinite(exponent):
            self.refuse("an infinite power of a random number")
        if self.is_positive():
            steps = then(then(then(self.steps, LOG), Affine(exponent, 0)), EXP)
            return type(self)(self.uniform, steps)
        if exponent != int(exponent):
            self.refuse("a power of a negative random number")
        turned = self.then(MINUS).power(exponent)
        if exponent % 2 == 0:
            return turned
        return turned.then(MINUS) if isinstance(turned, Image) else -turned

    def plus(self, other: "Image") -> "Self | Weight":
        """The sum with another function of the same uniform, where both are shifted and scaled alike."""
        (inner, one), (inside, two) = _last_affine(self.steps), _last_affine(other.steps)
        if self.uniform is not other.uniform or inner != inside:
            self.refuse("a sum of two random numbers")
        base = type(self)(self.uniform, inner)
        return base.affine(one.scale + two.scale, one.shift + two.shift)


def operand(value: Any) -> "Image | Weight | None":
    """A number as a plain one, a random number as it is, None for anything else (arrays, texts).

    >>> operand(True), operand("a")
    (1, None)
    """
    kind = type(value)
    if kind is float or kind is Fraction or kind is int or isinstance(value, Image):
        return cast(Image | Weight, value)
    if isinstance(value, numbers.Rational):
        return int(value) if isinstance(value, numbers.Integral) else Fraction(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return operand(value.item())
    return None


def _affine(steps: Steps) -> Affine | None:
    inner, last = _last_affine(steps)
    return None if inner else last


def _last_affine(steps: Steps) -> tuple[Steps, Affine]:
    last = steps[-1] if steps else None
    return (steps[:-1], last) if isinstance(last, Affine) else (steps, monotone.IDENTITY)
