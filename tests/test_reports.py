"""Reports as JSON, JUnit XML, lines and tables; counterexamples as files. Strangers' text harms none."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tokenlaw import counterexamples, junit, terminal
from tokenlaw.errors import BadUse
from tokenlaw.properties.trace import New, Trace, load, to_data
from tokenlaw.report import Report, Target
from tokenlaw.spec.contracts import BLOCK_MANAGER
from tokenlaw.spec.verdicts import Check, Evidence, Severity, Verdict
from tokenlaw.writing import require_writable, write_whole

HOSTILE = "first [bold]line[/bold] <&>\"'\x1b[31m\x00\ud800]]>\nsecond line\uffff"
TRACE = Trace((New((1, 2)),))


def evidence(name: str, verdict: Verdict, message: str = "", **options: object) -> Evidence:
    check = Check(name, "K1", "The claim [red]holds.", BLOCK_MANAGER, Severity.WRONG_CONTENT)
    return Evidence(check, verdict, {"fork": 3}, 12, 0.25, message, **options)


@pytest.fixture
def report() -> Report:
    rows = (
        evidence("kv/good", Verdict.HOLDS),
        evidence("kv/bad", Verdict.REFUTED, HOSTILE, counterexample=to_data(TRACE)),
        evidence("kv/crash", Verdict.UNKNOWN, "Traceback"),
        evidence("kv/rare", Verdict.NOT_EXERCISED, "never happened: fork"),
        evidence("kv/absent", Verdict.NOT_SUPPORTED, "needs fork"),
    )
    target = Target("mine:[make]", "1.0", (BLOCK_MANAGER,), {BLOCK_MANAGER: ("fork",)})
    return Report(target, rows, "dev", 5, {"python": "3.11"}, "tokenlaw audit mine:[make]", 2.5)


def test_the_json_envelope(report: Report, tmp_path: Path) -> None:
    report.write_json(tmp_path / "report.json")
    data = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    checks = data.pop("checks")
    assert data == {
        "schema": "tokenlaw.report/1",
        "spec_version": "1",
        "target": {
            "name": "mine:[make]",
            "version": "1.0",
            "address": "",
            "contracts": [BLOCK_MANAGER],
            "capabilities": {BLOCK_MANAGER: ["fork"]},
        },
        "verdict": "refuted",
        "strongest_claim": None,
        "seed": 5,
        "profile": "dev",
        "versions": {"python": "3.11"},
        "command": "tokenlaw audit mine:[make]",
        "settings": {
            "device": "cpu",
            "claims": None,
            "alpha": 1e-9,
            "budget": None,
            "tolerance": 0.0,
            "continued": [],
        },
        "controls": {},
        "ledger": [],
    }
    assert checks[0] == {
        "id": "kv/good",
        "rule": "K1",
        "contract": BLOCK_MANAGER,
        "title": "The claim [red]holds.",
        "verdict": "holds",
        "severity": "wrong content",
        "exercised": {"fork": 3},
        "operations": 12,
        "seconds": 0.25,
        "message": "",
        "counterexample": None,
        "statistics": None,
        "known": "",
        "frames": [],
    }
    assert checks[1]["counterexample"]["schema"] == "tokenlaw.trace/1"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_a_write_that_fails_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    path = tmp_path / "report.json"
    write_whole(path, b"old")
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["report.json"]


def test_links_and_streams_are_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    require_writable(tmp_path / "link", "--json")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", b"streamed")
    assert os.read(reader, 100) == b"streamed"
    assert (tmp_path / "pipe").is_fifo()


def test_junit_has_a_case_a_check(report: Report) -> None:
    root = ElementTree.fromstring(junit.to_xml(report))
    totals = {"tests": "5", "failures": "1", "errors": "1", "skipped": "2", "time": "2.500"}
    assert root.attrib == totals
    suite = root.find("testsuite")
    assert suite is not None
    outcomes = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert outcomes == {
        "kv/good": [],
        "kv/bad": ["failure"],
        "kv/crash": ["error"],
        "kv/rare": ["skipped"],
        "kv/absent": ["skipped"],
    }
    assert suite.find("testcase/skipped").get("message") == "not exercised: never happened: fork"
    failure = suite.find("testcase/failure")
    assert failure.text == "first [bold]line[/bold] <&>\"'\\x1b[31m\\x00\\ud800]]>\nsecond line\\uffff"
    assert failure.get("message") == "refuted: first [bold]line[/bold] <&>\"'\\x1b[31m\\x00\\ud800]]>"


def test_plain_lines(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show(report, {"kv/bad": Path("saved.json")})
    output = capsys.readouterr().out
    lines = output.splitlines()
    assert lines[0] == "holds          kv/good (K1) The claim [red]holds. [12 operations]"
    assert "\x1b" not in output
    assert "first [bold]line[/bold] <&>\"'\\x1b[31m\\x00\\ud800]]>" in lines
    assert "saved:  saved.json" in lines
    assert "replay: tokenlaw replay saved.json --target 'mine:[make]'" in lines
    assert lines[-2].startswith(
        "mine:[make] 1.0: refuted (1 refuted, 1 unknown, 1 not exercised, 1 holds, 1 not"
    )
    assert lines[-1] == "repeat: tokenlaw audit mine:[make]"


def test_a_terminal_gets_a_table(
    report: Report, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "is_interactive", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    with terminal.progress() as tell:
        tell("[bold]traces", 1, 2)
    terminal.show(report, {"kv/bad": Path("saved.json")})
    output = capsys.readouterr().out
    assert "The claim [red]holds." in output
    assert "first [bold]line[/bold] <&>\"'\\x1b[31m\\x00\\ud800]]>" in output
    assert "replay: tokenlaw replay saved.json --target 'mine:[make]'" in output


def test_a_narrow_terminal_gets_whole_lines(
    report: Report, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "is_interactive", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    terminal.show(report, {})
    assert "not exercised  kv/rare (K1) The claim [red]holds. [12 operations]\n" in capsys.readouterr().out


def test_a_closed_stdout_is_not_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert not terminal.is_interactive()


def test_ci_is_not_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("CI", raising=False)
    assert terminal.is_interactive()
    monkeypatch.setenv("CI", "true")
    assert not terminal.is_interactive()


def test_counterexamples_are_saved_and_read_again(report: Report, tmp_path: Path) -> None:
    saved = counterexamples.save(report, tmp_path)
    assert saved == {"kv/bad": tmp_path / "mine--make-" / "kv-bad.json"}
    assert load(saved["kv/bad"]) == TRACE
    assert counterexamples.load(saved["kv/bad"])["operations"][0]["tokens"] == [1, 2]
    assert counterexamples.in_words(counterexamples.load(saved["kv/bad"])).endswith(
        "1. new sequence 0: tokens 1 2"
    )


def test_an_attention_case_in_words() -> None:
    assert counterexamples.in_words({"schema": "tokenlaw.attention/1", "lengths": [3]}).startswith("case: ")


def test_a_scenario_of_laws_in_words() -> None:
    data = {"schema": "tokenlaw.law/1", "contract": "verifier", "scenario": "filters", "seed": 3}
    assert counterexamples.in_words(data) == "part of a run: scenario filters, seed 3"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "damaged, not JSON"),
        (b'{"schema": "tokenlaw.trace/1", "schema": "tokenlaw.trace/1"}', "the key 'schema' stands twice"),
        (b"\xff", "damaged, not JSON"),
        (b"[" * 100_000, "damaged, not JSON"),
        (b"[]", "not a counterexample: schema None"),
        (b'{"schema": 3}', "not a counterexample: schema 3"),
        (b'{"schema": "tokenlaw.report/1"}', "not a counterexample: schema 'tokenlaw.report/1'"),
    ],
)
def test_a_damaged_counterexample_is_bad_use(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(BadUse, match=message):
        counterexamples.load(path)


def test_places_that_cannot_be_written_are_bad_use(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadUse, match="is a folder"):
        require_writable(tmp_path, "--json")
    with pytest.raises(BadUse, match="can't be written: No such file"):
        require_writable(tmp_path / "absent" / "report.json", "--json")
    with pytest.raises(BadUse, match="can't be made: Not a directory; name another folder"):
        counterexamples.require_folder(tmp_path / "file" / "below")
    require_writable(tmp_path / "report.json", "--json")
    counterexamples.require_folder(tmp_path / "absent" / "below")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_terminal_without_unicode_shows_escapes() -> None:
    command = [sys.executable, "-P", "-m", "tokenlaw", "replay", "\u00e9", "--target", "x"]
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert run.returncode == 3
    assert run.stderr == b"tokenlaw: \\xe9: can't be read: No such file or directory\n"
