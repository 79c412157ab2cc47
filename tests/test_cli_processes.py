"""The command line as a process: readers that go away, signals, reports on the standard output."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TARGETS = Path(__file__).parent / "targets"


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fake targets, and an empty working directory."""
    monkeypatch.setenv("PYTHONPATH", str(TARGETS))
    monkeypatch.chdir(tmp_path)


START = (
    "import functools; from tokenlaw import cli, runner;"
    "runner.audit = functools.partial(runner.audit, registry='fake_suites:suites'); cli.run()"
)


def test_a_reader_that_goes_away_is_no_verdict() -> None:
    command = [sys.executable, "-c", START, "audit", "fake_targets:Refuted"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_sigterm_ends_the_child_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINGERING_PID", str(tmp_path / "pid"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    with subprocess.Popen(
        [sys.executable, "-c", START, "audit", "fake_targets:Hanging"], stdout=subprocess.DEVNULL
    ) as process:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.02)
        process.terminate()
        assert process.wait() == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("name", ["-", pytest.param("/dev/stdout", marks=pytest.mark.slow)])
def test_a_report_on_stdout_is_alone_there(name: str) -> None:
    command = [sys.executable, "-c", START, "audit", "fake_targets:Manager", "--json", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["verdict"] == "holds"
    assert done.stderr.endswith("repeat: tokenlaw audit fake_targets:Manager --profile dev --seed 0\n")
