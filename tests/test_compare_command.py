"""The command ``tokenlaw compare``: lines, Markdown and JSON, matrices of faults, files that it refuses."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.pages import HOSTILE, compared, evidence, holding_law, hostile_report, report_of
from tokenlaw import terminal
from tokenlaw.cli import main
from tokenlaw.comparing_reports import side_of_matrix
from tokenlaw.comparing_views import to_data, to_markdown
from tokenlaw.report import Report
from tokenlaw.spec.verdicts import Verdict


def write(folder: Path, **reports: Report | Mapping[str, Any]) -> list[str]:
    paths = []
    for name, report in reports.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(report.to_data() if isinstance(report, Report) else report))
        paths.append(str(path))
    return paths


def test_the_command_tells_what_is_worse_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = report_of(evidence("kv/a", Verdict.REFUTED), evidence("kv/b", Verdict.HOLDS), holding_law())
    new = report_of(evidence("kv/a", Verdict.HOLDS), evidence("kv/b", Verdict.UNKNOWN, "hung"), holding_law())
    paths = write(tmp_path, old=old, new=replace(new, seed=6))
    assert main(["compare", *paths]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"old: mine:make 1.0: refuted ({paths[0]})",
        f"new: mine:make 1.0: unknown ({paths[1]})",
        "",
        "the runs differ, so not every change need be the target's:",
        "  seed  5 -> 6",
        "",
        "worse     kv/b  holds -> unknown: hung",
        "better    kv/a  refuted -> holds",
        "worse (1 worse, 1 better, 1 same)",
    ]
    assert main(["compare", paths[0], paths[0]]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "nothing is worse (3 same)"


def test_json_and_markdown_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = report_of(evidence("kv/a", Verdict.HOLDS), holding_law())
    new = report_of(evidence("kv/a", Verdict.NOT_EXERCISED, "no fork"), holding_law())
    files = ["--json", str(tmp_path / "c.json"), "--markdown", "-"]
    assert main(["compare", *write(tmp_path, old=old, new=new), *files]) == 1
    data = json.loads((tmp_path / "c.json").read_text())
    assert data["schema"] == "tokenlaw.comparison/1"
    assert (data["worse"], data["summary"], data["same"]) == (True, "1 worse, 1 same", 1)
    (row,) = data["checks"]
    assert (row["change"], row["check"], row["notes"]) == ("worse", "kv/a", ["no fork"])
    assert (row["old"]["verdict"], row["new"]["verdict"]) == ("holds", "not exercised")
    shown = capsys.readouterr()
    assert "worse (1 worse, 1 same)" in shown.err
    assert to_markdown(compared(old, new)).decode().splitlines()[0] == "## ✗ worse (1 worse, 1 same)"


def test_texts_of_strangers_stay_text() -> None:
    found = compared(report_of(evidence(HOSTILE, Verdict.HOLDS)), hostile_report())
    markdown = to_markdown(found).decode()
    assert "document.title" in markdown
    assert "<script" not in markdown
    assert "<img" not in markdown
    assert json.dumps(to_data(found))


def fault(name: str, verdict: str, *checks: str) -> dict[str, Any]:
    return {
        "name": name,
        "family": "kv",
        "verdict": verdict,
        "refuted": [{"check": check} for check in checks],
    }


def matrix(*faults: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    return {"schema": "tokenlaw.faults/1", "faults": list(faults), **others}


def test_a_fault_that_is_missed_now_is_worse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = matrix(
        fault("torn", "killed", "kv/content"), fault("seen", "killed", "kv/a", "kv/b", "kv/c"), seed=0
    )
    new = matrix(fault("torn", "missed"), fault("seen", "killed", "kv/a"), seed=1)
    assert main(["compare", *write(tmp_path, old=old, new=new)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("old: 2 of 2 faults killed, silent on 0 of 0 innocents")
    assert lines[-3:] == [
        "worse     torn  killed -> missed",
        "weaker    seen  killed: 3 -> 1 checks see it",
        "worse (1 worse, 1 weaker)",
    ]


REPORT = report_of(holding_law()).to_data()


@pytest.mark.parametrize(
    ("damaged", "told"),
    [
        ({}, "neither a report of an audit nor a matrix of faults: schema None"),
        ({"schema": "tokenlaw.report/99"}, "schema 'tokenlaw.report/99', expected 'tokenlaw.report/1'"),
        ({"schema": "tokenlaw.report/1"}, "a damaged report: Object missing required field `target`"),
        (REPORT | {"checks": REPORT["checks"] * 2}, "damaged: law/chi-square is there twice"),
        (
            REPORT | {"checks": [REPORT["checks"][0] | {"verdict": "fine"}]},
            "a damaged report: law/chi-square has the unknown verdict 'fine'",
        ),
        (matrix(fault("torn", "killed")), "compare two of one kind"),
    ],
)
def test_a_file_that_cannot_be_compared_is_bad_use(
    damaged: dict[str, Any], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = write(tmp_path, old=damaged, new=REPORT)
    assert main(["compare", *paths]) == 3
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_a_damaged_matrix_and_a_missing_file_are_bad_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = write(tmp_path, old=matrix(fault("torn", "seen")))
    assert main(["compare", path, path]) == 3
    assert "a damaged matrix of faults: torn has the unknown verdict 'seen'" in capsys.readouterr().err
    assert main(["compare", path, str(tmp_path / "gone.json")]) == 3
    assert "gone.json: can't be read: No such file" in capsys.readouterr().err


def test_two_outputs_need_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = write(tmp_path, old=REPORT)
    assert main(["compare", path, path, "--json", "-", "--markdown", "-"]) == 3
    assert "--json and --markdown both name" in capsys.readouterr().err


def test_a_matrix_is_a_side_like_a_report() -> None:
    side = side_of_matrix(
        matrix(fault("torn", "killed"), complete=False, command="tokenlaw faults --family kv"), "m"
    )
    assert side.facts["complete"] == "no"
    assert side.facts["selected"] == "--family kv"
    assert side.states["kv", "torn"].good


def test_a_terminal_gets_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "is_interactive", lambda: True)
    monkeypatch.setenv("COLUMNS", "140")
    old = report_of(evidence("kv/a", Verdict.HOLDS))
    new = report_of(evidence("kv/a", Verdict.REFUTED, "[bold]torn[/bold]"))
    assert main(["compare", *write(tmp_path, old=old, new=new)]) == 1
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "kv/a" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "worse",
        "kv/a",
        "block-manager",
        "holds -> refuted",
        "[bold]torn[/bold]",
    ]
