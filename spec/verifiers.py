"""Whatever somebody offers as a verifier, made into a `tokenlaw.spec.generation_contracts.Verifier`."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch

from tokenlaw.spec.calling import accepts, parameters_of
from tokenlaw.spec.contracts import VERIFIER, ContractError, Implementation
from tokenlaw.spec.generation_contracts import CLAIMS, REFUSALS, TEXTBOOK, Verifier
from tokenlaw.spec.number_kinds import is_whole_number

PRECISIONS = (torch.float64, torch.float32)
"""In what a verifier may say that it works out laws and ratios."""

UNDECLARED = torch.float32
"""What is taken for the precision of a verifier that doesn't say."""


class FunctionVerifier:
    """A verifier made of a plain function ``verify(batch, *, seed)``.

    Its claim, its precision, and what it refuses, are attributes of the function; keywords ``uniforms`` and
    ``noise`` show the capabilities.

    Parameters
    ----------
    function : as `Verifier.verify`.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.verify = function
        self.claims = getattr(function, "claims", TEXTBOOK)
        self.refuses: frozenset[str] = getattr(function, "refuses", frozenset())
        self.most_rows = getattr(function, "most_rows", None)
        self.precision = getattr(function, "precision", UNDECLARED)
        while isinstance(function, functools.partial):
            function = function.func
        # What it raises is the fault of whoever wrote the function.
        self.__module__ = getattr(function, "__module__", __name__)


def takes_batch(found: Any) -> bool:
    """Whether the first parameter of a function is named ``batch``: it is meant as a verifier."""
    if isinstance(found, type) or not callable(found):
        return False
    try:
        names = list(inspect.signature(found).parameters)
    except (TypeError, ValueError):  # a builtin without a signature
        return False
    return names[:1] == ["batch"]


def is_verify_function(found: Any) -> bool:
    """Whether it can be called as ``found(batch, seed=...)``, and says so by the names of its parameters.

    >>> is_verify_function(lambda batch, *, seed: batch), is_verify_function(lambda config: config)
    (True, False)
    """
    return (
        takes_batch(found) and accepts(found, None, seed=0) and "seed" in inspect.signature(found).parameters
    )


def as_verifier(offered: Any, source: str) -> Verifier:
    """An object with a method ``verify`` as it is, a plain function wrapped; errors begin with ``source``.

    Raises
    ------
    ContractError
        It is neither, or it claims something that isn't one of `CLAIMS`.

    Examples
    --------
    >>> as_verifier(lambda batch, *, seed: batch, "mine").claims
    'textbook'
    >>> as_verifier(3, "mine")
    Traceback (most recent call last):
    tokenlaw.spec.contracts.ContractError: mine: int is no verifier: it has no method verify, and it is no \
function of (batch, *, seed)
    """
    verifier: Verifier = FunctionVerifier(offered) if is_verify_function(offered) else offered
    if not callable(getattr(verifier, "verify", None)):
        raise ContractError(
            f"{source}: {type(offered).__name__} is no verifier: it has no method verify, and it is no "
            "function of (batch, *, seed)"
        )
    if not accepts(verifier.verify, None, seed=0):
        raise ContractError(
            f"{source}: its verify takes {parameters_of(verifier.verify)}, but is called as "
            "verify(batch, seed=0)"
        )
    claim_of(verifier, source)
    refusals_of(verifier, source)
    most_rows_of(verifier, source)
    precision_of(verifier, source)
    return verifier


def claim_of(verifier: Any, source: str) -> str:
    """What the verifier claims, one of `CLAIMS`; `ContractError` if it is something else."""
    claim = getattr(verifier, "claims", TEXTBOOK)
    if not isinstance(claim, str) or claim not in CLAIMS:
        raise ContractError(f"{source}: it claims {claim!r}; a verifier claims one of {', '.join(CLAIMS)}")
    return str(claim)


def refusals_of(verifier: Any, source: str) -> frozenset[str]:
    """Which rows the verifier refuses, of `REFUSALS`; `ContractError` if it names others."""
    found = getattr(verifier, "refuses", ())
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise ContractError(
            f"{source}: refuses is {found!r}; it must be a set of names, such as {{'greedy'}}"
        )
    names = list(found)
    unknown = [name for name in names if not isinstance(name, str) or name not in REFUSALS]
    if unknown:
        raise ContractError(
            f"{source}: it refuses {unknown}; a verifier may refuse {', '.join(sorted(REFUSALS))}"
        )
    return frozenset(names)


def most_rows_of(verifier: Any, source: str) -> int | None:
    """Rows of a call at most, None without a limit; `ContractError` if that is no number from 1 on."""
    most = getattr(verifier, "most_rows", None)
    if most is not None and (not is_whole_number(most) or most < 1):
        raise ContractError(f"{source}: most_rows is {most!r}; it must be a whole number from 1 on")
    return most


def precision_of(verifier: Any, source: str) -> torch.dtype:
    """In what the verifier works out laws and ratios; `ContractError` unless it is one of `PRECISIONS`."""
    precision = getattr(verifier, "precision", UNDECLARED)
    if precision not in PRECISIONS:
        known = " or ".join(map(str, PRECISIONS))
        raise ContractError(f"{source}: its precision is {precision!r}; a verifier's precision is {known}")
    return precision


def verifier_factory(offered: Any) -> Callable[[], Any] | None:
    """A factory of what is offered: an object with ``verify``, its class, or a plain function; else None.

    A class is called without arguments; an object and a function are used as they are, each time.
    """
    if isinstance(offered, type):
        return offered if callable(getattr(offered, "verify", None)) else None
    if is_verify_function(offered) or callable(getattr(offered, "verify", None)):
        return lambda: offered
    return None


def build_verifier(implementation: Implementation) -> Verifier:
    """The verifier of an implementation, built afresh.

    Raises
    ------
    ContractError
        The implementation offers none, or its factory returns something else.
    """
    factory = implementation.factories.get(VERIFIER)
    if factory is None:
        raise ContractError(f"{implementation.name} has no {VERIFIER} factory; add one to audit it")
    return as_verifier(factory(), implementation.name)
