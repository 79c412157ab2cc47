"""The pytest plugin, on fake suites and targets."""

import functools
import os
from typing import Any

import pytest

from support.plugin_projects import CONFTEST_HERE, FAKES, FEW_PLUGINS
from tokenlaw import runner
from tokenlaw.report import Report
from tokenlaw.runner import audit, require_usable
from tokenlaw.spec.suites import Settings

pytest_plugins = ["pytester", "support.plugin_projects"]


def test_a_target_that_holds(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess("-v", "--tokenlaw-target", "fake_targets:BOTH")
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*test_manager?fake/content? PASSED*",
            "*test_manager?fake/forks? SKIPPED (not supported*",
            "*test_store?store/content? PASSED*",
        ]
    )


def test_a_refuted_check_fails_with_its_message_and_a_missing_contract_is_skipped(
    project: pytest.Pytester,
) -> None:
    result = project.runpytest_inprocess("-rs", "--tokenlaw-target=fake_targets:Refuted", "--tokenlaw-seed=3")
    result.assert_outcomes(failed=1, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "refuted: fake/content",
            "expected 1 *not markup* found 2",
            "saved:  .tokenlaw/counterexamples/fake_targets-Refuted/fake-content.json",
            "replay: tokenlaw replay .tokenlaw/*/fake-content.json --target fake_targets:Refuted",
            "repeat: repeat ('block-manager',)",
            "SKIPPED*fulfils block-manager, not kv-store",
        ]
    )
    assert "Traceback" not in result.stdout.str()


def test_a_replay_names_the_target_as_it_was_typed(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess("--tokenlaw-target=fake_targets:NAMED")
    result.stdout.fnmatch_lines(["replay: tokenlaw replay .tokenlaw/* --target fake_targets:NAMED"])


def test_what_was_not_decided_fails_and_the_audit_runs_once(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []
    audit = runner.audit

    def counted(target: str, **options: Any) -> Report:
        calls.append(options)
        return audit(target, **options)

    monkeypatch.setattr(runner, "audit", counted)
    result = project.runpytest_inprocess("-k", "manager", "--tokenlaw-target", "fake_targets:Raising")
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(["unknown: fake/content", "*KeyError: 'lost block'"])
    assert [call["contracts"] for call in calls] == [["block-manager"]]


def test_settings_reach_the_audit(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Settings] = []
    audit = runner.audit

    def heard(target: str, **options: Any) -> Report:
        given.append(options["settings"])
        return audit(target, **options)

    monkeypatch.setattr(runner, "audit", heard)
    monkeypatch.setattr("tokenlaw.session.require_used", lambda *_: None)  # the fakes have no laws
    options = ["claims=exact", "alpha=1e-6", "budget=70", "tolerance=0.25", "device=cpu"]
    arguments = [f"--tokenlaw-{option}" for option in options]
    project.runpytest_inprocess("-k", "manager", "--tokenlaw-target=fake_targets:BOTH", *arguments)
    assert given == [Settings("cpu", "exact", 1e-6, 70, 0.25)]


def test_a_known_deviation_is_an_expected_failure_and_an_expired_one_fails(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess("-rx", "-k", "manager", "--tokenlaw-target=deviating:STANDING")
    result.assert_outcomes(xfailed=1, skipped=1)
    result.stdout.fnmatch_lines(
        ["XFAIL*known deviation: forks tear, rewrite planned (https://example.org/7)"]
    )
    result = project.runpytest_inprocess("-k", "manager", "--tokenlaw-target=deviating:EXPIRED")
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(["unknown: fake/content", "expired known deviation: forks tear*"])


def test_only_the_selected_checks_are_items(project: pytest.Pytester) -> None:
    options = ("--collect-only", "-q", "--tokenlaw-only", "fake/c*")
    result = project.runpytest_inprocess(*options, "--tokenlaw-target", "fake_targets:BOTH")
    result.stdout.fnmatch_lines(["*test_manager?fake/content?", "*test_store?none selected?"])
    result.stdout.no_fnmatch_line("*fake/forks*")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--tokenlaw-target=referense", "unknown target 'referense'; did you mean 'reference'"),
        ("--tokenlaw-target=broken_module:x", "importing broken_module failed: ImportError: no kernel"),
        ("--tokenlaw-target=fake_targets:LYING", "declares block-manager capability 'fork' but Manager"),
        ("--tokenlaw-profile=deepest", "unknown profile 'deepest'; did you mean 'deep'?"),
        ("--tokenlaw-only=zzz", "'zzz' matches no check"),
        ("--tokenlaw-seed=x", "--tokenlaw-seed 'x': expected a whole number, 0 or more"),
        ("--tokenlaw-budget=x", "--tokenlaw-budget 'x': expected a whole number"),
        ("--tokenlaw-alpha=x", "--tokenlaw-alpha 'x': expected a number"),
        ("--tokenlaw-tolerance=1", "tolerance 1.0: expected 0 or a number below 1"),
        ("--tokenlaw-claims=exakt", "unknown claim 'exakt'; did you mean 'exact'?"),
        ("--tokenlaw-device=moon", "device 'moon' can't be used here"),
    ],
)
def test_a_bad_option_is_one_line(project: pytest.Pytester, option: str, message: str) -> None:
    result = project.runpytest_inprocess(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.stderr.lines if line]
    assert line.startswith("ERROR: tokenlaw: ")
    assert message in line


def test_bad_use_that_only_the_audit_finds_is_named(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "require_usable", lambda *_, **__: None)
    result = project.runpytest_inprocess("-k", "manager", "--tokenlaw-target", "fake_targets:LYING")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["BadUse: lying: declares block-manager capability 'fork' but *"])


def test_a_target_that_ends_its_process_does_not_end_pytest(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makepyfile(exiting_module="import os; os._exit(0)")
    monkeypatch.setenv("PYTHONPATH", str(project.path), prepend=os.pathsep)
    for ours in (audit, require_usable):
        monkeypatch.setattr(runner, ours.__name__, functools.partial(ours, registry=FAKES))
    result = project.runpytest_inprocess("-k", "manager", "--tokenlaw-target", "exiting_module:x")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["unknown: target/load", "*exited with status 0 in the middle of the run"])


def test_the_fixture_needs_a_contract(project: pytest.Pytester) -> None:
    project.makepyfile(test_engine="def test_nothing(tokenlaw_check): pass")
    result = project.runpytest_inprocess()
    result.stdout.fnmatch_lines(
        ["*test_nothing: tokenlaw_check needs @pytest.mark.tokenlaw_contract(contract)*"]
    )


@pytest.mark.slow  # two more processes; tests of the summary have workers too
def test_with_a_file_a_worker_each_audit_runs_once(project: pytest.Pytester) -> None:
    project.makeconftest(CONFTEST_HERE)
    options = ("-n", "2", "--dist", "loadfile", "--strict-markers", "-k", "manager", *FEW_PLUGINS)
    result = project.runpytest_subprocess(*options, "--tokenlaw-target", "fake_targets:BOTH")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.no_fnmatch_line("*each ran this audit*")


def test_the_installed_suites_are_collected(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess(
        "--pyargs",
        "tokenlaw.properties",
        "tokenlaw.stats",
        "--collect-only",
        "-q",
        "--import-mode=importlib",
        "--strict-markers",
        *FEW_PLUGINS,
    )
    assert result.ret == 0
    names = ["*test_block_manager?kv/content?", "*test_kv_store?store/content?", "*test_paged_attention?*?"]
    result.stdout.fnmatch_lines([*names, "*test_verifier?law/completed?"])
