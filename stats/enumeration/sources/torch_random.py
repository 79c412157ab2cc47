"""Random numbers of torch: while a law is enumerated, the kernels that draw them ask a tape.

Only those kernels are replaced, through torch's operator library: all else runs as always, and costs
nothing. Draws from finitely many values are decided at once; real numbers become lazy tensors.
"""

import importlib
import warnings
from functools import cache
from typing import Any

import torch
from torch import library

from tokenlaw.stats.enumeration.errors import UndecidableError
from tokenlaw.stats.enumeration.lazy_memory import give_back, prepare
from tokenlaw.stats.enumeration.lazy_tensor_readers import passing_on, replace_readers
from tokenlaw.stats.enumeration.noise_book import NoiseBook
from tokenlaw.stats.enumeration.replacing import Replacements
from tokenlaw.stats.enumeration.tape import ADVICE, Tape
from tokenlaw.stats.enumeration.torch_draws import TorchDraws
from tokenlaw.stats.enumeration.torch_operands import MAKERS, refusing
from tokenlaw.stats.enumeration.torch_overloads import all_kernels, random_kernels

HANDLERS = ("comparing", "decisions", "moves", "outs", "races", "values")
"""Modules ``lazy_tensor_...`` that register what can be done with lazy tensors."""

_LIBRARY: Any = library.Library  # torch gives it no types


class TorchRandom:
    """Replaces the random kernels of torch while it is entered.

    The state of the global generators is what it was before, whatever the program does to it.

    Parameters
    ----------
    tape : decides.

    Raises
    ------
    UndecidableError
        At the end, if random numbers were drawn past the replaced kernels.
    """

    def __init__(self, tape: Tape) -> None:
        self.tape, self.book = tape, NoiseBook(tape)
        self._kernels: Any = None
        self._replaced = Replacements()
        self._draws = TorchDraws(self.book)

    def __enter__(self) -> "TorchRandom":
        _prepare()
        self._replace_functions()
        self.book.generators.enter()
        self._kernels = _LIBRARY("aten", "IMPL")
        with warnings.catch_warnings():
            # Replacing a kernel is what torch warns of.
            warnings.simplefilter("ignore")
            for name, kernel in all_kernels(self._draws, _devices()).items():
                for device in _devices():
                    self._kernels.impl(name, kernel, device)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._kernels is not None:
            self._kernels._destroy()
            self._kernels = None
        self._replaced.close()
        give_back(self.book.taken_over)
        unseen = self.book.generators.exit()
        if unseen and exception[0] is None:
            raise UndecidableError(
                "the program drew random numbers of torch by an operation that isn't seen here, such as "
                f"dropout inside a fused kernel. {ADVICE}"
            )

    def _replace_functions(self) -> None:
        makers = replace_readers(self._replaced, self.book)
        for name in MAKERS:
            real = getattr(torch, name)
            makers[id(real)] = passing_on(self.book, refusing(real))
            self._replaced.attribute(torch, name, makers[id(real)])
        self._replaced.references(self.tape.program, lambda value: makers.get(id(value), value))


@cache
def _prepare() -> None:
    """Import our handlers, and what torch imports, drawing numbers, at the first operator of a subclass."""
    for name in HANDLERS:
        importlib.import_module(f"tokenlaw.stats.enumeration.lazy_tensor_{name}")
    importlib.import_module("torch.fx.experimental.symbolic_shapes")
    if torch.distributed.is_available():
        importlib.import_module("torch.distributed.tensor")
    prepare()
    random_kernels(_devices())


@cache
def _devices() -> tuple[str, ...]:
    return ("CPU", "CUDA") if torch.cuda.is_available() else ("CPU",)
