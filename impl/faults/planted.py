"""What is said about a planted fault, and how it is read from the class that plants it."""

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

FIELDS = ("Classes", "Report", "Effect", "Weakest check")
"""Lines that the docstring of every fault has."""


@dataclass(frozen=True)
class Fault:
    """One deliberate mistake.

    Attributes
    ----------
    name : what it does, short.
    classes : fault classes of the catalogues of public reports: C01 to C22 for speculation, C1 to C25 for KV
        storage and attention.
    report : the public report that it distils: ``owner/name number, number; owner/name number``.
    effect : how far it moves the law, where that is known.
    weakest_check : id of the weakest check that sees it, and in brackets where it shows, if that says more.
    make : builds the faulty implementation.
    """

    name: str
    classes: tuple[str, ...]
    report: str
    effect: str
    weakest_check: str
    make: Callable[[], Any]


def planted(name: str, fault: type[Any]) -> Fault:
    """The fault that a class plants, described by its own docstring.

    Raises
    ------
    ValueError
        The docstring lacks one of `FIELDS`.
    """
    text = " ".join((inspect.getdoc(fault) or "").split())
    missing = [field for field in FIELDS if f"{field}: " not in text]
    if missing:
        raise ValueError(f"{fault.__name__}: the docstring lacks {', '.join(missing)}")
    values = re.split("|".join(f"(?:^| ){field}: " for field in FIELDS), text)[1:]
    classes, report, effect, weakest_check = (value.rstrip(".") for value in values)
    return Fault(name, tuple(classes.split(", ")), report, effect, weakest_check, fault)


def by_name(faults: Iterable[tuple[str, type[Any]]]) -> dict[str, Fault]:
    """Faults by their names, in the given order."""
    return {name: planted(name, fault) for name, fault in faults}
