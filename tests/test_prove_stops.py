"""Ctrl-C during ``tokenlaw prove``: the bounds that are known by then are told; a second one ends it."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tokenlaw.prove_enumeration import SECONDS_AFTER_STOP, Bounds, Named
from tokenlaw.prove_programs import prove_program
from tokenlaw.spec.suites import ignore
from tokenlaw.spec.verdicts import Verdict

PROGRAMS = """
import os, random, signal, time

runs = 0

def interrupt(times):
    # The parent of this process is the command that the user sees.
    global runs
    runs += 1
    if runs == 10:
        for already_sent in range(times):
            time.sleep(already_sent)
            os.kill(os.getppid(), signal.SIGINT)

def tosses():
    return [int(random.random() < 0.5) for _ in range(12)]

def stopped():
    interrupt(1)
    time.sleep(0.01)
    return tosses()

def stopped_twice():
    interrupt(2)
    time.sleep(0.01)
    return tosses()

def law(tokens):
    return [0.5, 0.5]
"""

COMMAND = """
import signal, sys
# Whoever starts the tests may ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
from tokenlaw.cli import run
run()
"""


def proved(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any] | None]:
    """The command with these words, and its row of the report, if there is one."""
    (folder / "programs.py").write_text(PROGRAMS)
    found = subprocess.run(
        [sys.executable, "-P", "-c", COMMAND, "prove", *words, "--json", "report.json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    report = folder / "report.json"
    return found, json.loads(report.read_text())["checks"][0] if report.exists() else None


def require_bounds(statistics: dict[str, Any] | None) -> None:
    """Of twelve even tosses, the equally probable paths that were run, and nothing else, are known."""
    assert statistics is not None
    assert 5 <= statistics["paths"] < 4096  # some paths are run twice
    assert statistics["unexplored"] == pytest.approx(1 - statistics["paths"] / 4096)
    assert statistics["tv_at_least"] == 0
    assert statistics["tv_at_most"] == pytest.approx(statistics["unexplored"])


def test_an_interrupt_gives_the_bounds_so_far(tmp_path: Path) -> None:
    found, row = proved(tmp_path, "programs.py::stopped", "--spec", "programs.py::law")
    assert found.returncode == 2, found.stderr
    assert "not decided: stopped" in found.stdout
    assert "it was stopped (Ctrl-C); run it again, for longer" in found.stdout
    assert "Ctrl-C again ends at once" in found.stderr
    assert row is not None
    require_bounds(row["statistics"])


def stopped_after(runs: int) -> tuple[Named, Bounds]:
    """Twelve tosses, and bounds that stop their enumeration once they have run so often."""
    done: list[int] = []

    def tosses() -> list[int]:
        done.append(1)
        return [int(random.random() < 0.5) for _ in range(12)]

    return Named(tosses, "tosses"), Bounds(stopped=lambda: len(done) >= runs)


def test_a_spec_that_is_a_program_is_followed_to_its_end() -> None:
    tosses, bounds = stopped_after(10)
    found = prove_program(tosses, Named(tosses.function, "the same"), bounds, ignore)
    assert found.verdict is Verdict.UNKNOWN
    require_bounds(found.statistics)


def test_a_law_without_a_spec_is_told_as_far_as_it_goes() -> None:
    tosses, bounds = stopped_after(10)
    found = prove_program(tosses, None, bounds, ignore)
    assert found.verdict is Verdict.NOT_EXERCISED
    assert "of the probability unexplored); nothing was compared with it" in found.message


def test_what_is_certain_already_is_refuted() -> None:
    tosses, bounds = stopped_after(10)
    found = prove_program(tosses, Named(lambda tokens: [0.9, 0.1], "law_of_a_biased_coin"), bounds, ignore)
    assert found.verdict is Verdict.REFUTED
    assert found.statistics is not None
    assert found.statistics["paths"] < 4096


def test_a_second_interrupt_ends_it_without_a_verdict(tmp_path: Path) -> None:
    found, row = proved(tmp_path, "programs.py::stopped_twice", "--spec", "programs.py::law")
    assert (found.returncode, row) == (130, None)
    assert found.stderr.endswith("tokenlaw: interrupted\n")


def test_a_stopped_spec_has_a_limit_of_its_own() -> None:
    assert Bounds().of_spec == Bounds()
    after = Bounds(seconds=60, stopped=lambda: True).of_spec
    assert (after.seconds, after.stopped()) == (SECONDS_AFTER_STOP, False)
    assert Bounds(seconds=1, stopped=lambda: True).of_spec.seconds == 1


def test_one_path_is_run_whatever_happens() -> None:
    """Where a law has one path, stopping changes nothing."""
    always = Bounds(stopped=lambda: True)
    found = prove_program(Named(lambda: [0], "zero"), Named(lambda tokens: [1.0], "law"), always, ignore)
    assert found.verdict is Verdict.HOLDS
