"""Random generators that a program draws from, put back to where they were."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

from tokenlaw.stats.enumeration.replacing import METHODS, references

_PutBack = Callable[[], Any]


@contextmanager
def undisturbed(program: Callable[[], Any]) -> Iterator[None]:
    """Global generators, and those that the program holds, have the same states afterwards as before.

    Examples
    --------
    >>> with undisturbed(random.random):
    ...     drawn = random.random()
    >>> drawn == random.random()
    True
    """
    found = [*_global(), *_held(program)]
    try:
        yield
    finally:
        for put_back in found:
            put_back()


def _global() -> Iterator[_PutBack]:
    """Those of ``random``, of ``numpy.random``, and of torch for each device that is in use."""
    yield partial(random.setstate, random.getstate())
    yield partial(np.random.set_state, np.random.get_state())
    for generator in (torch.default_generator, *torch.cuda.default_generators):
        yield partial(generator.set_state, generator.get_state())


def _held(program: Callable[[], Any]) -> Iterator[_PutBack]:
    """Those that the program refers to, itself or by one of their methods."""
    for _, _, value in references(program):
        owner = value.__self__ if type(value) in METHODS else value
        kind = type(owner)
        if issubclass(kind, random.Random) and not issubclass(kind, random.SystemRandom):
            yield partial(owner.setstate, owner.getstate())
        elif kind is np.random.Generator:
            yield partial(setattr, owner.bit_generator, "state", owner.bit_generator.state)
        elif kind in (np.random.RandomState, torch.Generator):
            yield partial(owner.set_state, owner.get_state())
