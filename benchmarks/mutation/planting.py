"""Putting a mutant's code into a module that is already imported, so that collected tests meet it."""

import ast
import functools
import inspect
import sys
from types import FunctionType, ModuleType
from typing import Any

from mutation.making import Mutant


class CannotPlant(Exception):
    """What changed takes effect only while the module is imported."""


def place_of(mutant: Mutant) -> str:
    """Name of the function, method (``Class.method``), class or constants that a mutant changes, or nothing.

    Nothing stands for decorators, options of classes and statements that run at the import.

    >>> source = "class A:\\n    def f(self):\\n        return 1\\n"
    >>> place_of(Mutant("m", "NumberReplacer", 3, "return 1", "return 2", source))
    'A.f'
    """
    for node in ast.parse(mutant.source).body:
        if not node.lineno <= mutant.line <= (node.end_lineno or 0):  # decorators stand above
            continue
        if isinstance(node, ast.ClassDef):
            if mutant.line < node.body[0].lineno:  # options of the class
                return ""
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            inside = [one.name for one in methods if one.lineno <= mutant.line <= (one.end_lineno or 0)]
            return f"{node.name}.{inside[0]}" if inside else node.name
        if isinstance(node, ast.FunctionDef):
            return node.name
        if isinstance(node, ast.AnnAssign | ast.Assign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            return ast.unparse(target)
    return ""


def load(mutant: Mutant) -> ModuleType:
    """The changed module, apart from the imported one.

    Raises
    ------
    Exception
        Whatever the changed module raises while it is imported: the mutant is dead.
    """
    live = sys.modules[mutant.module]
    changed = ModuleType(mutant.module)
    changed.__dict__.update({"__file__": live.__file__, "__package__": live.__package__})
    exec(compile(mutant.source, str(live.__file__), "exec"), changed.__dict__)
    return changed


def plant(changed: ModuleType, place: str) -> None:
    """Make the imported module do what the changed one does.

    Functions get the changed code and defaults in place, whoever imported them, so do the methods and the
    defaults of a class; a constant is replaced in all modules that hold it under its name. Several constants
    of one assignment are replaced together.

    Raises
    ------
    CannotPlant
        The change is in code that runs once, at the import.
    """
    for name in place.strip("()").split(", "):
        old, new = (_look(module, name) for module in (sys.modules[changed.__name__], changed))
        if isinstance(old, type):
            _change_class(old, new)
        elif _functions(old):
            _change_functions(old, new)
        elif name and "." not in name:
            _replace(name, old, new)
        else:
            raise CannotPlant(place)


def _change_class(old: type, new: type) -> None:
    if hasattr(old, "__struct_fields__"):  # msgspec keeps defaults where they can't be changed
        raise CannotPlant(old.__name__)
    for name, value in vars(new).items():
        if name in {"__module__", "__dict__", "__weakref__", "__doc__", "__annotations__"}:
            continue
        if _functions(value):
            _change_functions(vars(old)[name], value)
        elif isinstance(value, int | float | str | tuple | frozenset):
            setattr(old, name, value)


def _change_functions(old: Any, new: Any) -> None:
    for one, other in zip(_functions(old), _functions(new), strict=True):
        one.__code__, one.__defaults__, one.__kwdefaults__ = (
            other.__code__,
            other.__defaults__,
            other.__kwdefaults__,
        )


def _look(module: ModuleType, place: str) -> Any:
    found: Any = module
    for name in filter(None, place.split(".")):
        found = inspect.getattr_static(found, name)
    return found


def _functions(thing: Any) -> list[FunctionType]:
    """The plain functions behind a function, method or property."""
    if isinstance(thing, property):
        return [one for one in (thing.fget, thing.fset) if isinstance(one, FunctionType)]
    if isinstance(thing, staticmethod | classmethod):
        thing = thing.__func__
    if isinstance(thing, functools.cached_property):
        thing = thing.func
    if hasattr(thing, "cache_clear"):
        thing.cache_clear()
    thing = inspect.unwrap(thing) if callable(thing) else thing
    return [thing] if isinstance(thing, FunctionType) else []


def _replace(name: str, old: Any, new: Any) -> None:
    """A constant, in every module that imported it."""
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name) is old:
            setattr(module, name, new)
