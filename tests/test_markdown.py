"""Markdown for step summaries: what is in it, and that nobody's text breaks out of it."""

import functools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.markdown_pages import Shown
from support.pages import (
    MATRIX,
    evidence,
    holding_law,
    hostile_report,
    refuted_law,
    refuted_trace,
    report_of,
)
from tokenlaw import runner
from tokenlaw.cli import main
from tokenlaw.controls import Control, Kind
from tokenlaw.markdown_report import to_markdown
from tokenlaw.markdown_text import LIMIT, block, code, document, plain, table
from tokenlaw.report import Report
from tokenlaw.report_files import ReportFiles
from tokenlaw.spec.claims import COMPLETED
from tokenlaw.spec.contracts import VERIFIER
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.text import one_line, printable

OURS = {
    "h2",
    "h3",
    "p",
    "strong",
    "code",
    "pre",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "details",
    "summary",
}
HOSTILE = (
    "| a | b\n## heading\r\n```\n</code></details><script>alert(1)</script> ![x](https://evil.invalid/a.png) "
    "[x](javascript:1) <https://evil.invalid> `` *a* _b_ ~~c~~ \\| \\\\| @person #1 :smile: $x$ &lt; "
    "www.evil.invalid"
)


def summary_of(report: Report) -> str:
    return to_markdown(report.to_data()).decode()


texts = st.text(st.one_of(st.sampled_from("|\\`*_<>[]()#\n~&$:/ -+=."), st.characters()), max_size=40)


@given(texts, texts)
@settings(max_examples=200, deadline=None)
def test_a_cell_shows_any_text_as_it_is(text: str, other: str) -> None:
    shown = Shown(table(["a", "b"], [[code(text), plain(other)]]))
    assert set(shown.tags) <= OURS
    assert [cell.strip() for cell in shown.cells] == ["a", "b", one_line(text), one_line(other)]


@given(texts)
@settings(max_examples=200, deadline=None)
def test_a_block_shows_any_text_as_it_is(text: str) -> None:
    shown = Shown(f"before\n\n{block(text)}\n\nafter")
    assert shown.tags == ["p", "pre", "code", "p"]
    assert shown.text.split() == ["before", *printable(text).split(), "after"]


def test_verdicts_come_first_and_what_failed_has_its_message_and_its_command() -> None:
    absent = evidence("kv/window", Verdict.NOT_SUPPORTED, "needs window")
    rare = evidence("kv/rare", Verdict.NOT_EXERCISED, "never happened: fork")
    hung = evidence("kv/hit", Verdict.UNKNOWN, "hung")
    summary = summary_of(report_of(absent, rare, hung, holding_law(), refuted_trace("expected 8\nfound 9")))
    text = Shown(summary).text
    places = [
        text.index(part)
        for part in (
            "refuted: mine:make 1.0",
            "1 refuted",
            "refuted: kv/content",
            "unknown: kv/hit",
            "Not tested",
            "Power",
            "All checks",
        )
    ]
    assert places == sorted(places)
    assert "```text\nexpected 8\nfound 9\n```" in summary
    assert "```sh\ntokenlaw replay kv-content.json --target mine:make\n```" in summary
    assert "```sh\ntokenlaw audit mine:make --profile dev --seed 5\n```" in summary


def test_what_was_not_tested_says_why_and_what_held_says_what_it_saw() -> None:
    rare = evidence("kv/rare", Verdict.NOT_EXERCISED, "never happened: fork")
    absent = evidence("kv/window", Verdict.NOT_SUPPORTED, "needs window")
    cells = [cell.strip() for cell in Shown(summary_of(report_of(absent, rare, holding_law()))).cells]
    assert cells[4:6] == ["kv/rare", "never happened: fork"]
    assert cells[7:9] == ["kv/window", "needs window"]
    assert cells[15:21] == ["law/chi-square", "sampled", "4,000 samples", "TV >= 0.04", "0.999", "3"]


def test_a_known_deviation_is_told_with_its_reason() -> None:
    known = evidence("kv/known", Verdict.REFUTED, "torn", known="rewrite planned (issue 7)")
    text = Shown(summary_of(report_of(known, holding_law()))).text
    assert "holds: mine:make 1.0" in text
    assert "known deviation: kv/known" in text
    assert "Known: rewrite planned (issue 7)" in text


def test_a_failed_control_and_the_strongest_claim_are_told() -> None:
    control = Control(VERIFIER, Kind.BROKEN, Verdict.HOLDS, fault="a bonus too many", message="not seen")
    data = replace(report_of(holding_law()), controls=(control,)).to_data() | {"strongest_claim": COMPLETED}
    text = Shown(to_markdown(data).decode()).text
    assert "void: mine:make 1.0" in text
    assert f"Void: a control failed, so this run says nothing about {VERIFIER}." in text
    assert f"Strongest claim that still stands: {COMPLETED} (" in text
    assert "broken wrapper: a bonus too many" in text


def test_what_a_target_writes_stays_text() -> None:
    known = evidence(HOSTILE, Verdict.REFUTED, HOSTILE, HOSTILE, known=HOSTILE)
    crash = evidence(HOSTILE, Verdict.UNKNOWN, f"{HOSTILE}\n````\n{HOSTILE}", HOSTILE)
    rare = evidence(HOSTILE, Verdict.NOT_EXERCISED, HOSTILE, HOSTILE)
    report = report_of(
        refuted_trace(HOSTILE), refuted_law(HOSTILE), known, crash, rare, name=HOSTILE, typed=HOSTILE
    )
    for one in (report, hostile_report()):
        shown = Shown(summary_of(one))
        assert set(shown.tags) <= OURS
        assert set(shown.attributes) <= {"class", "style"}
        assert "\x1b" not in shown.text
    assert shown.text.count("document.title='broken'") > 10
    rendered = Shown(summary_of(report)).text
    assert rendered.count("<script>alert(1)</script>") >= 12
    assert rendered.count("![x](https://evil.invalid/a.png)") >= 12


def test_addresses_and_names_of_strangers_are_no_links() -> None:
    """Those who show Markdown make links of these by themselves; none stands outside of a block as it is."""
    outside = re.sub(r"^(`{3,}).*?^\1$", "", summary_of(hostile_report()), flags=re.MULTILINE | re.DOTALL)
    assert "evil.invalid" in outside
    assert not re.search(r"https?:/|www\.|@", outside)
    assert not re.search(r"https?:/|www\.|@|(?<!&)#1|:smile:|\$x", plain(HOSTILE))


def test_a_document_is_never_too_long_to_be_shown() -> None:
    rows = [evidence(f"kv/{number}", Verdict.UNKNOWN, "|\n" * 9_000) for number in range(300)]
    content = to_markdown(report_of(*rows).to_data())
    assert len(content) < 2**20
    assert content.endswith(b"more parts are left out; the JSON report has them.\n")
    assert document(["x" * LIMIT]) == b"x" * LIMIT + b"\n"


def test_a_saved_report_gives_the_same_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of(refuted_trace(), holding_law())
    report.write_json(tmp_path / "report.json")
    assert main(["report", str(tmp_path / "report.json"), "--markdown", str(tmp_path / "summary.md")]) == 0
    assert (tmp_path / "summary.md").read_bytes() == to_markdown(report.to_data())
    assert capsys.readouterr().out == ""
    paths = {"--markdown": tmp_path / "again.md"}
    assert ReportFiles(paths).write(report) == []
    assert paths["--markdown"].read_bytes() == to_markdown(report.to_data())


def test_an_audit_writes_its_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = str(Path(__file__).parent / "targets")
    monkeypatch.syspath_prepend(targets)
    monkeypatch.setenv("PYTHONPATH", targets)
    monkeypatch.setattr(runner, "audit", functools.partial(runner.audit, registry="fake_suites:suites"))
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "fake_targets:Refuted", "--markdown", "summary.md"]) == 1
    assert "### ✗ refuted: <code>fake/content</code>" in (tmp_path / "summary.md").read_text()
    assert main(["audit", "fake_targets:Refuted", "--markdown", "summary.md", "--vary-seed", "2"]) == 3
    assert "--vary-seed doesn't go with --markdown" in capsys.readouterr().err


def test_a_matrix_of_faults_tells_what_was_missed(tmp_path: Path) -> None:
    (tmp_path / "faults.json").write_text(json.dumps(MATRIX))
    command = ["report", str(tmp_path / "faults.json"), "--markdown", str(tmp_path / "summary.md")]
    assert main(command) == 0
    shown = Shown((tmp_path / "summary.md").read_text())
    assert "✗ 1 of 2 planted faults killed, silent on 1 of 1 innocents" in shown.text
    assert "Not all were audited yet." in shown.text
    assert shown.cells[5:9] == ["missed", "unseen", "kv", "leaks"]
    assert set(shown.tags) <= OURS


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "say what to write: --html PAGE.html, --markdown SUMMARY.md"),
        (["--html", "same", "--markdown", "same"], "--html and --markdown both name"),
        (["--markdown", "no folder/summary.md"], "--markdown no folder/summary.md: can't be written"),
    ],
)
def test_bad_use_is_one_line(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    report_of(holding_law()).write_json(tmp_path / "report.json")
    assert main(["report", "report.json", *arguments]) == 3
    assert told in capsys.readouterr().err


def test_shares_of_rows_are_told_from_deviations_of_laws() -> None:
    """Protocol counts rows; the average of e-values is one of laws, without a part of alpha of its own."""
    power = {"tv": 0.04, "probability": 0.999, "laws": 1}
    rows = [
        evidence(name, Verdict.HOLDS, "", VERIFIER, statistics={"samples": 100, "power": power, **more})
        for name, more in (("law/protocol", {}), ("law/together", {"log_e": -0.7}))
    ]
    cells = [cell.strip() for cell in Shown(summary_of(report_of(*rows))).cells]
    assert [cell for cell in cells if ">=" in cell] == ["a share >= 0.04", "TV >= 0.04"]
