"""``random`` and ``secrets``: their functions and the methods of every ``random.Random``."""

import random
import secrets
import tempfile
from collections.abc import Callable, MutableSequence, Sequence
from functools import partial
from types import MethodType
from typing import Any, NoReturn

from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.drawing import Drawer
from tokenlaw.stats.enumeration.errors import (
    EnumerationError,
    UndecidableError,
    as_the_real_one,
    is_unknown_call,
)
from tokenlaw.stats.enumeration.replacing import METHODS, Replacements
from tokenlaw.stats.enumeration.tape import ADVICE, Tape

DECIDED = (
    "random", "getrandbits", "_randbelow", "choice", "choices", "shuffle", "sample", "expovariate",
    "seed", "setstate",
)  # fmt: skip
"""Methods of a generator by which all others work, or that are decided at once."""
REFUSED = (
    "betavariate", "binomialvariate", "gammavariate", "gauss", "lognormvariate", "normalvariate",
    "paretovariate", "randbytes", "triangular", "vonmisesvariate", "weibullvariate",
)  # fmt: skip
"""Methods whose law isn't known here."""
KNOWN = frozenset(dir(random.Random))
HIDDEN: random.Random = random._inst
"""The generator whose methods the functions of the module are."""


class PythonRandom:
    """Replaces the functions of ``random`` while it is entered.

    Parameters
    ----------
    tape : decides.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._draw = Drawer(tape, "random")
        self._replaced = Replacements()

    def __enter__(self) -> None:
        self._state = HIDDEN.getstate()
        methods = _Methods(self._draw).by_name()
        functions: dict[int, Any] = {}
        for name, method in methods.items():
            for owner in (random.Random, random.SystemRandom):
                self._replaced.attribute(owner, name, method)
            for module in (random, secrets):
                if hasattr(module, name):
                    self._function(module, name, MethodType(method, HIDDEN), functions)
        self._function(random, "random", self._draw.uniform, functions)
        self._function(secrets, "randbits", MethodType(methods["getrandbits"], HIDDEN), functions)
        self._replaced.references(self._tape.program, lambda value: _substitute(value, methods, functions))

    def __exit__(self, *exception: object) -> None:
        error = exception[1]
        self._replaced.close()
        if HIDDEN.getstate() != self._state and isinstance(error, EnumerationError | None):
            raise UndecidableError(
                "the program draws from (or seeds) the generator behind `random` by a name that can't be "
                "replaced, such as one imported by `from random import random`: import the module instead. "
                f"{ADVICE}"
            ) from error

    def _function(self, module: Any, name: str, function: Any, functions: dict[int, Any]) -> None:
        functions[id(getattr(module, name))] = function
        self._replaced.attribute(module, name, function)


def _substitute(value: Any, methods: dict[str, Any], functions: dict[int, Any]) -> Any:
    """What takes the place of a function that the program holds."""
    if id(value) in functions:
        return functions[id(value)]
    if type(value) in METHODS and issubclass(type(value.__self__), random.Random):
        method = methods.get(value.__name__)
        return value if method is None else MethodType(method, value.__self__)
    return value


class _Methods:
    """Methods for every ``random.Random``; those that are not among them work by means of these."""

    def __init__(self, draw: Drawer) -> None:
        self._draw = draw
        # Names of temporary files are random, and no part of the law; the first folder has a name of its own.
        tempfile.gettempdir()
        names: Any = tempfile
        self._names = names._get_candidate_names().rng
        self._scratch = random.Random(0)
        self._real = {name: getattr(random.Random, name) for name in (*DECIDED, *REFUSED) if name in KNOWN}

    def by_name(self) -> dict[str, Callable[..., Any]]:
        """All of them, as functions of the generator and of what it is called with."""
        return {name: self._method(name) for name in self._real}

    def _method(self, name: str) -> Callable[..., Any]:
        """A method that leaves generators of the program's own making to themselves."""
        real = self._real[name]
        if name == "random":
            return self._random(real)
        lazy = getattr(self, name.strip("_")) if name in DECIDED else partial(self._refuse, name)

        @as_the_real_one
        def method(generator: random.Random, *arguments: Any, **options: Any) -> Any:
            if type(generator).random is not random.Random.random or generator is self._names:
                return real(generator, *arguments, **options)
            try:
                return lazy(generator, *arguments, **options)
            except TypeError as error:
                if not is_unknown_call(error):
                    raise
            real(self._scratch, *arguments, **options)  # it raises, if it doesn't know them either
            self._draw.refuse(f"{name} with these arguments")

        return method

    def _random(self, real: Callable[[random.Random], float]) -> Callable[[random.Random], Any]:
        draw, names = self._draw.uniform, self._names
        return lambda generator: draw() if generator is not names else real(generator)

    def _refuse(self, name: str, *arguments: Any, **options: Any) -> NoReturn:
        self._draw.refuse(name)

    @as_the_real_one
    def seed(self, generator: random.Random, a: object = None, version: int = 2) -> None:
        # Seeds that look different may give the same random numbers, as 1 and True do.
        self._real["seed"](self._scratch, a, version)
        self._draw.seed(a, "seed", self._scratch.getstate())

    def setstate(self, generator: random.Random, state: object) -> NoReturn:
        self._draw.refuse("setstate", "would repeat random numbers")

    @as_the_real_one
    def getrandbits(self, generator: random.Random, k: int) -> int:
        return self._draw.below(2**k, "getrandbits") if k >= 0 else self._real["getrandbits"](generator, k)

    def randbelow(self, generator: random.Random, n: int) -> int:
        return self._draw.below(n, "randrange")

    @as_the_real_one
    def choice(self, generator: random.Random, seq: Sequence[Any]) -> Any:
        return seq[self._draw.below(len(seq), "choice")] if len(seq) else self._real["choice"](generator, seq)

    @as_the_real_one
    def choices(
        self,
        generator: random.Random,
        population: Sequence[Any],
        weights: Sequence[Weight] | None = None,
        *,
        cum_weights: Sequence[Weight] | None = None,
        k: int = 1,
    ) -> list[Any]:
        if weights is None and cum_weights is None and len(population):
            return [population[self._draw.below(len(population), "choices")] for _ in range(k)]
        given = weights if cum_weights is None else cum_weights
        known = None
        if given is not None and (weights is None or cum_weights is None) and len(given) == len(population):
            known = self._draw.distribution(given, "choices", cumulative=weights is None)
        if known is None:
            real = self._real["choices"]
            return list(real(generator, population, weights, cum_weights=cum_weights, k=k))
        return [population[self._draw.one_of(known, "choices")] for _ in range(k)]

    def shuffle(self, generator: random.Random, x: MutableSequence[Any]) -> None:
        self._draw.shuffle(x, "shuffle")

    @as_the_real_one
    def sample(
        self,
        generator: random.Random,
        population: Sequence[Any],
        k: int,
        *,
        counts: Sequence[int] | None = None,
    ) -> list[Any]:
        if counts is not None or not isinstance(population, Sequence) or not 0 <= k <= len(population):
            return list(self._real["sample"](generator, population, k, counts=counts))
        left = list(range(len(population)))
        return [population[left.pop(self._draw.below(len(left), "sample"))] for _ in range(k)]

    def expovariate(self, generator: random.Random, lambd: float = 1.0) -> Any:
        return self._draw.exponential("expovariate") / lambd
