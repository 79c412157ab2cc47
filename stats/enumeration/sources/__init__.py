"""Where programs get their random numbers from, replaced while a law is enumerated."""

from collections.abc import Iterator

from tokenlaw.stats.enumeration.lazy_math import LazyMath
from tokenlaw.stats.enumeration.sources.numpy_random import NumpyRandom
from tokenlaw.stats.enumeration.sources.python_random import PythonRandom
from tokenlaw.stats.enumeration.sources.torch_random import TorchRandom
from tokenlaw.stats.enumeration.tape import Source, Tape


def default_sources(tape: Tape) -> Iterator[Source]:
    """All sources that are known: ``random``, ``numpy.random``, torch."""
    # First: what it imports when it is entered draws random numbers.
    yield TorchRandom(tape)
    yield LazyMath(tape)
    yield PythonRandom(tape)
    yield NumpyRandom(tape)
