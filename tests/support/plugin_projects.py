"""Projects for the tests of the pytest plugin: fake suites, fake targets, audits in the same process."""

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tokenlaw import checks, in_process, runner
from tokenlaw.protocol import Request
from tokenlaw.report import Report, Target
from tokenlaw.session import Session
from tokenlaw.spec.suites import ignore

TARGETS = Path(__file__).parents[1] / "targets"
FAKES = "fake_suites:suites"
MODULE = """
import pytest

@pytest.mark.tokenlaw_contract("block-manager")
def test_manager(tokenlaw_check):
    tokenlaw_check()

@pytest.mark.tokenlaw_contract("kv-store")
def test_store(tokenlaw_check):
    tokenlaw_check()
"""
CONFTEST_HERE = """
from support import plugin_projects

plugin_projects.put_fakes_in_place()
"""
"""Fakes in place of the suites of another pytest; its audits are in its own process, which saves a start."""

FEW_PLUGINS = ("-p", "no:benchmark", "-p", "no:hypothesispytest", "-p", "no:jaxtyping")
"""Others' plugins take most of the time in which pytest starts."""


def audit_here(target: str, *, registry: str = FAKES, **options: Any) -> Report:
    """`runner.audit` on the fake suites, in this process: quick."""
    options["contracts"] = tuple(options["contracts"])
    session = Session(Request(target, "", registry=registry, **options))
    evidence = tuple(session.run(ignore, lambda _: None))
    described = Target(session.name, session.version, session.to_run, typed=target)
    command = f"repeat {options['contracts']}"
    return Report(described, evidence, options["profile"], options["seed"], {}, command)


def require_usable_here(target: str, *, registry: str = FAKES, **options: Any) -> None:
    """`runner.require_usable` likewise."""
    Session(Request(target, registry=registry, **options))


def prepare(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, registry: str = FAKES) -> None:
    """Put the fakes in place of the suites, and their folder where modules are found."""
    for module, name, fake in _fakes(registry):
        monkeypatch.setattr(module, name, fake)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TARGETS), str(TARGETS.parent)]))
    monkeypatch.syspath_prepend(str(TARGETS))
    pytester.makepyfile(test_engine=MODULE)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with one test of each contract, for modules whose ``pytest_plugins`` name this one."""
    prepare(pytester, monkeypatch)
    return pytester


def put_fakes_in_place(registry: str = FAKES) -> None:
    """As `prepare`, for good: in a process of its own."""
    for module, name, fake in _fakes(registry):
        setattr(module, name, fake)


def _fakes(registry: str) -> Iterator[tuple[ModuleType, str, Any]]:
    load = functools.partial(checks.load_suites, registry)
    yield checks, "load_suites", load
    yield in_process, "load_suites", load
    yield runner, "audit", functools.partial(audit_here, registry=registry)
    yield runner, "require_usable", functools.partial(require_usable_here, registry=registry)
