"""The code of a Jupyter notebook, as Python that runs without IPython."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tokenlaw.errors import BadUse

_MAGIC = re.compile(r"\s*([\w, ]+=\s*)?(!(?!=)|%{1,2}[a-zA-Z])|\s*\?{1,2}[\w.]+\s*$|\s*[\w.]+\?{1,2}\s*$")
"""A line that only IPython understands: ``%matplotlib inline``, ``files = !ls``, ``print?``."""

_OTHER_LANGUAGE = re.compile(r"%%(?!time|timeit|capture|prun)\w+")
"""The first line of a cell that isn't Python: ``%%bash``, ``%%html``, ``%%writefile file``."""


@dataclass(frozen=True)
class Cell:
    """One code cell.

    Attributes
    ----------
    number : counts the code cells from 1.
    source : its Python code; lines that were left out are ``pass``, so that line numbers stay.
    skipped : lines that were left out.
    """

    number: int
    source: str
    skipped: tuple[str, ...] = ()


class _RawCell(msgspec.Struct):
    cell_type: str
    source: str | list[str] = ""


class _Notebook(msgspec.Struct):
    cells: list[_RawCell]


def code_cells(path: Path) -> Iterator[Cell]:
    """The code cells of a notebook file (format 4), in their order.

    Raises
    ------
    BadUse
        It isn't a notebook.
    """
    try:
        notebook = msgspec.json.decode(path.read_bytes(), type=_Notebook)
    except msgspec.MsgspecError as error:
        raise BadUse(f"{path}: is not a notebook of format 4: {error}") from None
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    for number, source in enumerate(sources, start=1):
        yield python_cell(number, source if isinstance(source, str) else "".join(source))


def python_cell(number: int, source: str) -> Cell:
    """A code cell without what only IPython understands.

    >>> python_cell(1, "%matplotlib inline\\nx = 1")
    Cell(number=1, source='pass\\nx = 1', skipped=('%matplotlib inline',))
    >>> python_cell(2, "%%bash\\nls").skipped
    ('%%bash', 'ls')
    """
    lines = source.splitlines()
    if _OTHER_LANGUAGE.match(source):
        return Cell(number, "", tuple(line for line in lines if line.strip()))
    if _is_python(source):
        return Cell(number, source)
    skipped = [line for line in lines if _MAGIC.match(line)]
    kept = [_nothing(line) if line in skipped else line for line in lines]
    return Cell(number, "\n".join(kept), tuple(line.strip() for line in skipped))


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _nothing(line: str) -> str:
    """A line that does nothing, indented as the given one."""
    return line[: len(line) - len(line.lstrip())] + "pass"
