"""The package that is installed: names, version, what an import costs."""

import importlib.metadata
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


@pytest.mark.parametrize("module", ["tokenlaw", "tokenlaw.pytest_plugin", "tokenlaw.cli"])
def test_light_modules_import_nothing_heavy(module: str) -> None:
    heavy = "{'torch', 'scipy', 'hypothesis'}"
    program = f"import {module}, sys; print(*({heavy} & sys.modules.keys()))"
    run = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


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
