"""Notebooks and scripts as programs: what is run of them, and what they say when they can't be."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tokenlaw.errors import BadUse
from tokenlaw.prove_loading import Loader
from tokenlaw.prove_notebooks import python_cell


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An empty working directory; modules and paths of a test end with it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", "") and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def notebook(path: str, *cells: str) -> None:
    """Write a notebook with a text cell before its code."""
    data = [{"cell_type": "markdown", "source": ["# Title"]}]
    data += [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    Path(path).write_text(json.dumps({"cells": data, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


@pytest.mark.parametrize(
    ("source", "kept", "skipped"),
    [
        ("x = 1\ny = 2", "x = 1\ny = 2", ()),
        ("%time x = 1\ny = 2", "pass\ny = 2", ("%time x = 1",)),
        ("if x:\n    !ls\ny = (x\n % 2)", "if x:\n    pass\ny = (x\n % 2)", ("!ls",)),
        ("files = !ls\nprint?", "pass\npass", ("files = !ls", "print?")),
        ("%%time\nx = 1", "pass\nx = 1", ("%%time",)),
        ("%%writefile a.py\nx = 1", "", ("%%writefile a.py", "x = 1")),
        ("y = (x\n % 2)", "y = (x\n % 2)", ()),
    ],
)
def test_what_only_ipython_understands_is_left_out(source: str, kept: str, skipped: tuple[str, ...]) -> None:
    cell = python_cell(1, source)
    assert (cell.source, cell.skipped) == (kept, skipped)


def test_the_cells_of_a_notebook_share_their_names() -> None:
    notebook(
        "n.ipynb", "%matplotlib inline\nfactor = 3", "def thrice(x): return factor * x\ndisplay(thrice(1))"
    )
    loader = Loader()
    assert loader.load("n.ipynb::thrice")(2) == 6
    assert loader.notes == ["not run: %matplotlib inline (cell 1)"]


def test_cells_after_the_last_one_that_defines_the_name_are_not_run() -> None:
    notebook(
        "n.ipynb",
        "def step(): return 1",
        "runs = ['early']\ndef step(): return 2",
        "runs.append('late')\nabsent()",
        "def law(): return len(runs)",
    )
    loader = Loader()
    assert loader.load("n.ipynb::step")() == 2
    assert loader.load("n.ipynb::runs") == ["early"]
    assert loader.notes == []
    with pytest.raises(BadUse, match=r"n.ipynb::law: cell 3, line 2 `absent\(\)`, failed: NameError"):
        loader.load("n.ipynb::law")


def test_what_functions_use_is_run_though_it_comes_later_and_its_faults_are_noted() -> None:
    notebook(
        "n.ipynb",
        "def step(): return [helper() for _ in range(2)]",
        "x = 1",
        "def helper(): return x",
        "1 / 0\ndef never(): return 0",
    )
    loader = Loader()
    assert loader.load("n.ipynb::step")() == [1, 1]
    assert loader.notes == []
    notebook("m.ipynb", "def step(): return helper", "1 / 0", "helper = 3")
    assert loader.load("m.ipynb::step") is loader.load("m.ipynb::step")
    (note,) = loader.notes
    assert note.startswith("m.ipynb::step: cell 2, line 1 `1 / 0`, failed: ZeroDivisionError")
    assert note.endswith("it comes after step")


def test_a_name_that_no_cell_is_seen_to_define_is_looked_for_in_all_of_them() -> None:
    notebook("n.ipynb", "x = 1", "globals()['hidden'] = lambda: x")
    assert Loader().load("n.ipynb::hidden")() == 1


def test_a_script_runs_once_under_its_name_and_finds_its_neighbours() -> None:
    Path("folder").mkdir()
    Path("folder/other_one.py").write_text("NUMBER = 5")
    Path("folder/the_script.py").write_text(
        "from dataclasses import dataclass\nfrom other_one import NUMBER\n"
        "runs = globals().get('runs', 0) + 1\n"
        "@dataclass\nclass Kept:\n    number: int = NUMBER\ndef get(): return Kept().number, runs, __name__\n"
        "if __name__ == '__main__': raise SystemExit"
    )
    loader = Loader()
    assert loader.load("folder/the_script.py::get")() == (5, 1, "the_script")
    assert loader.load("folder/../folder/the_script.py::get")() == (5, 1, "the_script")
    assert loader.load("folder/the_script.py::Kept.number") == 5


def test_a_script_named_like_a_module_replaces_none() -> None:
    Path("random.py").write_text("def get(): return __name__")
    assert Loader().load("random.py::get")() == "random (file)"
    assert sys.modules["random"].__name__ == "random"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("absent.py::f", r"absent.py::f: there is no file absent.py"),
        ("text.txt::f", "text.txt is neither a script"),
        ("::f", "write file.py::function"),
        ("fine.py::", "write file.py::function"),
        ("fine.py::g", "fine has no attribute 'g'; known: f"),
        ("broken.py::f", "is not Python: SyntaxError"),
        ("failing.py::f", r"the script, line 2 `1 / 0`, failed: ZeroDivisionError"),
        ("leaving.py::f", r"the script, line 1 .*failed: SystemExit: 3"),
        ("failing.ipynb::f", r"cell 2, line 2 `absent\(\)`, failed: NameError"),
        ("broken.ipynb::f", r"cell 1: is not Python"),
        ("empty.ipynb::f", "is not a notebook of format 4"),
        ("binary.py::f", "can't be read|is not Python"),
    ],
)
def test_what_cannot_be_loaded_says_why(address: str, message: str) -> None:
    Path("fine.py").write_text("def f(): pass")
    Path("text.txt").write_text("")
    Path("broken.py").write_text("def f(:")
    Path("failing.py").write_text("x = 0\n1 / 0\n")
    Path("leaving.py").write_text("raise SystemExit(3)")
    Path("binary.py").write_bytes(b"\xff\xfe\x00")
    Path("empty.ipynb").write_text("")
    notebook("failing.ipynb", "x = 1", "y = 2\nabsent()")
    notebook("broken.ipynb", "def f(:")
    with pytest.raises(BadUse, match=message):
        Loader().load(address)
