"""The package that is installed: names, version, what an import costs."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tokenlaw


def test_version_is_that_of_the_distribution() -> None:
    assert tokenlaw.__version__ == importlib.metadata.version("tokenlaw")


def test_adapters_and_plugin_are_registered() -> None:
    names = {point.name for point in importlib.metadata.entry_points(group="tokenlaw.implementations")}
    assert {"reference", "torch-paged-attention", "transformers-dynamic-cache"} <= names
    assert "tokenlaw" in {point.name for point in importlib.metadata.entry_points(group="pytest11")}


HEAVY = {"torch", "numpy", "scipy", "hypothesis", "rich"}
FACE = {"rich", "typer", "jinja2", "pytest"}


@pytest.mark.parametrize(
    ("modules", "unneeded"),
    [
        ("tokenlaw", HEAVY | FACE | {"msgspec"}),
        ("tokenlaw.pytest_plugin", HEAVY),
        ("tokenlaw.cli", HEAVY),
        # What checks, proofs and child processes import.
        ("tokenlaw.api, tokenlaw.prove_here, tokenlaw.child, tokenlaw.suites", FACE),
    ],
)
def test_nothing_is_imported_that_is_not_needed(modules: str, unneeded: set[str]) -> None:
    program = f"import {modules}, sys; print(*({unneeded} & sys.modules.keys()))"
    run = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


@pytest.mark.parametrize(
    "start",
    [
        "import pytest; pytest.main(['--collect-only', '-p', 'tokenlaw.pytest_plugin'])",
        "from tokenlaw.cli import main; main(['--help'])",
    ],
)
def test_a_command_starts_without_what_it_does_not_need(start: str, tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
    # Plugins of other packages import what they like.
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-P", "-c", f"{start}; import sys; print('imported', *sys.modules)"]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    (line,) = [line for line in run.stdout.splitlines() if line.startswith("imported ")]
    assert {"tokenlaw", "tokenlaw.errors"} <= set(line.split())
    assert not HEAVY & set(line.split())


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder in which ``tokenlaw`` has no sub-packages, as in the root of a checkout."""
    (tmp_path / "tokenlaw").mkdir()
    shutil.copy(tokenlaw.__file__, tmp_path / "tokenlaw")
    return tmp_path


def test_a_checkout_does_not_hide_the_installed_package(checkout: Path) -> None:
    command = [sys.executable, "-m", "tokenlaw", "--version"]
    run = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    assert run.stdout == f"tokenlaw {tokenlaw.__version__}\n"


def test_a_checkout_alone_says_what_to_do(checkout: Path) -> None:
    command = [sys.executable, "-S", "-c", "import tokenlaw"]
    run = subprocess.run(command, cwd=checkout, env={}, capture_output=True, text=True, check=False)
    assert f"is a source folder: install it first (pip install {checkout})" in run.stderr
