"""Where programs get their random numbers from, replaced while a law is enumerated."""

from collections.abc import Iterator

from tokenlaw.stats.enumeration.sources.python_random import PythonRandom
from tokenlaw.stats.enumeration.tape import Source, Tape


def default_sources(tape: Tape) -> Iterator[Source]:
    """All sources that are known: ``random``, ``numpy.random``, torch."""
    yield PythonRandom(tape)
