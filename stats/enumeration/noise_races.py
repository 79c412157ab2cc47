"""Which of several random numbers is the largest: the race that it amounts to, and its winner."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.forms import (
    CONSTANT,
    EXPONENTIAL,
    LOGARITHM,
    UNIFORM,
    Floats,
    Forms,
    NoFormError,
)
from tokenlaw.stats.enumeration.noise_book import NoiseBook
from tokenlaw.stats.enumeration.racing import races_of
from tokenlaw.stats.enumeration.uniforms import Uniform

CLOCKS = ("-log(u)", "-log(1 - u)")
"""What a uniform's clock can be."""


def largest(book: NoiseBook, forms: Forms, count: int, source: str, *, smallest: bool = False) -> list[int]:
    """Decide the positions of the largest numbers of a vector, the largest first.

    Parameters
    ----------
    book : of the run.
    forms : the vector; constants among them must be too small to win, as -inf is, or zero beside p / e.
    count : how many positions.
    source : name of the operation, for people.
    smallest : look for the smallest numbers instead.

    Raises
    ------
    NoFormError
        It isn't a race of exponential clocks.
    """
    if smallest:
        forms = replace(forms, scale=-forms.scale, shift=-forms.shift)
    rates, mirrored = race_rates(forms)
    possible = np.flatnonzero(rates > 0).tolist()
    if len(possible) < count:
        raise NoFormError("finds fewer elements that can win than it asks for")
    uniforms = [book.uniform(variable) for variable in forms.variable[possible].tolist()]
    positions: dict[Hashable, int] = dict(zip(uniforms, possible, strict=True))
    if len(possible) == 1:
        return possible
    if len(positions) < len(possible):
        raise NoFormError("lets a random number race with itself")
    row = uniforms[0].row
    if any(uniform.row != row for uniform in uniforms):
        raise NoFormError("mixes rows of the batch")
    _enter(uniforms, mirrored[possible].tolist())
    clocks: dict[Hashable, Weight] = dict(zip(uniforms, rates[possible].tolist(), strict=True))
    return [positions[one] for one in races_of(book.tape).order(clocks, count, source, row, positions)]


def race_rates(forms: Forms) -> tuple[Floats, Floats]:
    """Rates of the clocks of which the first one belongs to the largest number, zero for constants.

    Returns
    -------
    The rates, and for each element whether its clock is -log(1 - u) rather than -log u.
    """
    chosen = forms[forms.random]
    kind = int(chosen.kind[0]) if len(set(chosen.kind.tolist())) == 1 else CONSTANT
    rates, turned, floor = _RATES.get(kind, _no_rates)(chosen)
    constants = forms.shift[~forms.random]
    if not np.all(constants <= floor):
        raise NoFormError("compares random numbers with constants that may be the largest")
    found = np.zeros(forms.kind.shape)
    found[forms.random] = rates
    return found, np.where(turned, 1 - forms.mirrored, forms.mirrored)


def _no_rates(forms: Forms) -> tuple[Floats, bool, float]:
    raise NoFormError("compares random numbers of different laws, or none")


def _exponential(forms: Forms) -> tuple[Floats, bool, float]:
    """p / e, the largest of which has the smallest e / p; or -e / p."""
    power, shift = forms.power[0], forms.shift[0]
    if np.any(forms.power != power) or np.any(forms.shift != shift):
        raise NoFormError("compares exponential random numbers with different shifts or powers")
    if np.any(forms.scale * power > 0):
        raise NoFormError("looks for the clock that rings last")
    rates = np.exp(_centred(np.log(np.abs(forms.scale)) / -power))
    return rates, False, shift if forms.scale[0] > 0 else -np.inf


def _logarithm(forms: Forms) -> tuple[Floats, bool, float]:
    """log p - log e, or log p + g with Gumbel noise g = -log e."""
    scale = forms.scale[0]
    if np.any(np.abs(forms.scale - scale) > 1e-12 * abs(scale)):
        raise NoFormError("compares Gumbel noise of different scales")
    if scale > 0:
        raise NoFormError("looks for the clock that rings last")
    return np.exp(_centred(forms.shift / -scale)), False, -np.inf


def _uniform(forms: Forms) -> tuple[Floats, bool, float]:
    """u ** (1 / p), which is exp(-e / p); or uniform numbers as such, of which each may be the largest."""
    power, scale, shift = forms.power, forms.scale[0], forms.shift[0]
    if np.any(forms.scale != scale) or np.any(forms.shift != shift):
        raise NoFormError("compares uniform random numbers of different ranges")
    if scale > 0 and np.all(power > 0):
        return 1 / power, False, shift
    if np.any(power != power[0]):
        raise NoFormError("compares different powers of uniform random numbers")
    return np.ones_like(power), bool(scale * power[0] < 0), shift + min(scale, 0) if power[0] > 0 else -np.inf


_RATES = {EXPONENTIAL: _exponential, LOGARITHM: _logarithm, UNIFORM: _uniform}


def _centred(logarithms: Floats) -> Floats:
    """Only ratios of rates matter; so none of them overflows."""
    return np.asarray(logarithms - logarithms.max(initial=-np.inf))


def _enter(uniforms: Sequence[Uniform], mirrored: Sequence[int]) -> None:
    """Random numbers that race must be untouched, and always race the same way round."""
    for uniform, turned in zip(uniforms, mirrored, strict=True):
        clock = CLOCKS[turned]
        if not uniform.untouched:
            raise NoFormError("lets random numbers race that were compared with thresholds before")
        if uniform.clock not in (None, clock):
            raise NoFormError("lets random numbers race in the opposite direction after an earlier race")
        uniform.clock = clock
