"""Monotone functions of a random number, as the steps that lead to them.

What a program makes of a uniform u before it compares it (``-math.log(u) / rate``, ``1 - u``) is nearly
always monotone. Then ``f(u) < threshold`` says just as much as u below, or above, the inverse of the
threshold. A function is a tuple of steps, the innermost first; sequences of steps that undo each other
are dropped, so that functions that are equal look equal. Affine steps keep fractions.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.errors import as_the_real_one


class Step(Protocol):
    """A strictly monotone function of one number."""

    @property
    def rising(self) -> bool:
        """Whether it keeps the order of numbers, rather than turns it around."""
        ...

    def forward(self, value: Weight) -> Weight:
        """Its value, at the borders of its domain as well."""
        ...

    def inverse(self, value: Weight) -> Weight:
        """Where it has this value; a border of its domain if it has it nowhere."""
        ...

    def words(self, inner: str) -> str:
        """The function written out."""
        ...


Steps = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Affine:
    """scale * x + shift, both finite and scale not zero.

    >>> Affine(-1, 1).inverse(0.25), Affine(-1, 1).words("u")
    (0.75, '(-u + 1)')
    """

    scale: Weight
    shift: Weight

    @property
    def rising(self) -> bool:
        """Whether the scale is positive."""
        return self.scale > 0

    def forward(self, value: Weight) -> Weight:
        """Its value."""
        return self.scale * value + self.shift

    def inverse(self, value: Weight) -> Weight:
        """(value - shift) / scale."""
        return ratio(value - self.shift, self.scale)

    def words(self, inner: str) -> str:
        """The function written out."""
        text = f"{float(self.scale):.6g} * {inner}"
        if abs(self.scale) == 1:
            text = inner if self.scale > 0 else f"-{inner}"
        sign = "+" if self.shift > 0 else "-"
        return text if self.shift == 0 else f"({text} {sign} {abs(float(self.shift)):.6g})"


@dataclass(frozen=True, slots=True)
class Log:
    """The natural logarithm, of a number above zero."""

    rising = True

    def forward(self, value: Weight) -> float:
        """Its value, minus infinity at zero."""
        return math.inf if value == math.inf else logarithm(value) if value > 0 else -math.inf

    def inverse(self, value: Weight) -> float:
        """exp(value)."""
        return exponential(value)

    def words(self, inner: str) -> str:
        """The function written out."""
        return f"log({inner})"


@dataclass(frozen=True, slots=True)
class Exp:
    """The exponential function."""

    rising = True

    def forward(self, value: Weight) -> float:
        """Its value."""
        return exponential(value)

    def inverse(self, value: Weight) -> float:
        """log(value); minus infinity where there is none."""
        return LOG.forward(value)

    def words(self, inner: str) -> str:
        """The function written out."""
        return f"exp({inner})"


LOG, EXP = Log(), Exp()
EXPONENTIAL: Steps = (LOG, Affine(-1, 0))
"""An exponential number of rate one, as a function of a uniform."""
GUMBEL: Steps = (*EXPONENTIAL, LOG, Affine(-1, 0))
"""A standard Gumbel number."""
real_log, real_exp = math.log, math.exp


def logarithm(value: Weight) -> float:
    """The real logarithm, also while ``math.log`` is replaced."""
    return real_log(value)


def exponential(value: Weight) -> float:
    """exp(value), infinite where it overflows.

    >>> exponential(1000)
    inf
    """
    try:
        return real_exp(value)
    except OverflowError:
        return math.inf


@as_the_real_one
def ratio(value: Weight, divisor: Weight) -> Weight:
    """The quotient, a fraction where both are rational.

    >>> ratio(1, 3), ratio(1.0, 4)
    (Fraction(1, 3), 0.25)
    """
    if isinstance(value, float) or isinstance(divisor, float):
        return value / divisor
    return Fraction(value) / divisor


def then(steps: Steps, step: Step) -> Steps:
    """The steps, followed by one more; what undoes each other is dropped.

    >>> then(then((LOG,), Affine(2, 0)), Affine(Fraction(1, 2), 0)), then((LOG,), EXP)
    ((Log(),), ())
    """
    last = steps[-1] if steps else None
    if isinstance(step, Affine):
        if isinstance(last, Affine):
            step = Affine(step.scale * last.scale, step.scale * last.shift + step.shift)
            steps = steps[:-1]
        return steps if step.scale == 1 and step.shift == 0 else (*steps, step)
    if (step is LOG and last is EXP) or (step is EXP and last is LOG):
        return steps[:-1]
    if step is LOG and isinstance(last, Affine) and last.shift == 0 and steps[-2:-1] == (EXP,):
        return then(steps[:-2], Affine(1, logarithm(last.scale)))
    return (*steps, step)


IDENTITY = Affine(1, 0)


def is_rising(steps: Steps) -> bool:
    """Whether the whole function keeps the order of numbers."""
    rising = True
    for step in steps:
        rising ^= not step.rising
    return rising


def inverse(steps: Steps, value: Weight) -> Weight:
    """Where the function has this value; infinite, or a border of its domain, if it has it nowhere."""
    for step in reversed(steps):
        value = step.inverse(value)
    return value


def forward(steps: Steps, value: Weight) -> Weight:
    """The function's value."""
    for step in steps:
        value = step.forward(value)
    return value


def without_common_end(first: Steps, second: Steps) -> tuple[Steps, Steps, bool]:
    """Both functions without their equal last steps, and whether those keep the order of numbers.

    >>> without_common_end((Affine(-1, 1), LOG, Affine(-1, 0)), (LOG, Affine(-1, 0)))
    ((Affine(scale=-1, shift=1),), (), False)
    """
    rising = True
    while first and second and first[-1] == second[-1]:
        rising ^= not first[-1].rising
        first, second = first[:-1], second[:-1]
    return first, second, rising


def words(steps: Steps, name: str) -> str:
    """The function written out, with the name of its argument.

    >>> words((LOG, Affine(-1, 0)), "u")
    '-log(u)'
    """
    for step in steps:
        name = step.words(name)
    return name
