"""Attributes that are replaced for a while, and references of a program to what is replaced.

A program that says ``from random import random`` holds the function itself; replacing the attribute of
the module doesn't reach it. So the program's own names are searched as well: globals of its functions,
closures, attributes.
"""

import os
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from types import BuiltinMethodType, CellType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

from tokenlaw.stats.enumeration.holders import Arguments, Attributes, Defaults, Function, Static

MISSING = object()
MOST_OBJECTS = 20_000
"""Objects of a program that are searched at most."""
PACKAGE, OURS = "tokenlaw", "tokenlaw.stats.enumeration"
SITE_FOLDERS = frozenset({"site-packages", "dist-packages"})
"""What folders of installed packages are called: those of this Python, of the user, of other environments."""
DRAWING = ("torch", "numpy", "scipy")
"""Libraries that are known wherever they come from, such as a folder of PYTHONPATH."""


def _library_folders() -> tuple[str, ...]:
    """Folders, with a separator at their ends, in which nothing is the program."""
    found = {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
    for name in DRAWING:
        spec = find_spec(name)
        found.update((spec and spec.submodule_search_locations) or ())
    return tuple(os.path.join(folder, "") for folder in found)


LIBRARY_FOLDERS = _library_folders()
LEAVES = frozenset({bool, bytes, complex, float, int, str, type(None)})
METHODS = frozenset({BuiltinMethodType, MethodType})
"""Types of bound methods. Types are compared, since objects of the program may claim any class, or none."""
IMMUTABLE = 1 << 8
"""In the flags of a class: its attributes can't be set (``Py_TPFLAGS_IMMUTABLETYPE`` of CPython)."""
Undo = Callable[[], None]
Reference = tuple[Any, Any, Any]
"""Where something is held (dictionary, list, cell of a closure, class; None if fixed), its key, and it."""


class Replacements:
    """Replaces attributes until it is closed; then they are as before."""

    def __init__(self) -> None:
        self._undo: list[Undo] = []
        self._before: dict[int, tuple[Any, Any]] = {}
        self._modules: set[str] = set()

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute of a module or class; one that is inherited is inherited again in the end."""
        if not self._undo:
            self._modules = set(sys.modules)
        before = vars(owner).get(name, MISSING)
        if isinstance(owner, ModuleType):
            self._before[id(value)] = value, before
        setattr(owner, name, value)
        if before is MISSING:
            self._undo.append(lambda: delattr(owner, name))
        else:
            self._undo.append(lambda: setattr(owner, name, before))

    def references(self, program: object, substitute: Callable[[Any], Any]) -> None:
        """Replace what a program refers to.

        Parameters
        ----------
        substitute : gives what a value is replaced by, or the value itself.
        """
        try:
            for place, key, value in _found(program):
                new = substitute(value)
                if new is not value:
                    _put(place, key, new)
                    self._undo.append(partial(_put, place, key, value))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Undo all, the last one first; also where modules that were imported meanwhile have it from."""
        _last.clear()
        while self._undo:
            self._undo.pop()()
        for name in set(sys.modules) - self._modules:
            names = getattr(sys.modules.get(name), "__dict__", {})
            for key, value in list(names.items()):
                first = value  # what was replaced twice goes back to this
                while id(first) in self._before:
                    first = self._before[id(first)][1]
                if first is not value:
                    names[key] = first
        self._before.clear()


_last: "list[tuple[object, list[Reference]]]" = []
"""The program that was searched last, and what was found: several sources look for the same."""


def _found(program: object) -> "list[Reference]":
    if not _last or _last[0][0] is not program:
        _last[:] = [(program, list(references(program)))]
    return _last[0][1]


def references(program: object) -> Iterator[Reference]:
    """What a program refers to: where (a dictionary, a list, a closure's cell), under which key, and what.

    Libraries are left out: theirs are many, and they aren't the program. What is near comes first. Objects
    that can't be looked into, such as stand-ins for others that aren't there yet, are left out too. So are
    our own functions, unless the program is one: they hold what they stand for, and must go on holding it.
    """
    seen: set[int] = set()
    waiting: deque[object] = deque([program])
    while waiting and len(seen) < MOST_OBJECTS:
        item = waiting.popleft()
        if id(item) in seen:
            continue
        seen.add(id(item))
        try:
            inside = [] if item is not program and _is_ours(item) else list(_inside(item))
        except Exception:
            continue
        for place, key, value in inside:
            yield place, key, value
            if type(value) not in LEAVES:
                waiting.append(value)


def _inside(item: object) -> Iterator[Reference]:
    if isinstance(item, FunctionType):
        yield from _of_function(item)
    elif isinstance(item, MethodType):
        yield from ((None, None, value) for value in (item.__self__, item.__func__))
    elif isinstance(item, partial):
        yield from ((Arguments(item), number, value) for number, value in enumerate(item.args))
        yield Function(item), None, item.func
        yield None, None, item.keywords
    elif isinstance(item, dict | list | tuple):
        place = None if isinstance(item, tuple) else item
        pairs = item.items() if isinstance(item, dict) else enumerate(item)
        yield from ((place, key, value) for key, value in pairs)
    elif isinstance(item, type):
        if not _is_library(sys.modules.get(item.__module__)):
            yield from _of_class(item)
    elif isinstance(item, ModuleType):
        if getattr(item, "__file__", None) and not _is_library(item):  # a neighbour of the program
            yield None, None, vars(item)
    else:
        yield from _of_object(item)


def _of_object(item: object) -> Iterator[Reference]:
    kind = type(item)
    if kind is not SimpleNamespace and _is_library(sys.modules.get(kind.__module__)):
        return
    values = getattr(item, "__dict__", None)
    if type(values) is dict:
        yield from ((values, key, value) for key, value in values.items())
    for name in _slots(kind):
        if hasattr(item, name):
            yield Attributes(item), name, getattr(item, name)
    yield None, None, kind


def _slots(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        names = vars(base).get("__slots__", ())
        yield from (
            name for name in ((names,) if isinstance(names, str) else names) if not name.startswith("__")
        )


def _of_class(kind: type) -> Iterator[Reference]:
    fixed = kind.__flags__ & IMMUTABLE
    for key, value in vars(kind).items():
        if isinstance(value, staticmethod):
            yield None if fixed else Static(kind), key, value.__func__
        else:
            yield None if fixed else kind, key, value


def _of_function(function: FunctionType) -> Iterator[Reference]:
    for cell in function.__closure__ or ():
        try:
            yield cell, None, cell.cell_contents
        except ValueError:  # not filled yet
            continue
    yield from (
        (Defaults(function), number, value) for number, value in enumerate(function.__defaults__ or ())
    )
    yield None, None, function.__kwdefaults__
    yield None, None, vars(function)
    if not _is_library(function.__globals__):
        yield None, None, function.__globals__


def _is_ours(item: object) -> bool:
    return isinstance(item, FunctionType) and str(item.__globals__.get("__name__")).startswith(OURS)


def _is_library(names: dict[str, Any] | ModuleType | None) -> bool:
    found = names if isinstance(names, dict) else {} if names is None else vars(names)
    name, file = str(found.get("__name__")), str(found.get("__file__") or "")
    if name in (PACKAGE, "builtins") or name.startswith(OURS):
        return True
    return file.startswith(LIBRARY_FOLDERS) or not SITE_FOLDERS.isdisjoint(file.split(os.sep))


def _put(place: Any, key: Any, value: Any) -> None:
    if isinstance(place, CellType):
        place.cell_contents = value
    elif isinstance(place, type):
        setattr(place, key, value)
    elif place is not None:
        place[key] = value
