"""Pages of documentation, followed from top to bottom as a reader would, in a folder of their own.

What happens to a block is decided by its language and by marks behind it (`docs/site_pages.py` hides those):

``title="engine.py"``
    The block is written to this file, whatever its language.
``python``, ``sh``
    It is run, and must succeed; with ``exit="1"`` a shell block must end with this exit status.
``text``
    It must stand in what the run block before it printed; ``...`` stands for anything.
``unrun="needs vLLM"``
    Nothing is done with it, and here is why.

Names that one block of Python binds are known to the next ones.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_BLOCK = re.compile(r"^```(?P<language>\w+)(?P<marks>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_ANY_FENCE = re.compile(r"^ *(?:```|~~~)", re.MULTILINE)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_MARK = re.compile(r' (title|exit|unrun)="([^"]+)"')


class Misled(AssertionError):
    """A reader who follows the page doesn't get what it says."""


@dataclass(frozen=True)
class Block:
    """A block of code: page and line, the heading above it, language, the marks behind that, and the code."""

    place: str
    heading: str
    language: str
    marks: dict[str, str]
    text: str


def blocks(page: Path) -> list[Block]:
    """All blocks of a page; every fence must be one of a block, with a language and marks that are known."""
    text = page.read_text()
    found = [_block(page, text, match) for match in _BLOCK.finditer(text)]
    if len(_ANY_FENCE.findall(text)) != 2 * len(found):
        raise Misled(f"{page.name}: a block lacks its language or its end, or isn't at the start of the line")
    return found


def _block(page: Path, text: str, match: re.Match[str]) -> Block:
    before = text[: match.start()]
    place = f"{page.name}:{before.count(chr(10)) + 1}"
    if _MARK.sub("", match["marks"]):
        raise Misled(f"{place}: unknown mark in {match['marks']!r}")
    heading = _HEADING.findall(_BLOCK.sub("", before))[-1]
    return Block(place, heading, match["language"], dict(_MARK.findall(match["marks"])), match["text"])


def follow(page: Path, folder: Path, heading: str | None = None) -> int:
    """Do in a folder what the page, or its part under a heading, says; how many blocks were run.

    Raises
    ------
    Misled
        A block fails, or prints something else.
    """
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "docs").symlink_to(DOCS)
    names: dict[str, Any] = {"__name__": "__page__"}
    printed, runs = None, 0
    with chdir(folder), _importing_from(folder):
        for block in blocks(page):
            if heading not in (None, block.heading):
                continue
            if "unrun" in block.marks:
                printed = None
            elif "title" in block.marks:
                (folder / block.marks["title"]).write_text(block.text)
            elif block.language == "text":
                _require_shown(block, printed)
            else:
                printed, runs = _run(block, names), runs + 1
    return runs


def _run(block: Block, names: dict[str, Any]) -> str:
    if block.language == "python":
        return _run_python(block, names)
    if block.language == "sh":
        return _run_shell(block)
    raise Misled(f"{block.place}: {block.language} is neither run nor written: give it a title, or unrun")


def _run_python(block: Block, names: dict[str, Any]) -> str:
    """Run it in this process, from a file, so that messages can quote its lines."""
    file = Path.cwd() / f"page_line_{block.place.rpartition(':')[2]}.py"
    file.write_text(block.text)
    with redirect_stdout(StringIO()) as printed:
        try:
            exec(compile(block.text, str(file), "exec"), names)
        except Exception as error:
            raise Misled(f"{block.place} raises {type(error).__name__}: {error}") from error
    return printed.getvalue()


def _run_shell(block: Block) -> str:
    done = shell(block.text)
    if done.returncode != int(block.marks.get("exit", "0")):
        raise Misled(f"{block.place} ends with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def shell(script: str) -> subprocess.CompletedProcess[str]:
    """Run commands in the current folder, with the ``tokenlaw`` of this environment."""
    binaries = str(Path(sys.executable).parent)
    environment = os.environ | {
        "PATH": os.pathsep.join([binaries, os.environ["PATH"]]),
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        ["sh", "-e", "-c", script], env=environment, capture_output=True, text=True, timeout=280, check=False
    )


def _require_shown(block: Block, printed: str | None) -> None:
    if printed is None:
        raise Misled(f"{block.place}: no block before it was run that could print this")
    start = 0
    for part in (piece.strip("\n") for piece in block.text.split("...")):
        start = printed.find(part, start)
        if start < 0:
            raise Misled(f"{block.place}: not printed:\n{part}\nbut:\n{printed}")
        start += len(part)


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """Modules are found in the folder and among the examples, and forgotten afterwards."""
    path, known = list(sys.path), set(sys.modules)
    sys.path[:0] = [str(folder), str(ROOT / "examples")]
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - known:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
                del sys.modules[name]
