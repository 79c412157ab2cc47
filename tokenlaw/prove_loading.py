"""Programs by name, loaded in the process that runs them: ``module:function``, ``file::function``."""

import ast
import linecache
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tokenlaw.errors import BadUse, described
from tokenlaw.prove_notebooks import code_cells
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
        self._files: dict[Path, ModuleType] = {}

    def load(self, address: str) -> Any:
        """What ``module:attribute``, ``file.py::name`` or ``file.ipynb::name`` is.

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
        return attribute_of(self._file(address, Path(file)), address, name)

    def _file(self, address: str, path: Path) -> ModuleType:
        whole = path.resolve()
        if whole not in self._files:
            if path.suffix not in (".py", ".ipynb"):
                raise BadUse(f"{address}: {path.name} is neither a script (.py) nor a notebook (.ipynb)")
            if not path.is_file():
                raise BadUse(f"{address}: there is no file {path}")
            try:
                self._files[whole] = self._run(address, whole)
            except OSError as error:
                raise BadUse(f"{address}: can't be read: {described(error)}") from None
        return self._files[whole]

    def _run(self, address: str, path: Path) -> ModuleType:
        """Run a script or a notebook as a module named after it, which can import its neighbours."""
        name = path.stem if path.stem not in sys.modules else f"{path.stem} (file)"
        module = ModuleType(name)
        module.__file__ = str(path)
        sys.modules[name] = module
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        parts = _script(address, path) if path.suffix == ".py" else self._notebook(address, path, module)
        for where, code in parts:
            try:
                exec(code, module.__dict__)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                raise BadUse(f"{address}: {where}{_line(error, path)} failed: {described(error)}") from error
        return module

    def _notebook(self, address: str, path: Path, module: ModuleType) -> Iterator[tuple[str, CodeType]]:
        """The cells of a notebook, each with its name."""
        module.__dict__["display"] = print  # what IPython gives every cell
        for cell in code_cells(path):
            for line in cell.skipped:
                self.notes.append(f"not run: {line} (cell {cell.number})")
            where = f"cell {cell.number}"
            # In the cache of lines without a time: it isn't looked for on the disk again.
            file = f"{path}, {where}"
            linecache.cache[file] = (len(cell.source), None, cell.source.splitlines(keepends=True), file)
            yield where, _compiled(f"{address}: {where}", cell.source, file)


def _script(address: str, path: Path) -> Iterator[tuple[str, CodeType]]:
    yield "the script", _compiled(address, path.read_bytes(), str(path))


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
