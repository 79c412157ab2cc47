"""Docstrings and signatures as Markdown, for `generate_reference.py`."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

WIDTH = 110

_SECTION = re.compile(r"^(?P<title>[A-Z]\w+)\n-+\n", re.MULTILINE)
_ENTRY = re.compile(r"^(?P<names>[\w*][\w, *.-]*?) : ", re.MULTILINE)
_UNDER = re.compile(r"^(?P<names>[A-Z][\w, ]*)\n(?P<text>(?: {4}.*\n?)+)", re.MULTILINE)
_CODE = re.compile(r"(?<!`)``(?!`)")
_LIST_HEAD = re.compile(r"^(?P<title>[A-Z][\w ,():]*)\n(?P<items>(?:    .*\n?)+)", re.MULTILINE)
_ITEM = re.compile(r"^(?=``[\w-]+``(?:, ``[\w-]+``)*: )", re.MULTILINE)
_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


def signature(function: Callable[..., Any], name: str) -> str:
    """The signature as it stands in the source, one argument a line where it is long.

    >>> def attend(query: int, *, scale: float = 1.0) -> float: ...
    >>> signature(attend, "attend")
    'attend(query: int, *, scale: float = 1.0) -> float'
    """
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef)
    arguments = list(_arguments(node.args))
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{name}({', '.join(arguments)}){returns}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), f"){returns}"])


def _arguments(given: ast.arguments) -> Iterator[str]:
    """Each argument with annotation and default; no ``self``."""
    without = len(given.args) - len(given.defaults)
    for place, argument in enumerate(given.args):
        if argument.arg != "self":
            yield _argument(argument, given.defaults[place - without] if place >= without else None)
    if given.vararg:
        yield f"*{ast.unparse(given.vararg)}"
    elif given.kwonlyargs:
        yield "*"
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _argument(argument, default)
    if given.kwarg:
        yield f"**{ast.unparse(given.kwarg)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    text = ast.unparse(argument)
    if default is None:
        return text
    return f"{text} = {ast.unparse(default)}" if argument.annotation else f"{text}={ast.unparse(default)}"


def rendered(documented: Any) -> str:
    """The docstring as Markdown: sections and capabilities become lists, doctests become blocks."""
    parts = _SECTION.split(inspect.getdoc(documented) or "")
    sections = [_section(title, body) for title, body in zip(parts[1::2], parts[2::2], strict=True)]
    text = "\n\n".join(part.strip() for part in [_listed(parts[0]), *sections])
    return _EXAMPLE.sub(r'```pycon unrun="run as a doctest"\n\g<0>\n```', _CODE.sub("`", text))


def _section(title: str, body: str) -> str:
    """A section of a NumPy docstring: entries become a list, other text stays."""
    starts = [*(match.start() for match in _ENTRY.finditer(body)), len(body)]
    entries = [body[start:end] for start, end in pairwise(starts)]
    listed = "\n".join(_ENTRY.sub(_name, _one_line(entry), count=1) for entry in entries)
    text = _UNDER.sub(lambda found: f"- `{found['names']}`: {_one_line(found['text'])}\n", body[: starts[0]])
    return f"**{title}**\n\n{text}{listed}"


def _name(found: re.Match[str]) -> str:
    return f"- `{found['names']}`: "


def _listed(text: str) -> str:
    """Indented lists under a heading of their own, as contracts have them of their capabilities."""

    def as_list(found: re.Match[str]) -> str:
        items = [item for item in _ITEM.split(textwrap.dedent(found["items"])) if item.strip()]
        return "\n".join([f"**{found['title']}**\n", *(f"- {_one_line(item)}" for item in items), ""])

    return _LIST_HEAD.sub(as_list, text)


def _one_line(text: str) -> str:
    return " ".join(text.split())
