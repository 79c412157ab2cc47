"""``numpy.random``: its functions, and generators of both kinds, wherever a program holds them."""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any

import numpy as np

from tokenlaw.stats.enumeration.errors import EnumerationError, UndecidableError, as_the_real_one
from tokenlaw.stats.enumeration.lazy_arrays import images, lazily, refuse
from tokenlaw.stats.enumeration.lazy_generators import (
    SCRATCH,
    LazyGenerator,
    LazyRandomState,
    RealGenerator,
    RealRandomState,
    default_rng,
    entered,
    frozen_state,
)
from tokenlaw.stats.enumeration.living import living_generators
from tokenlaw.stats.enumeration.replacing import METHODS, Replacements
from tokenlaw.stats.enumeration.tape import ADVICE, Tape

HIDDEN: Any = np.random.mtrand._rand
"""The generator whose methods the functions of the module are."""
OF_THE_MODULE = {
    "seed": "seed",
    "sample": "random_sample",
    "ranf": "random_sample",
    "set_bit_generator": "set_state",
}
"""Functions of the module that are no methods of its generator, and methods that do the same."""

LAZY: dict[type, Any] = {RealGenerator: LazyGenerator, RealRandomState: LazyRandomState}


class NumpyRandom:
    """Replaces the functions and classes of ``numpy.random`` while it is entered.

    Generators that were made before are replaced where the program holds them: globals, closures, attributes.

    Parameters
    ----------
    tape : decides.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._replaced = Replacements()
        self._held: list[tuple[Any, Hashable]] = []

    def __enter__(self) -> None:
        for generator in living_generators():
            if all(generator is not ours for ours in SCRATCH):
                self._hold(generator)
        hidden = LazyRandomState(tape=self._tape)
        new: dict[int, Any] = {id(HIDDEN): hidden}
        substitutes = {"Generator": LazyGenerator, "RandomState": LazyRandomState, "default_rng": default_rng}
        for name in dir(np.random):
            if name in OF_THE_MODULE or getattr(getattr(np.random, name), "__self__", None) is HIDDEN:
                substitutes[name] = getattr(hidden, OF_THE_MODULE.get(name, name))
        for name, substitute in substitutes.items():
            new[id(getattr(np.random, name))] = substitute
            self._replaced.attribute(np.random, name, substitute)
        for name in ("array", "asarray"):
            substitutes[name] = new[id(getattr(np, name))] = _lazily(getattr(np, name))
            self._replaced.attribute(np, name, substitutes[name])
        new[id(np.frombuffer)] = _without_buffer(np.frombuffer)
        self._replaced.attribute(np, "frombuffer", new[id(np.frombuffer)])
        self._replaced.attribute(np.random.mtrand, "_rand", hidden)
        self._replaced.references(self._tape.program, lambda value: self._substitute(value, new))
        entered.append(self._tape)

    def __exit__(self, *exception: object) -> None:
        error = exception[1]
        entered.remove(self._tape)
        self._replaced.close()
        for generator, state in self._held:
            if _state(generator) != state and isinstance(error, EnumerationError | None):
                raise UndecidableError(
                    f"the program draws from a {type(generator).__name__} that was made before and is held "
                    "where it can't be replaced: make it inside, or hold it as a global of the program's "
                    f"module. {ADVICE}"
                ) from error

    def _hold(self, generator: Any) -> None:
        self._held.append((generator, _state(generator)))

    def _substitute(self, value: Any, new: dict[int, Any]) -> Any:
        """What takes the place of a function, a class or a generator that the program holds."""
        if id(value) in new:
            return new[id(value)]
        if type(value) in LAZY:
            new[id(value)] = LAZY[type(value)](tape=self._tape)
            return new[id(value)]
        owner = value.__self__ if type(value) in METHODS else None
        return getattr(self._substitute(owner, new), value.__name__) if type(owner) in LAZY else value


def _lazily(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes arrays, lazy ones of lazy numbers."""

    @wraps(make)
    @as_the_real_one
    def function(*arguments: Any, **options: Any) -> Any:
        return lazily(make(*arguments, **options))

    return function


def _without_buffer(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function that reads the memory of what it is given, where a lazy array has no floats."""

    @wraps(make)
    @as_the_real_one
    def function(*arguments: Any, **options: Any) -> Any:
        given = [*arguments, *options.values()]
        if any(True for _ in images(given)):
            refuse(given, f"numpy.{make.__name__}", "reads memory that has no floats")
        return make(*arguments, **options)

    return function


def _state(generator: Any) -> Hashable:
    bits = generator.bit_generator if isinstance(generator, RealGenerator) else generator._bit_generator
    return frozen_state(bits.state)
