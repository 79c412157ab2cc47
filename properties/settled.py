"""The generators that all code shares, seeded by what is run: whoever draws from them can be asked again."""

import random
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import msgspec
import numpy as np
import torch

Factory = TypeVar("Factory")
Run = TypeVar("Run")
Result = TypeVar("Result")
More = ParamSpec("More")


def settled(
    run: Callable[Concatenate[Factory, Run, More], Result],
) -> Callable[Concatenate[Factory, Run, More], Result]:
    """Let what runs a trace or a session find the same numbers each time that it runs the same one.

    Python's, numpy's and torch's (of the CPU), which are put back afterwards: an implementation that draws
    from them does the same in the search, while its counterexample is shrunk, and in a replay.
    """

    @wraps(run)
    def with_numbers(factory: Factory, example: Run, /, *more: More.args, **named: More.kwargs) -> Result:
        with _seeded(zlib.crc32(msgspec.msgpack.encode(example))):
            return run(factory, example, *more, **named)

    return with_numbers


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    python, numpy, own = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(own)
