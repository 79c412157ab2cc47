"""The command line: what it prints, what it writes, and its exit statuses."""

import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tokenlaw
from support.fakes import put_in_place
from tokenlaw import counterexamples, runner
from tokenlaw.cli import main


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fake suites, fake targets, and an empty working directory."""
    put_in_place(monkeypatch, tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_an_audit_that_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "fake_targets:Manager"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    lines = output.out.splitlines()
    assert lines[0] == f"tokenlaw {tokenlaw.__version__}: auditing fake_targets:Manager, profile dev, seed 0"
    assert lines[-4].startswith("not supported for lack of: fork (see `tokenlaw.spec.contracts`")
    assert lines[-2] == "fake_targets:Manager 7.5: holds (1 holds, 1 not supported), profile dev, seed 0"
    assert lines[-1] == "repeat: tokenlaw audit fake_targets:Manager --profile dev --seed 0"
    assert list(Path.cwd().iterdir()) == []


def test_a_refuted_audit_writes_everything_and_its_counterexample_replays(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["audit", "fake_targets:Refuted", "--json", "r.json", "--junit", "r.xml", "--seed", "9"]
    assert (
        main([*command, "--only", "fake/c*", "--contract", "block-manager", "--counterexamples", "found"])
        == 1
    )
    output = capsys.readouterr().out
    saved = Path("found/fake_targets-Refuted/fake-content.json")
    assert "found 2" in output
    assert f"replay: tokenlaw replay {saved} --target fake_targets:Refuted" in output
    data = json.loads(Path("r.json").read_text())
    assert (data["verdict"], data["seed"]) == ("refuted", 9)
    assert data["checks"][0]["counterexample"]["operations"][0]["tokens"] == [4, 9]
    assert data["command"].endswith("--seed 9 --only 'fake/c*' --contract block-manager")
    assert ElementTree.parse("r.xml").getroot().get("failures") == "1"
    assert main(["replay", str(saved), "--target", "fake_targets:Refuted"]) == 1
    assert "refuted: fake/content" in capsys.readouterr().out


def test_a_replay_names_the_target_as_it_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "fake_targets:NAMED"]) == 1
    saved = ".tokenlaw/counterexamples/named/fake-content.json"
    lines = capsys.readouterr().out.splitlines()
    assert f"replay: tokenlaw replay {saved} --target fake_targets:NAMED" in lines
    assert main(["replay", saved, "--target", "fake_targets:NAMED"]) == 1


@pytest.mark.parametrize("name", ["NotExercised", "Dying"])
def test_what_was_not_decided_is_status_2(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", f"fake_targets:{name}"]) == 2
    assert "repeat: " in capsys.readouterr().out
    assert Path(".tokenlaw/counterexamples").exists() == (name == "Dying")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [],
            "say what to do: audit, prove, replay, report, compare, diagram, plan, faults or list (tokenlaw",
        ),
        (["audti"], "No such command 'audti'"),
        (["audit"], "Missing argument"),
        (["audit", "reference", "--bogus"], "No such option: --bogus"),
        (["audit", "reference", "--only", "kv/*", "--only", "law/*"], "--only is given twice; give it once"),
        (["replay", "a", "--device", "cpu", "--target", "b", "--device", "cpu"], "--device is given twice"),
        (["audit", "reference", "--profile", "deepest"], "Invalid value for '--profile'"),
        (["audit", "reference", "--seed", "x"], "Invalid value for '--seed'"),
        (["audit", "reference", "--seed", "-1"], "Invalid value for '--seed'"),
        (["audit", "reference", "--json", "absent/r.json"], "--json absent/r.json: can't be written"),
        (["audit", "reference", "--junit", "."], "--junit .: is a folder; name a file"),
        (["audit", "reference", "--json", "r", "--junit", "./r"], "both name r; name two files"),
        (["audit", "reference", "--json", "/dev/absent/r"], "can't be written"),
        (["audit", "reference", "--counterexamples", "/dev/null/x"], "can't be made: Not a directory"),
        (["audit", "reference", "--json", "a/b", "--counterexamples", "."], "a/b: can't be written"),
        (
            ["audit", "reference", "--json", "a", "--counterexamples", "a/b"],
            "--json a: a folder of that name",
        ),
        (
            ["audit", "reference", "--junit", "a", "--counterexamples", "a"],
            "--junit a: a folder of that name",
        ),
        (["audit", "reference", "--counterexamples", "a" * 300], "can't be made: File name too long"),
        (["replay", "trace.json"], "Missing option '--target'"),
        (["replay", "absent.json", "--target", "reference"], "absent.json: can't be read: No such file"),
    ],
)
def test_bad_use_is_one_line_and_status_3(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 3
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("tokenlaw: ")
    assert message in output.err
    assert output.err.count("\n") == 1
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("option", "place", "message"),
    [
        ("--counterexamples", "/proc/x/y", "can't be made: No such file or directory; name another folder"),
        ("--counterexamples", "/proc/self", "can't be written: No such file or directory"),
        ("--json", "/proc/x.json", "can't be written: no such stream"),
        ("--junit", "/proc/version", "can't be written: "),
    ],
)
def test_places_that_only_seem_to_be_writable_are_bad_use(
    option: str, place: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever runs this, root too."""
    assert main(["audit", "reference", option, place]) == 3
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"tokenlaw: {option} {place}: {message}")
    assert output.err.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_is_full_in_the_end_hides_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "fake_targets:Manager", "--json", "/dev/full", "--junit", "r.xml"]) == 3
    output = capsys.readouterr()
    assert "fake_targets:Manager" in output.out
    assert output.err == "tokenlaw: --json /dev/full: couldn't be written: No space left on device\n"
    assert Path("r.xml").exists()


def test_bad_use_that_the_child_finds_writes_no_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "fake_targets:Manager", "--only", "zzz", "--json", "r.json"]) == 3
    message = "--only 'zzz' matches no check; known: fake/content, fake/forks, store/content"
    assert capsys.readouterr() == ("", f"tokenlaw: {message}\n")
    assert list(Path.cwd().iterdir()) == []


def test_a_newer_trace_is_bad_use(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        runner, "replay", functools.partial(runner.replay, registry="tokenlaw.properties.suites:suites")
    )
    Path("newer.json").write_text('{"schema": "tokenlaw.trace/2", "operations": []}')
    assert main(["replay", "newer.json", "--target", "fake_targets:Manager"]) == 3
    expected = "newer.json: schema 'tokenlaw.trace/2'; this version of tokenlaw reads 'tokenlaw.trace/1'"
    assert capsys.readouterr().err == f"tokenlaw: {expected}\n"


def test_a_fault_of_tokenlaw_is_status_4_and_saved(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        error = ZeroDivisionError("in the runner")
        error.add_note("Failing test case: example(\n)")
        raise error

    monkeypatch.setattr(runner, "audit", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert main(["audit", "reference"]) == 4
    error = capsys.readouterr().err
    assert error.startswith(
        "tokenlaw: fault of tokenlaw itself (ZeroDivisionError: in the runner); details: "
    )
    (saved,) = tmp_path.glob("tokenlaw-fault-*.txt")
    assert "in fail" in saved.read_text()


def test_an_interrupt_is_status_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "audit", interrupt)
    assert main(["audit", "reference"]) == 130
    assert capsys.readouterr().err == "tokenlaw: interrupted\n"


def test_a_fault_without_a_folder_to_save_it_is_told_in_full(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("in the runner")

    monkeypatch.setattr(runner, "audit", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    assert main(["audit", "reference"]) == 4
    assert "Traceback" in capsys.readouterr().err


def test_counterexamples_that_cannot_be_saved_hide_no_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(counterexamples, "write_whole", full)
    assert main(["audit", "fake_targets:Refuted"]) == 1
    output = capsys.readouterr().out
    assert "the counterexample couldn't be saved: no space left" in output
    assert "fake_targets:Refuted 7.5: refuted" in output


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert "reference (" in capsys.readouterr().out
    assert main(["list", "--json"]) == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert listed["reference"]["installed"]
    assert "fork" in listed["reference"]["contracts"]["block-manager"]


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tokenlaw {tokenlaw.__version__}\n"
    assert main(["--help"]) == 0
    assert "replay" in capsys.readouterr().out
    run = subprocess.run(
        [sys.executable, "-m", "tokenlaw", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"tokenlaw {tokenlaw.__version__}\n"
