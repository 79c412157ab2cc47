"""Files of known deviations: read, matched to targets, accepted until a day, and refused in one line."""

import json
from pathlib import Path

import pytest

import tokenlaw
from support.fakes import SUITES, put_in_place
from tokenlaw.cli import main
from tokenlaw.deviation_files import read_deviations
from tokenlaw.errors import BadUse
from tokenlaw.protocol import Request
from tokenlaw.session import Session
from tokenlaw.spec.verdicts import Evidence, Verdict

KNOWN = "forks tear (issue 7)"


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_in_place(monkeypatch, tmp_path)


def entry(**fields: str) -> str:
    """A table for ``fake/content``, with these fields, in TOML, in place of its own or beside them."""
    own = {"check": '"fake/content"', "counterexample": '"cases/a.json"', "reason": '"forks tear"'}
    lines = [f"{key} = {value}" for key, value in (own | {"link": '"issue 7"'} | fields).items() if value]
    return "\n".join(["[[deviation]]", *lines, ""])


def file(*entries: str) -> Path:
    """A file with these entries, and the counterexample that they name."""
    from deviating import CASE

    path = Path("known") / "deviations.toml"
    (path.parent / "cases").mkdir(parents=True)
    (path.parent / "cases" / "a.json").write_text(json.dumps(CASE))
    path.write_text("\n".join(entries))
    return path


def row(path: Path, target: str = "fake_targets:Refuted") -> Evidence:
    """What ``fake/content`` gives when the file is known."""
    request = Request(target, registry=SUITES, only="fake/content", deviations=read_deviations(path))
    (found,) = Session(request).run(lambda *_: None, lambda _: None)
    return found


def test_an_entry_mutes_its_check_while_it_stands() -> None:
    found = row(file(entry()))
    assert (found.verdict, found.known) == (Verdict.REFUTED, KNOWN)


def test_an_entry_whose_counterexample_passes_has_expired() -> None:
    found = row(file(entry()), "fake_targets:Manager")
    assert (found.verdict, found.known) == (Verdict.UNKNOWN, "")
    assert (
        found.message
        == f"expired known deviation: {KNOWN}: its counterexample now gives 'holds'; remove the entry"
    )


@pytest.mark.parametrize(("day", "known"), [("9999-12-31", KNOWN), ("2001-01-01", "")])
def test_after_its_last_day_an_entry_excuses_nothing(day: str, known: str) -> None:
    found = row(file(entry(expires=day)))
    assert (found.verdict, found.known) == (Verdict.REFUTED, known)
    overdue = found.message.startswith(f"known deviation, accepted until {day}: {KNOWN}\n")
    assert overdue == (not known)


@pytest.mark.parametrize("days", [("9999-12-31", "2001-01-01"), ("2001-01-01", "9999-12-31")])
def test_one_entry_that_is_not_accepted_any_more_counts_beside_another(days: tuple[str, str]) -> None:
    assert row(file(*(entry(expires=day) for day in days))).known == ""


@pytest.mark.parametrize(
    ("target", "known"),
    [('"fake_targets:*"', KNOWN), ('"fake_targets:Refuted"', KNOWN), ('"other"', ""), ('"fake"', "")],
)
def test_an_entry_may_be_about_some_targets_only(target: str, known: str) -> None:
    assert row(file(entry(target=target))).known == known


def test_an_entry_about_another_contract_is_left_alone() -> None:
    assert row(file(entry(check='"store/content"'))).known == ""


def test_a_check_of_no_contract_is_named() -> None:
    with pytest.raises(
        BadUse, match=r"deviations.toml: known deviation of no check 'fake/contend'; did you mean"
    ):
        row(file(entry(check='"fake/contend"')))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (entry(link=""), "deviations.toml: deviation 1: lacks 'link'"),
        (entry() + entry(reason="3"), "deviations.toml: deviation 2: reason = 3: expected a text"),
        (entry(expire="2030-01-01"), "deviation 1: unknown key 'expire'; did you mean 'expires'?"),
        (entry(expires='"2030-01-01"'), "expires = '2030-01-01': expected a day, such as 2027-03-31 without"),
        (entry(expires="2030-01-01T10:00:00"), "expected a day"),
        (entry(counterexample='"b.json"'), "deviation 1: known/b.json: can't be read: No such file"),
        (entry(counterexample='"deviations.toml"'), "deviation 1: known/deviations.toml: damaged, not JSON"),
        ("[deviation]", "write each known deviation below a line [[deviation]]"),
        ("[[deviations]]", "unknown key 'deviations'; did you mean 'deviation'?"),
        ("{}", "not a file of known deviations, which is TOML"),
    ],
)
def test_what_is_wrong_is_one_line(text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(text)
    assert main(["audit", "fake_targets:Refuted", "--deviations", str(path)]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_the_command_line_takes_a_file_and_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    path = file(entry())
    Path("pyproject.toml").write_text("[tool.tokenlaw]\nalpha = 1e-6\n")  # of which no block manager knows
    assert main(["audit", "fake_targets:Refuted", "--deviations", str(path)]) == 2  # nothing else was run
    lines = capsys.readouterr().out.splitlines()
    assert f"known deviation: {KNOWN}" in lines
    again = f"tokenlaw audit fake_targets:Refuted --profile dev --seed 0 --deviations {path}"
    assert lines[-1] == f"repeat: {again}"


def test_the_library_takes_a_file() -> None:
    from fake_targets import Refuted

    path = file(entry(target='"Refuted"'))
    report = tokenlaw.check_block_manager(Refuted, deviations=path, raises=False)
    assert [known.check.id for known in report.known()] == ["fake/content"]
    assert f"deviations='{path}'" in report.command
