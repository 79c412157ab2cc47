"""Generators of ``numpy.random`` that ask a tape.

They are subclasses of numpy's, since programs ask for the class. Every method that draws and isn't known
here is refused by name, also those that a later numpy may add.
"""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from tokenlaw.stats.enumeration.drawing import Drawer
from tokenlaw.stats.enumeration.errors import EnumerationError, as_the_real_one
from tokenlaw.stats.enumeration.numpy_draws import Distributions
from tokenlaw.stats.enumeration.tape import Tape

RealGenerator = np.random.Generator
RealRandomState = np.random.RandomState
REAL_DEFAULT_RNG = np.random.default_rng
SCRATCH = RealGenerator(np.random.PCG64(0)), RealRandomState(0)
"""Real generators that check arguments; their numbers are thrown away."""
entered: list[Tape] = []
"""Tapes of the enumerations that go on, the innermost last."""
DECIDED = {
    name: name
    for name in (
        "random", "uniform", "standard_exponential", "exponential", "gumbel", "integers",
        "choice", "multinomial", "binomial", "shuffle", "permutation",
    )
} | {"randint": "integers", "random_sample": "random"}  # fmt: skip
"""Methods of generators of either kind, and by which of `Distributions` they are decided."""


class LazyGenerator(RealGenerator):
    """A ``numpy.random.Generator`` that asks a tape."""

    def __init__(self, bit_generator: Any = None, *, tape: Tape | None = None) -> None:
        super().__init__(SCRATCH[0].bit_generator)
        self.draws = Distributions(Drawer(tape or running(), "numpy.random.Generator"), SCRATCH[0])
        if bit_generator is not None:
            self.draws.draw.seed(bit_generator, "Generator", frozen_state(bit_generator.state))

    def spawn(self, n_children: int) -> list[Any]:
        """Independent generators."""
        return [LazyGenerator(tape=self.draws.draw.tape) for _ in range(n_children)]


class LazyRandomState(RealRandomState):
    """A ``numpy.random.RandomState`` that asks a tape."""

    def __init__(self, seed: object = None, *, tape: Tape | None = None) -> None:
        super().__init__(SCRATCH[0].bit_generator)
        self.draws = Distributions(Drawer(tape or running(), "numpy.random"), SCRATCH[1])
        self.seed(seed)

    @as_the_real_one
    def seed(self, seed: Any = None) -> None:
        """Harmless, once."""
        if seed is not None:
            real = RealRandomState(seed).get_state(legacy=False)
            self.draws.draw.seed(seed, "seed", frozen_state(real["state"]))

    def get_state(self, legacy: Any = True) -> Any:
        """Of a generator that nobody draws from; it can't be set."""
        return SCRATCH[1].get_state(legacy)

    def rand(self, *dimensions: int) -> Any:
        """Uniform numbers."""
        return self.random(dimensions or None)


@as_the_real_one
def default_rng(seed: Any = None) -> LazyGenerator:
    """Stands for ``numpy.random.default_rng``."""
    if isinstance(seed, LazyGenerator):
        return seed
    generator = LazyGenerator()
    if seed is not None and not isinstance(seed, RealRandomState):
        real = REAL_DEFAULT_RNG(seed).bit_generator
        generator.draws.draw.seed(seed, "default_rng", frozen_state(real.state))
    return generator


def frozen_state(state: Any) -> Hashable:
    """The state of one of numpy's generators as something that can be compared."""
    if isinstance(state, dict):
        return tuple(frozen_state(value) for value in state.values())
    return state.tobytes() if isinstance(state, np.ndarray) else state


def _decided(name: str) -> Callable[..., Any]:
    @as_the_real_one
    def method(generator: Any, *arguments: Any, **options: Any) -> Any:
        if generator.draws.draw.tape not in entered:
            raise EnumerationError(
                "a random generator that was made while a law was enumerated is used later"
            )
        return getattr(generator.draws, name)(*arguments, **options)

    return method


def running() -> Tape:
    """The tape of the enumeration that goes on, also for another thread, which the tape refuses."""
    return entered[-1]


def _refused(name: str) -> Callable[..., Any]:
    def method(generator: Any, *arguments: Any, **options: Any) -> Any:
        return generator.draws.draw.refuse(name)

    return method


def _copied(generator: Any, *arguments: Any) -> Any:
    return generator.draws.draw.tape.undecidable("copying a random generator", "repeats its random numbers")


def _complete(lazy: type, real: type) -> None:
    """Give a class what it doesn't define itself."""
    for name in dir(real):
        if not name.startswith("__") and name not in vars(lazy):
            made = _decided(DECIDED[name]) if name in DECIDED else _refused(name)
            setattr(lazy, name, made if callable(getattr(real, name)) else property(made))
    for name in ("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__"):
        setattr(lazy, name, _copied)


_complete(LazyGenerator, RealGenerator)
_complete(LazyRandomState, RealRandomState)
