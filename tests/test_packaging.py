"""The package that is installed: names, version, what an import costs."""

import importlib.metadata
import subprocess
import sys

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
