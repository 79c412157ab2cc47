"""The page of the command line, from the commands' own signatures, for `generate_reference.py`."""

import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from tables import NOTE, table
from typer.models import ArgumentInfo, OptionInfo

from tokenlaw.cli import app

_KINDS = {Path: "FILE", int: "NUMBER", float: "NUMBER", str: "TEXT"}


def command_line() -> str:
    """Every command with its arguments and options."""
    parts = [
        f"# Command line\n\n{NOTE}",
        "`tokenlaw COMMAND --help` says the same. [What it ends with](exit-statuses.md).",
    ]
    for command in app.registered_commands:
        assert command.callback is not None
        parts.append(_command(command.name or command.callback.__name__, command.callback))
    return "\n\n".join(parts) + "\n"


def _command(name: str, callback: Callable[..., Any]) -> str:
    parameters = list(_parameters(callback))
    arguments = [written for written, info, _ in parameters if isinstance(info, ArgumentInfo)]
    usage = " ".join(["tokenlaw", name, *arguments, "[OPTIONS]"])
    rows = ((f"`{written}`", info.help, default) for written, info, default in parameters)
    text = inspect.getdoc(callback) or ""
    return f"## {name}\n\n`{usage}`\n\n{text}\n\n{table(('', '', 'default'), rows)}"


def _parameters(callback: Callable[..., Any]) -> Iterator[tuple[str, Any, str]]:
    """How each parameter is written, typer's information about it, its default."""
    hints = get_type_hints(callback, include_extras=True)
    for parameter in inspect.signature(callback).parameters.values():
        given = [
            one for one in _annotations(hints[parameter.name]) if isinstance(one, ArgumentInfo | OptionInfo)
        ]
        if given:
            kind = _plain(hints[parameter.name])
            yield _usage(parameter.name, given[0], kind), given[0], _default(parameter)


def _annotations(hint: Any) -> tuple[Any, ...]:
    return getattr(hint, "__metadata__", ())


def _plain(hint: Any) -> Any:
    """The type without ``Annotated``, ``| None`` and ``list``."""
    inner = getattr(hint, "__origin__", hint) if _annotations(hint) else hint
    choices = [one for one in get_args(inner) if one is not NoneType]
    return _plain(choices[0]) if choices else inner


def _usage(name: str, info: Any, kind: Any) -> str:
    if isinstance(info, ArgumentInfo):
        return info.metavar or name.upper()
    # Inside Annotated typer keeps the first name as the default.
    names = [one for one in (info.default, *(info.param_decls or ())) if isinstance(one, str)]
    option = "--" + name.replace("_", "-")
    if kind is bool:
        return ", ".join(names or (option, f"--no-{option[2:]}"))
    value = info.metavar or _KINDS.get(kind, "TEXT")
    if isinstance(kind, type) and issubclass(kind, Enum):
        value = "|".join(str(choice.value) for choice in kind)
    return f"{', '.join(names or [option])} {value}"


def _default(parameter: inspect.Parameter) -> str:
    value = parameter.default
    if value is inspect.Parameter.empty:
        return "required"
    return "" if value is None or isinstance(value, bool) else f"`{value}`"
