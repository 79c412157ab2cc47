"""What tokenlaw adds to the start of Python, of pytest and of its own command line.

Run with ``pytest benchmarks/bench_startup.py -s``. Processes with and without tokenlaw are started in turn,
so that a busy machine slows both; what is told is the median of the differences in processor time, which
neither waits for a disk nor for other processes.
"""

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROUNDS = 15
PYTHON = [sys.executable, "-P"]
PYTEST = [*PYTHON, "-m", "pytest", "--collect-only", "-q"]
ALONE = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Plugins of other packages cost what they cost, and would hide what this one does."""
ADDED = {
    "import tokenlaw": ([*PYTHON, "-c", "import tokenlaw"], [*PYTHON, "-c", "pass"], 0.050),
    "pytest's start": ([*PYTEST, "-p", "tokenlaw.pytest_plugin"], PYTEST, 0.050),
    "tokenlaw --help": ([*PYTHON, "-m", "tokenlaw", "--help"], None, 0.300),
}
"""What is started, what it is compared with, and the seconds that it may take at most."""


def processor_seconds(command: list[str] | None, folder: Path) -> float:
    """Processor time of a command, start of Python included; 0 for no command."""
    if command is None:
        return 0.0
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=ALONE, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.timeout(600)
@pytest.mark.parametrize("what", ADDED)
def test_start(what: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    command, rival, most = ADDED[what]
    (tmp_path / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
    processor_seconds(command, tmp_path)  # compiles what isn't compiled yet
    added = [processor_seconds(command, tmp_path) - processor_seconds(rival, tmp_path) for _ in range(ROUNDS)]
    median = statistics.median(added)
    print(
        f"{what}: {1000 * median:.1f} ms of processor time (at most {1000 * most:.0f}), "
        f"{1000 * min(added):.1f} to {1000 * max(added):.1f} in {ROUNDS} rounds"
    )
    record_property("milliseconds", round(1000 * median, 1))
    assert median < most
