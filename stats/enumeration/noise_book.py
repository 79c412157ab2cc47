"""All random numbers that a run has drawn into tensors or arrays, and what is decided of them.

A tensor of undecided numbers is a tensor of *handles* into this book: whatever moves numbers around moves
handles, and whatever computes with them writes new entries.
"""

import weakref
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenlaw.stats.enumeration.forms import UNIFORM, Floats, Forms, Integers
from tokenlaw.stats.enumeration.generator_states import GeneratorStates
from tokenlaw.stats.enumeration.tape import Tape
from tokenlaw.stats.enumeration.uniforms import Uniform

_NAMES = [field.name for field in fields(Forms)]
FEW = 16
"""Numbers that are decided one by one; more of them are faster as arrays."""


class NoiseBook:
    """The random numbers of a run; those of earlier runs are forgotten.

    Parameters
    ----------
    tape : decides.

    Attributes
    ----------
    taken_over : tensors of the program that were made lazy, in all runs.
    generators : states of torch's generators.
    scripted : how many functions in C++ are running, such as scripted ones.
    plain : by handle the variable of numbers that are just as they were drawn in [0, 1), a few at once.
    """

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.taken_over: list[weakref.ref[Any]] = []
        self.generators = GeneratorStates()
        self.scripted = 0
        tape.beginning.append(self._renew)
        self._columns, self._used = np.empty((6, 256)), 0
        self._begin()

    def fresh(
        self, rows: Sequence[int], kind: int = UNIFORM, scale: float = 1.0, shift: float = 0.0
    ) -> Integers:
        """Handles of new random numbers ``scale * x + shift``, one for each entry of ``rows``."""
        self._renew()
        start, end = self._room(len(rows))
        first = len(self._rows)
        self._rows.extend(rows)
        self._columns[0, start:end] = np.arange(first, len(self._rows))
        # Not mirrored, to the first power.
        self._columns[1:, start:end] = np.array([[kind], [0], [1], [scale], [shift]], np.float64)
        if kind == UNIFORM and scale == 1 and shift == 0 and len(rows) <= FEW:
            self.plain.update(zip(range(start, end), range(first, len(self._rows)), strict=True))
        return np.arange(start, end)

    def write(self, forms: Forms) -> Integers:
        """Handles of numbers that follow from others, or are constant, in the same shape."""
        self._renew()
        start, end = self._room(forms.kind.size)
        for number, name in enumerate(_NAMES):
            self._columns[number, start:end] = getattr(forms, name).ravel()
        return np.arange(start, end).reshape(forms.kind.shape)

    def read(self, handles: Integers) -> Forms:
        """The numbers that handles stand for."""
        variable, kind, mirrored, power, scale, shift = self._columns[:, handles]
        return Forms(
            variable.astype(np.int64), kind.astype(np.int64), mirrored.astype(np.int64), power, scale, shift
        )

    def uniform(self, variable: int) -> Uniform:
        """What is known of a random number."""
        found = self._uniforms.get(variable)
        if found is None:
            found = self._uniforms[variable] = Uniform(self.tape, self._rows[variable])
        return found

    def drawn(self) -> dict[bytes, Any]:
        """Draws of this run by the state of their generator, see `tokenlaw.stats.enumeration.streams`."""
        self._renew()
        return self._drawn

    def below(self, forms: Forms, bounds: Floats) -> NDArray[np.bool_]:
        """Decide which of the numbers are below their bounds; a vector of each.

        All bounds that one number is compared with at once are one choice: between which of them it lies.
        """
        levels, rising = forms.levels(bounds)
        below = np.where(rising, levels >= 1, levels <= 0)
        open_ = np.flatnonzero((levels > 0) & (levels < 1))
        variables = forms.variable[open_].tolist()
        for variable in dict.fromkeys(variables):
            where = open_[forms.variable[open_] == variable] if len(open_) > 1 else open_
            self._place(variable, levels, where)
            uniform = self.uniform(variable)
            below[where] = (levels[where] >= float(uniform.high)) == rising[where]
        return below

    def leave_out(self, variables: Integers, effects: Floats) -> None:
        """Count guards of random numbers that are left out, by what they change of the law of each at most.

        Of a number that lies in an interval by now that is as many times more as the interval is shorter. Of
        those that were compared with each other nothing better than 1 is known.
        """
        for variable, effect in zip(variables.tolist(), effects.tolist(), strict=True):
            path = self.tape.paths[self._rows[variable]]
            known = self._uniforms.get(variable)
            if known is None:
                path.leave_out(effect)
            elif known.clock is None and known.ranked is None:
                path.leave_out(effect / float(known.high - known.low))
            else:
                path.leave_out(1.0)

    def span(self, forms: Forms) -> tuple[float, float]:
        """Between which values a single number lies; a vector of one."""
        uniform = self.uniform(int(forms.variable[0]))
        ends = forms.at(np.array([float(uniform.low)])), forms.at(np.array([float(uniform.high)]))
        return float(np.min(ends)), float(np.max(ends))

    def _room(self, size: int) -> tuple[int, int]:
        """Where as many new numbers go."""
        start, end = self._used, self._used + size
        if end > self._columns.shape[1]:
            self._columns = np.concatenate([self._columns, np.empty((6, max(end, 256)))], axis=1)
        self._used = end
        return start, end

    def _place(self, variable: int, levels: Floats, where: Integers) -> None:
        uniform = self.uniform(variable)
        thresholds = sorted(set(levels[where].tolist()))
        if len(thresholds) == 1:
            uniform.below(thresholds[0])
        else:
            uniform.piece(thresholds)

    def _renew(self) -> None:
        if self._run != self.tape.run:
            self.generators.end_run()
            self._begin()

    def _begin(self) -> None:
        self._run = self.tape.run
        self._rows: list[int] = []
        self._uniforms: dict[int, Uniform] = {}
        self._used = 0
        self.plain: dict[int, int] = {}
        self._drawn: dict[bytes, Any] = {}
        self.taken_over[:] = [reference for reference in self.taken_over if reference() is not None]
