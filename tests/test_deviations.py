"""Known deviations: muted while they stand, impossible to overlook once they have expired."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tokenlaw
from support.fakes import put_in_place
from tokenlaw import runner
from tokenlaw.cli import main
from tokenlaw.deviations import Replayed
from tokenlaw.errors import BadUse
from tokenlaw.protocol import Request
from tokenlaw.session import Session
from tokenlaw.spec.contracts import BLOCK_MANAGER
from tokenlaw.spec.verdicts import Check, Evidence, Severity, Verdict

KNOWN = "forks tear, rewrite planned (https://example.org/7)"


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_in_place(monkeypatch, tmp_path)


def session(name: str, **options: Any) -> Session:
    return Session(Request(f"deviating:{name}", registry="fake_suites:suites", **options))


def rows(name: str, **options: Any) -> list[Evidence]:
    return list(session(name, **options).run(lambda *_: None, lambda _: None))


def test_a_standing_deviation_is_shown_and_does_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    # Nothing else was run, and that is no pass.
    assert main(["audit", "deviating:STANDING", "--json", "r.json", "--junit", "r.xml"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert "known          fake/content (K1) Claim 1 holds. [5 operations]" in lines
    assert f"known deviation: {KNOWN}" in lines
    assert "deviating 1: not exercised (1 not supported, 1 known deviation), profile dev, seed 0" in lines
    assert not any(line.startswith("saved:") for line in lines)
    (first, _) = json.loads(Path("r.json").read_text())["checks"]
    assert (first["verdict"], first["known"]) == ("refuted", KNOWN)
    assert first["counterexample"]["operations"][0]["tokens"] == [1, 2]
    assert ElementTree.parse("r.xml").getroot().get("failures") == "0"


def test_other_checks_decide_the_verdict() -> None:
    (known, other) = rows("STANDING_FORKING")
    assert (known.verdict, known.known) == (Verdict.REFUTED, KNOWN)
    assert (other.check.id, other.verdict) == ("fake/forks", Verdict.HOLDS)
    report = runner.audit("deviating:STANDING_FORKING")
    assert (report.verdict, report.status) == (Verdict.HOLDS, 0)
    assert report.summary().startswith("deviating 1: holds (1 holds, 1 known deviation)")


def test_an_expired_deviation_keeps_a_run_from_passing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "deviating:EXPIRED"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("unknown        fake/content") for line in lines)
    note = f"expired known deviation: {KNOWN}: its counterexample now gives 'holds'; remove the entry"
    assert note in lines


def test_an_entry_of_a_check_that_is_not_supported_has_expired() -> None:
    row = rows("EXPIRED_UNSUPPORTED")[1]
    assert (row.check.id, row.verdict) == ("fake/forks", Verdict.UNKNOWN)
    assert "now gives 'not supported'; remove the entry\nneeds fork" in row.message


def test_one_expired_entry_of_two_is_not_hidden_by_the_other() -> None:
    check = Check("fake/content", "K1", "Claim.", BLOCK_MANAGER, Severity.LEAK)
    standing = Evidence(check, Verdict.REFUTED, message="known deviation: a", known="a")
    replayed = Replayed({check.id: standing}, {check.id: ["expired known deviation: b"]})
    found = replayed.with_notes(standing)
    assert (found.verdict, found.known) == (Verdict.UNKNOWN, "")
    assert found.message == "expired known deviation: b\nknown deviation: a"
    refuted = replayed.with_notes(Evidence(check, Verdict.REFUTED, message="search"))
    assert (refuted.verdict, refuted.message) == (Verdict.REFUTED, "expired known deviation: b\nsearch")


def test_a_check_that_is_not_selected_is_not_replayed() -> None:
    heard: list[Any] = []
    list(session("STANDING_FORKING", only="fake/forks").run(lambda *_: None, heard.append))
    assert len(heard) == 5  # the search alone


def test_what_stands_survives_the_death_of_the_process() -> None:
    report = runner.audit("deviating:STANDING_DYING")
    assert report.verdict is Verdict.UNKNOWN
    (known, other) = report.evidence
    assert known.known == KNOWN
    assert "later in the run: the process that ran the implementation ended early" in known.message
    assert other.verdict is Verdict.UNKNOWN


def test_a_replay_shows_it_as_ever() -> None:
    from deviating import CASE

    assert runner.replay(CASE, "deviating:STANDING").verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NOT_RUNNABLE", "'deviating': known deviation of fake/content: counterexample: it needs swap"),
        ("NO_CHECK", "known deviation of no check 'fake/contend'; did you mean 'fake/content'?"),
        ("NO_ENTRY", "a known deviation is a KnownDeviation, not a str"),
    ],
)
def test_an_entry_that_cannot_be_used_is_one_line(name: str, message: str) -> None:
    with pytest.raises(BadUse) as caught:
        rows(name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_entry_is_public() -> None:
    assert tokenlaw.KnownDeviation("kv/content", {}, "why", "where").link == "where"
