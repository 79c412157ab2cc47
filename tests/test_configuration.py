"""``[tool.tokenlaw]``: where it is found, what it may say, and what it means for an audit."""

from pathlib import Path
from typing import Any

import pytest

from tokenlaw import runner
from tokenlaw.cli import main
from tokenlaw.configuration import Configuration, configuration
from tokenlaw.errors import BadUse
from tokenlaw.report import Report, Target, audit_command
from tokenlaw.spec.suites import Settings

EVERYTHING = """
[tool.tokenlaw]
target = "engine:make"
profile = "ci"
alpha = 1e-6
budget = 20_000
deviations = "known/deviations.toml"
"""


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pyproject.toml"
    path.write_text(text)
    return path


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    path = write(tmp_path, EVERYTHING)
    deviations = tmp_path / "known" / "deviations.toml"
    assert configuration(tmp_path) == Configuration("engine:make", "ci", 1e-6, 20_000, deviations, path)


def test_the_nearest_file_with_the_table_counts(tmp_path: Path) -> None:
    write(tmp_path, EVERYTHING)
    nearest = write(tmp_path / "a", "[tool.tokenlaw]\nprofile = 'deep'\n")
    write(tmp_path / "a" / "b", "[project]\ndependencies = ['tokenlaw']\n")
    (tmp_path / "a" / "b" / "c").mkdir()
    assert configuration(tmp_path / "a" / "b" / "c") == Configuration(profile="deep", file=nearest)


def test_without_a_table_nothing_is_said(tmp_path: Path) -> None:
    write(tmp_path, "this is [no TOML, which is none of our business")
    assert configuration(tmp_path) == Configuration()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool.tokenlaw]\nprofil = 'ci'",
            "[tool.tokenlaw] has the unknown key 'profil'; did you mean 'profile'?",
        ),
        ("[tool.tokenlaw]\nzzz = 1", "unknown key 'zzz'; known: alpha, budget, deviations, profile, target"),
        (
            "[tool.tokenlaw]\nprofile = 'depe'",
            "profile = 'depe': expected a profile's name; did you mean 'deep'?",
        ),
        ("[tool.tokenlaw]\nprofile = 3", "profile = 3: expected a profile's name"),
        (
            "[tool.tokenlaw]\ntarget = ['a']",
            "target = ['a']: expected a text: an adapter's name, or module:attr",
        ),
        ("[tool.tokenlaw]\nalpha = '1e-6'", "alpha = '1e-6': expected a number between 0 and 1"),
        ("[tool.tokenlaw]\nalpha = nan", "alpha = nan: expected a number between 0 and 1"),
        ("[tool.tokenlaw]\nalpha = true", "alpha = true: expected a number between 0 and 1"),
        ("[tool.tokenlaw]\nbudget = 0", "budget = 0: expected a whole number, 1 or more"),
        ("[tool.tokenlaw]\nbudget = 1.5", "budget = 1.5: expected a whole number, 1 or more"),
        ("[tool.tokenlaw]\ndeviations = ''", "deviations = '': expected a text: the path of a file"),
        ("[tool]\ntokenlaw = 3", "tool.tokenlaw is 3: expected a table, [tool.tokenlaw]"),
        ("[tool.tokenlaw\n", "not TOML: "),
    ],
)
def test_what_is_wrong_is_one_line_with_file_and_key(
    text: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(BadUse) as caught:
        configuration(tmp_path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "reference"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `runner.audit` was asked, instead of an audit."""
    heard: list[dict[str, Any]] = []

    def listen(target: str, **asked: Any) -> Report:
        heard.append({"target": target} | asked)
        return Report(Target(target, "1"), (), "dev", 0, {}, "repeat")

    monkeypatch.setattr(runner, "audit", listen)
    return heard


def test_an_audit_takes_its_defaults_from_there(
    audits: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, EVERYTHING)
    write(tmp_path / "known", "").rename(tmp_path / "known" / "deviations.toml")
    monkeypatch.chdir(tmp_path / "known")
    main(["audit"])
    main(["audit", "reference", "--profile", "dev", "--alpha", "0.01", "--budget", "7"])
    (configured, told) = audits
    assert (configured["target"], configured["profile"]) == ("engine:make", "ci")
    assert configured["settings"] == Settings(alpha=1e-6, budget=20_000)
    assert configured["deviations"].source == str(tmp_path / "known" / "deviations.toml")
    assert (told["target"], told["profile"]) == ("reference", "dev")
    assert told["settings"] == Settings(alpha=0.01, budget=7)


def test_a_command_to_repeat_keeps_a_default_that_was_chosen_against_the_table() -> None:
    command = audit_command("a:b", "dev", 3, "*", (), Settings(budget=7), given=["alpha"])
    assert command == "tokenlaw audit a:b --profile dev --seed 3 --alpha 1e-09 --budget 7"


def test_without_a_target_anywhere_one_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["audit"]) == 3
    assert capsys.readouterr().err == "tokenlaw: Missing argument 'target'.\n"


def test_other_commands_do_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "[tool.tokenlaw]\nprofil = 'ci'")
    monkeypatch.chdir(tmp_path)
    assert main(["--version"]) == 0
    assert capsys.readouterr().err == ""
