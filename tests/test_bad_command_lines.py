"""Silly values on the command line: exit status 3, one line, nothing written."""

from pathlib import Path

import pytest

from tokenlaw.cli import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("audit reference --seed -1", "--seed"),
        ("audit reference --seed 1.5", "--seed"),
        ("audit reference --alpha nan", "alpha nan: expected a number between 0 and 1"),
        ("audit reference --alpha x", "--alpha"),
        ("audit reference --tolerance 1", "tolerance 1.0: expected 0 or a number below 1"),
        ("audit reference --tolerance inf", "tolerance inf: expected 0 or a number below 1"),
        ("audit reference --budget 0", "--budget"),
        ("audit reference --profile 3", "--profile"),
        ("audit reference --claims 3", "--claims"),
        ("audit reference --continue .", ".: can't be read: Is a directory"),
        ("audit reference --json .", "--json .: is a folder; name a file"),
        ("prove a.py::b --seconds inf", "seconds inf: expected a number, 0 or more"),
        ("prove a.py::b --tolerance 2", "tolerance 2.0: expected 0 or a number below 1"),
        ("prove a.py::b --max-paths 0", "--max-paths"),
        ("replay . --target reference", ".: can't be read: Is a directory"),
        ("diagram . --output a.pdf", "--output a.pdf: name a file that ends in"),
        ("report . --html a.html", ".: can't be read: Is a directory"),
        ("faults --processes 0", "--processes"),
        (
            "plan --tv nan --vocab 8",
            "the total variation to plan for must be above 0 and at most 1, but is nan",
        ),
    ],
)
def test_the_command_line_says_it_in_one_line_and_writes_nothing(
    arguments: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments.split()) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tokenlaw: ")
    assert message in line
    assert list(tmp_path.iterdir()) == []
