"""``tokenlaw plan``: samples, seconds here, and the sentence of a report; its bad use."""

import json
from pathlib import Path

import pytest

from tokenlaw.cli import main
from tokenlaw.stats.planner import plan


def test_a_plan_for_people_and_for_programs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "--tv", "0.001", "--vocab", "8", "--tokens", "2", "--json", "plan.json"]) == 0
    data = json.loads(Path("plan.json").read_text())
    expected = plan(0.001, 64)
    assert data["schema"] == "tokenlaw.plan/1"
    assert (data["cells"], data["alpha"], data["beta"]) == (64, 1e-9, 1e-3)
    assert (data["chi_square_samples"], data["gate_samples"]) == (expected.chi_square, expected.gate)
    assert data["chi_square_seconds"] == pytest.approx(expected.chi_square / data["rows_per_second"])
    assert data["sentence"] == expected.sentence
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "TV >= 0.001 over 64 outcomes (2 of 8 tokens), seen with probability 0.999, alpha 1e-09"
    )
    assert lines[1].startswith(f"chi-square: {expected.chi_square:,} samples, ")
    assert (data["test"], data["samples"]) == ("chi-square", expected.samples)
    assert lines[3] == f"fewest:     {expected.samples:,} samples, the chi-square"
    assert lines[-1] == f"report:     {data['sentence']}"


def test_a_plan_on_stdout_is_alone_there(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--tv", "0.01", "--vocab", "8", "--json", "-"]) == 0
    output = capfd.readouterr()
    assert json.loads(output.out)["tv"] == 0.01
    assert output.err.startswith("TV >= 0.01 over 8 outcomes")


def test_a_wide_vocabulary_and_a_coarse_deviation_take_the_gate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--tv", "0.5", "--vocab", "100000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("chi-square: 2,000,000 samples, ")
    assert lines[3].endswith(" samples, the gate")
    assert int(lines[3].split()[1].replace(",", "")) < 6_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tv", "0.1"], "Missing option '--vocab'"),
        (["--tv", "0.1", "--vocab", "1"], "Invalid value for '--vocab'"),
        (["--tv", "0.1", "--vocab", "8", "--tokens", "0"], "Invalid value for '--tokens'"),
        (["--tv", "2", "--vocab", "8"], "above 0 and at most 1, but is 2.0"),
        (["--tv", "nan", "--vocab", "8"], "above 0 and at most 1, but is nan"),
        (["--tv", "0.1", "--vocab", "8", "--alpha", "0"], "alpha"),
        (["--tv", "1e-300", "--vocab", "8"], "no number of samples sees a total variation of 1e-300"),
        (["--tv", "0.1", "--vocab", "8", "--tokens", "9"], "more than 16,777,216 outcomes"),
        (["--tv", "0.1", "--vocab", "8", "--json", "absent/p"], "--json absent/p: can't be written"),
    ],
)
def test_bad_use_is_one_line_and_status_3(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *arguments]) == 3
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err
    assert output.err.count("\n") == 1
