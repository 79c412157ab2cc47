"""What a pytest session says of its audits: the section, the reports, JUnit, failures that read well."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.plugin_projects import CONFTEST_HERE, FEW_PLUGINS
from tokenlaw.controls import Control, Kind
from tokenlaw.pytest_summary import properties, tell
from tokenlaw.report import Report, Target
from tokenlaw.spec.verdicts import Check, Evidence, Severity, Verdict

pytest_plugins = ["pytester", "support.plugin_projects"]

REFUTED = "--tokenlaw-target=fake_targets:Refuted"


def law(name: str, verdict: Verdict = Verdict.HOLDS, **statistics: object) -> Evidence:
    check = Check(f"law/{name}", "L0", "Some law.", "verifier", Severity.WRONG_LAW)
    return Evidence(check, verdict, statistics=statistics or None)


def power(tv: float) -> dict[str, object]:
    return {"tv": tv, "probability": 0.999, "laws": 3}


LEDGER = [{"alpha": 1e-10}]


def report(*rows: Evidence, controls: tuple[Control, ...] = ()) -> Report:
    target = Target("mine", "1", ("verifier",))
    return Report(target, rows, "ci", 7, {}, "tokenlaw audit mine", controls=controls)


def test_the_section_says_what_would_have_been_seen_and_how_to_repeat_it() -> None:
    told = tell(
        report(
            law("completed", samples=9_000, evidence="sampled", ledger=LEDGER, power=power(0.1531)),
            law("support", samples=9_000, evidence="sampled", ledger=LEDGER, power=power(0.0012)),
            law("protocol", samples=9_000, evidence="sampled", power=power(0.0003)),
            law("proved", evidence="proved", paths=246, tv_at_most=3.7e-16),
            law("probed", evidence="probed", evaluations=8_373, tv=1.1e-16),
            law("bonus", Verdict.REFUTED, samples=9_000, power=power(0.0001)),
            law("rows", Verdict.NOT_EXERCISED),
        ),
        "verifier of mine",
    )
    assert (told["heading"], told["verdict"]) == ("verifier of mine", "refuted")
    assert told["lines"] == [
        "checks: 1 refuted, 1 not exercised, 5 held",
        "refuted: law/bonus",
        "not exercised: law/rows",
        "power: deviations from TV 0.0012 (law/support) to 0.16 (law/completed) on would have been refuted "
        "with probability 0.999",
        "proved: law/proved: within TV 3.7e-16, 246 paths",
        "probed: law/probed: within TV 1.1e-16, 8,373 evaluations",
        "tried: 9,000 requests, profile ci, seed 7",
        "repeat: tokenlaw audit mine",
    ]


def test_an_audit_that_could_not_fail_says_so() -> None:
    control = Control("verifier", Kind.BROKEN, Verdict.HOLDS, fault="bonus dropped")
    told = tell(report(law("completed"), controls=(control,)), "verifier of mine")
    assert told["verdict"] == "void"
    assert any(line.startswith("void: the audit of verifier says nothing") for line in told["lines"])


def test_properties_of_a_check_say_how_it_was_decided() -> None:
    row = law("completed", samples=9_000, evidence="sampled", ledger=LEDGER, power=power(0.1531))
    assert properties(report(row), row) == [
        ("tokenlaw_verdict", "holds"),
        ("tokenlaw_evidence", "sampled: 9,000 samples"),
        ("tokenlaw_power", "TV >= 0.16 would have been refuted with probability 0.999"),
        ("tokenlaw_seed", "7"),
        ("tokenlaw_repeat", "tokenlaw audit mine"),
    ]


def test_every_audited_contract_has_its_lines(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess("--tokenlaw-target=fake_targets:BOTH", "--tokenlaw-seed=3")
    result.stdout.fnmatch_lines(
        [
            "=* tokenlaw =*",
            "block-manager of both 1.2: holds",
            "  checks: 1 held, 1 not supported",
            "  tried: 5 operations, profile dev, seed 3",
            "  repeat: repeat ('block-manager',)",
            "kv-store of both 1.2: holds",
            "  repeat: repeat ('kv-store',)",
        ]
    )


def test_a_session_without_audits_has_no_section(project: pytest.Pytester) -> None:
    project.makepyfile(test_engine="def test_nothing(): pass")
    result = project.runpytest_inprocess()
    result.stdout.no_fnmatch_line("*tokenlaw =*")


def test_a_selection_does_not_pass_for_the_whole_and_the_last_failure_is_repeated(
    project: pytest.Pytester,
) -> None:
    result = project.runpytest_inprocess(REFUTED, "-k", "forks")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["  selected: 1 of 2 checks are tests of this run; all were audited"])
    project.runpytest_inprocess(REFUTED).assert_outcomes(failed=1, skipped=2)
    result = project.runpytest_inprocess(REFUTED, "--lf", "--junitxml=j.xml")
    result.assert_outcomes(failed=1)
    cases = ElementTree.parse(project.path / "j.xml").getroot().iter("testcase")
    assert [case.get("name") for case in cases] == ["test_manager[fake/content]"]


def test_a_failure_is_its_message_alone(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")  # pytest shortens nothing there
    result = project.runpytest_inprocess(REFUTED, "-k", "manager", "--color=no")
    text = result.stdout.str()
    assert "\x1b" not in text
    assert "Traceback" not in text
    result.stdout.fnmatch_lines(
        ["_* test_manager?fake/content? _*", "refuted: fake/content", "expected 1 *x1b?31m*", "repeat: *"]
    )
    (short,) = [line for line in result.outlines if line.startswith("FAILED")]
    assert short == "FAILED test_engine.py::test_manager[fake/content] - refuted: fake/content"


def test_whoever_asks_for_the_traceback_gets_it(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess(REFUTED, "-k", "manager", "--tb=native")
    result.stdout.fnmatch_lines(["Traceback (most recent call last):", "*Refuted: refuted: fake/content"])


def test_junit_has_verdict_evidence_and_command(project: pytest.Pytester) -> None:
    project.runpytest_inprocess(REFUTED, "-k", "manager", "--junitxml=j.xml")
    first = next(ElementTree.parse(project.path / "j.xml").getroot().iter("testcase"))
    found = {row.get("name"): row.get("value") for row in first.iter("property")}
    assert found == {
        "tokenlaw_verdict": "refuted",
        "tokenlaw_evidence": "tried: 5 operations",
        "tokenlaw_seed": "0",
        "tokenlaw_repeat": "repeat ('block-manager',)",
    }
    failure = first.find("failure")
    assert failure is not None
    assert failure.get("message") == "refuted: fake/content"
    assert "expected 1 [bold]" in (failure.text or "")


def test_reports_are_written(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess(REFUTED, "-k", "manager", "--tokenlaw-report", "a/b")
    name = "a/b/fake_targets-Refuted-block-manager"
    result.stdout.fnmatch_lines([f"  report: {name}.json, {name}.html"])
    assert json.loads(Path(f"{name}.json").read_text())["verdict"] == "refuted"
    assert "<html" in Path(f"{name}.html").read_text()


def test_a_report_that_cannot_be_written_does_not_hide_the_verdict(project: pytest.Pytester) -> None:
    (project.path / "out" / "fake_targets-Refuted-block-manager.json").mkdir(parents=True)
    result = project.runpytest_inprocess(REFUTED, "-k", "manager", "--tokenlaw-report", "out")
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(["block-manager of *: refuted", "  report: *.json couldn't be written: *"])


def test_a_folder_that_cannot_be_made_is_bad_use(project: pytest.Pytester) -> None:
    project.makefile(".txt", taken="")
    result = project.runpytest_inprocess("--tokenlaw-report", "taken.txt/reports")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: tokenlaw: --tokenlaw-report taken.txt/reports: can't be made: *"])


def test_under_xdist_the_controller_tells_everything_and_no_worker_overwrites_another(
    project: pytest.Pytester,
) -> None:
    project.makeconftest(CONFTEST_HERE)
    options = ("-n", "2", "--dist", "each", "--strict-markers", "-k", "manager", *FEW_PLUGINS)
    reports = ("--tokenlaw-report", "out", "--junitxml=j.xml")
    result = project.runpytest_subprocess(*options, *reports, "--tokenlaw-target", "fake_targets:BOTH")
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "block-manager of both 1.2: holds",
            "  repeat: repeat ('block-manager',)",
            "  workers: gw0, gw1 each ran this audit; with --dist loadfile one does",
        ]
    )
    assert len([line for line in result.outlines if line.startswith("block-manager of both")]) == 1
    written = sorted(path.name for path in (project.path / "out").iterdir())
    name = "fake_targets-BOTH-block-manager-gw"
    assert written == [f"{name}{number}.{end}" for number in (0, 1) for end in ("html", "json")]
    assert "tokenlaw_verdict" in (project.path / "j.xml").read_text()
