"""Fake suites and targets in place of ours, in the process of a test and in the children of its audits."""

import functools
from pathlib import Path

import pytest

from tokenlaw import in_process, runner

TARGETS = Path(__file__).parents[1] / "targets"
SUITES, LAWS = "fake_suites:suites", "fake_suites:laws"


def put_in_place(monkeypatch: pytest.MonkeyPatch, folder: Path, registry: str = SUITES) -> None:
    """What a test asks for is asked of the fakes.

    Parameters
    ----------
    monkeypatch : that of the test.
    folder : becomes the working directory.
    registry : ``module:callable`` that returns the suites.
    """
    monkeypatch.syspath_prepend(str(TARGETS))
    monkeypatch.setenv("PYTHONPATH", str(TARGETS))
    load = functools.partial(in_process.load_suites, registry)
    monkeypatch.setattr(in_process, "load_suites", load)
    for name in ("audit", "replay"):
        ours = getattr(runner, name)
        fake = functools.update_wrapper(functools.partial(ours, registry=registry), ours)
        monkeypatch.setattr(runner, name, fake)
    monkeypatch.chdir(folder)
