"""The time that counts against a budget."""

from pathlib import Path

import pytest

from tokenlaw.spec import stopwatch
from tokenlaw.spec.stopwatch import Stopwatch


def test_processor_time_counts_and_a_third_of_the_clock_without_what_others_had(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now = {"perf_counter": 0.0, "process_time": 0.0}
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: now["perf_counter"])
    monkeypatch.setattr(stopwatch.time, "process_time", lambda: now["process_time"])
    monkeypatch.setattr(stopwatch, "SCHEDULING", tmp_path / "schedstat")
    used = Stopwatch()
    now.update(perf_counter=9.0, process_time=1.0)
    assert used() == 3.0
    now.update(process_time=8.0)
    assert used() == 8.0
    now.update(process_time=0.5)
    (tmp_path / "schedstat").write_text("500000000 6000000000 12\n")
    assert used() == 1.0
    (tmp_path / "schedstat").write_text("nothing that is known\n")
    assert used() == 3.0
