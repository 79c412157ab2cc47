"""Programs by name, loaded in the process that runs them: ``module:function``, ``file::function``."""

import ast
import linecache
import sys
import traceback
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tokenlaw.errors import BadUse, described
from tokenlaw.prove_notebooks import Cell, cells_needed, code_cells
from tokenlaw.targets import attribute_of, look_up

SEPARATOR = "::"
"""Between a file and the name of a function in it."""


class Loader:
    """Loads what programs and specs are called; a file that both are in is run once.

    Attributes
    ----------
    notes : what was left out, for people.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._files: dict[Path, _Script | _Notebook] = {}

    def load(self, address: str) -> Any:
        """What ``module:attribute``, ``file.py::name`` or ``file.ipynb::name`` is.

        Of a notebook the last cell that defines the name is run, with those before it. Later ones are run if
        they define what functions use; that one of them fails is noted.

        Raises
        ------
        BadUse
            There is no such thing, or its code fails.
        """
        file, separator, name = address.rpartition(SEPARATOR)
        if not separator:
            return look_up(address, address)
        if not file or not name:
            raise BadUse(f"{address}: write file.py::function or file.ipynb::function")
        try:
            module = self._file(address, Path(file)).reach(address, name.partition(".")[0])
        except OSError as error:
            raise BadUse(f"{address}: can't be read: {described(error)}") from None
        return attribute_of(module, address, name)

    def _file(self, address: str, path: Path) -> "_Script | _Notebook":
        whole = path.resolve()
        if whole not in self._files:
            if path.suffix not in (".py", ".ipynb"):
                raise BadUse(f"{address}: {path.name} is neither a script (.py) nor a notebook (.ipynb)")
            if not path.is_file():
                raise BadUse(f"{address}: there is no file {path}")
            self._files[whole] = _Script(whole) if path.suffix == ".py" else _Notebook(whole, self.notes)
        return self._files[whole]


class _File:
    """A file that is run as a module named after it, which can import its neighbours."""

    def __init__(self, path: Path) -> None:
        name = path.stem if path.stem not in sys.modules else f"{path.stem} (file)"
        self.path, self.module = path, ModuleType(name)
        self.module.__file__ = str(path)
        sys.modules[name] = self.module
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))

    def _run(self, address: str, where: str, code: CodeType) -> None:
        try:
            exec(code, self.module.__dict__)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            line = _line(error, self.path)
            raise BadUse(f"{address}: {where}{line} failed: {described(error)}") from error


class _Script(_File):
    """A file of Python, run as a whole the first time."""

    _was_run = False

    def reach(self, address: str, name: str) -> ModuleType:
        """The module."""
        if not self._was_run:
            code = _compiled(address, self.path.read_bytes(), str(self.path))
            self._run(address, "the script", code)
            self._was_run = True
        return self.module


class _Notebook(_File):
    """A notebook, of which no more cells are run than somebody needs."""

    def __init__(self, path: Path, notes: list[str]) -> None:
        self._cells, self._notes = list(code_cells(path)), notes
        super().__init__(path)
        self.module.__dict__["display"] = print  # what IPython gives every cell
        self._done, self._failed = 0, False

    def reach(self, address: str, name: str) -> ModuleType:
        """The module, run as far as the cells that this name needs."""
        defined, needed = cells_needed([cell.source for cell in self._cells], name)
        # A cell that failed isn't run once more for what is only used.
        while self._done < (defined if self._failed else needed):
            cell = self._cells[self._done]
            try:
                self._run_cell(address, cell)
            except BadUse as error:
                if self._done < defined:
                    raise
                self._failed = True
                self._notes.append(f"{error}; it comes after {name}")
                break
            self._done += 1
        return self.module

    def _run_cell(self, address: str, cell: Cell) -> None:
        where = f"cell {cell.number}"
        self._notes += [f"not run: {line} ({where})" for line in cell.skipped]
        # In the cache of lines without a time: it isn't looked for on the disk again.
        file = f"{self.path}, {where}"
        linecache.cache[file] = (len(cell.source), None, cell.source.splitlines(keepends=True), file)
        self._run(address, where, _compiled(f"{address}: {where}", cell.source, file))


def _compiled(where: str, source: str | bytes, file: str) -> CodeType:
    try:
        return compile(ast.parse(source, file), file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise BadUse(f"{where}: is not Python: {described(error)}") from None


def _line(error: BaseException, path: Path) -> str:
    """The line of the file at which something was raised, last of all."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(path))
    ]
    return f", line {frames[-1].lineno} `{frames[-1].line}`," if frames else ""
