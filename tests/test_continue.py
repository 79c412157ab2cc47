"""Runs of laws that go on from an earlier report: evidence is multiplied, and never counted twice."""

import json
from pathlib import Path
from typing import Any

import pytest

import tokenlaw
from support.fakes import LAWS, put_in_place
from support.law_runs import audited
from tokenlaw.cli import main
from tokenlaw.impl.faults import VERIFIER_FAULTS
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.measures import COMPLETED

ROW = {"id": "law/fake", "contract": "verifier", "statistics": {"log_e": 1.0}}


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_in_place(monkeypatch, tmp_path, LAWS)


def verify(batch: Any, *, seed: int) -> Any:
    return batch


def log_e(report: tokenlaw.Report) -> float:
    assert report.evidence[0].statistics is not None
    return float(report.evidence[0].statistics["log_e"])


def test_the_evidence_of_all_runs_is_multiplied_and_their_seeds_are_kept() -> None:
    first = tokenlaw.check_verifier(verify, seed=1)
    second = tokenlaw.check_verifier(verify, seed=2, continued=first)
    second.write_json(Path("second.json"))
    third = tokenlaw.check_verifier(verify, seed=3, continued="second.json")
    assert [log_e(report) for report in (first, second, third)] == [1.5, 3.0, 4.5]
    assert third.continued == (1, 2)
    assert third.to_data()["settings"]["continued"] == [1, 2]
    for seed in (1, 2):
        with pytest.raises(tokenlaw.BadUse, match=f"has the random numbers of seed {seed} already"):
            tokenlaw.check_verifier(verify, seed=seed, continued=second)


def test_the_command_line_goes_on_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["audit", "fake_verifiers:verify", "--json"]
    assert main([*command, "1.json"]) == 0
    assert main([*command, "2.json", "--seed", "2", "--continue", "1.json"]) == 0
    data = json.loads(Path("2.json").read_text())
    assert data["ledger"][0]["observed"] == 3.0
    assert data["settings"]["continued"] == [0]
    assert data["command"].endswith("--seed 2 --continue 1.json")
    capsys.readouterr()
    assert main([*command, "3.json", "--continue", "2.json"]) == 3
    message = "2.json has the random numbers of seed 0 already: take another seed"
    assert capsys.readouterr() == ("", f"tokenlaw: {message}\n")
    assert not Path("3.json").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": "tokenlaw.report/2"}, "not a report: schema 'tokenlaw.report/2'"),
        ({"schema": "tokenlaw.trace/1"}, "expected 'tokenlaw.report/1'"),
        ({"spec_version": "0"}, "its rules are those of spec 0, not of 1"),
        ({"target": {"name": "verify", "version": "3"}}, "is about verify 3, this run about verify in this"),
        ({"target": {"name": "other", "version": "in this process"}}, "is about other in this process"),
        ({"target": None}, "a damaged report: Expected `object`, got `null`"),
        ({"checks": []}, "has no evidence that can be continued"),
        ({"settings": {"claims": "exact"}}, "was made with claims exact, this run has claims None"),
        ({"settings": {"tolerance": 0.1}}, "was made with tolerance 0.1, this run has tolerance 0.0"),
        (
            {"checks": [{"id": "law/fake", "contract": "decoder", "statistics": {"samples": 1}}]},
            "has evidence about decoder, which isn't run now",
        ),
        ({"checks": [ROW | {"statistics": {"log_e": "infinity"}}]}, "log_e of law/fake is 'infinity'"),
        ({"checks": [ROW | {"statistics": {"log_e": [1]}}]}, "log_e of law/fake is [1]; it must be a finite"),
        ({"checks": [ROW, ROW]}, "a damaged report: law/fake is there twice"),
        ({"seed": -1}, "a damaged report: a seed is negative"),
    ],
)
def test_a_report_that_cannot_be_continued_is_one_line(changes: dict[str, Any], message: str) -> None:
    data = tokenlaw.check_verifier(verify, seed=1).to_data() | changes
    Path("r.json").write_text(json.dumps(data))
    with pytest.raises(tokenlaw.BadUse) as caught:
        tokenlaw.check_verifier(verify, seed=2, continued=Path("r.json"))
    assert message in str(caught.value)
    assert "r.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "can't be read: No such file"), (b"{", "damaged, not JSON"), (b"[" * 100_000, "damaged")],
)
def test_a_file_that_is_no_report_is_status_3(
    content: bytes | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        Path("r.json").write_bytes(content)
    assert main(["audit", "fake_verifiers:verify", "--continue", "r.json"]) == 3
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"tokenlaw: r.json: {message}")
    assert output.err.count("\n") == 1


def test_a_run_can_go_on_from_one_that_has_refuted() -> None:
    """What an earlier run found is far beyond what is needed: nothing more is, and nothing overflows."""
    make = VERIFIER_FAULTS["bonus_argmax"].make
    first = audited(make, budget=20_000, only=frozenset({COMPLETED}))[COMPLETED]
    assert first.verdict is Verdict.REFUTED
    assert first.statistics is not None
    earlier = {COMPLETED: {**first.statistics, "log_e": 1e6}}
    again = audited(make, seed=1, budget=20_000, only=frozenset({COMPLETED}), continued=earlier)[COMPLETED]
    assert again.verdict is Verdict.REFUTED
