"""The code of a Jupyter notebook, as Python that runs without IPython."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from symtable import SymbolTable, symtable

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


def cells_needed(sources: Sequence[str], name: str) -> tuple[int, int]:
    """How many cells are run to define a name (by the last that does), and to define what functions use.

    All cells if none is seen to define it.

    >>> cells_needed(["def f(): return g()", "x = 1", "def g(): return 2", "f = 1 / f()", "y = 2"], "g")
    (3, 3)
    >>> cells_needed(["def f(): return g()", "x = 1", "def g(): return 2", "y = 2"], "f")
    (1, 3)
    """
    scopes = [_Names.of(source) for source in sources]
    defining = [number for number, scope in enumerate(scopes, start=1) if name in scope.bound]
    if not defining:
        return len(sources), len(sources)
    needed = defining[-1]
    while True:
        run = scopes[:needed]
        missing = {each for scope in run for each in scope.used} - {
            each for scope in run for each in scope.bound
        }
        later = [number for number in range(needed, len(scopes)) if scopes[number].bound & missing]
        if not later:
            return defining[-1], needed
        needed = later[0] + 1


@dataclass(frozen=True)
class _Names:
    """Names that a cell gives to something, and those of the notebook that its functions use."""

    bound: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()

    @classmethod
    def of(cls, source: str) -> "_Names":
        """Those of this source; none if it isn't Python."""
        try:
            table = symtable(source, "cell", "exec")
        except (SyntaxError, ValueError):
            return cls()
        bound = {each.get_name() for each in table.get_symbols() if each.is_assigned() or each.is_imported()}
        return cls(frozenset(bound), frozenset(_globals_of(table)))


def _globals_of(table: SymbolTable) -> Iterator[str]:
    """The global names that functions and classes in it use, at any depth."""
    for child in table.get_children():
        yield from (each.get_name() for each in child.get_symbols() if each.is_global())
        yield from _globals_of(child)


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _nothing(line: str) -> str:
    """A line that does nothing, indented as the given one."""
    return line[: len(line) - len(line.lstrip())] + "pass"
