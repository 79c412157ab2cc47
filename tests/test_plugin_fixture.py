"""The fixture ``tokenlaw`` in somebody's own tests, and ``[tool.tokenlaw]`` under pytest."""

import json
import re
from xml.etree import ElementTree

import pytest

from support.plugin_projects import prepare

pytest_plugins = ["pytester", "support.plugin_projects"]

ENTRY = """
[[deviation]]
check = "fake/content"
counterexample = "case.json"
reason = "forks tear"
link = "issue 7"
"""


@pytest.fixture
def with_laws(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """As `project`, with a suite of laws that says what it was told."""
    prepare(pytester, monkeypatch, "fake_suites:laws")
    return pytester


def test_checks_take_the_options_of_the_session_and_are_told(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_engine="""
        def test_mine(tokenlaw):
            from fake_targets import Manager, Store
            report = tokenlaw.check_block_manager(Manager)
            assert (report.seed, report.profile) == (3, "ci")
            assert tokenlaw.check_kv_store(Store, seed=4, profile="dev").seed == 4
        """
    )
    options = ("--tokenlaw-seed=3", "--tokenlaw-profile=ci", "--tokenlaw-target=fake_targets:BOTH")
    files = ("--tokenlaw-report=out", "--junitxml=j.xml")
    result = project.runpytest_inprocess(*options, *files)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "test_engine.py::test_mine: block-manager Manager in this process: holds",
            "  tried: 5 operations, profile ci, seed 3",
            "  repeat: tokenlaw.check_block_manager(Manager, profile='ci', seed=3, only='?')",
            "  report: out/test_engine.py--test_mine.json, out/test_engine.py--test_mine.html",
            "test_engine.py::test_mine: kv-store Store in this process: holds",
            "  report: out/test_engine.py--test_mine-2.json, out/test_engine.py--test_mine-2.html",
        ]
    )
    (case,) = ElementTree.parse(project.path / "j.xml").getroot().iter("testcase")
    assert [row.get("value") for row in case.iter("property") if row.get("name") == "tokenlaw_seed"] == [
        "3",
        "4",
    ]


def test_a_verifier_gets_alpha_and_budget_but_not_the_claims_of_the_target(
    with_laws: pytest.Pytester,
) -> None:
    with_laws.makepyfile(
        test_engine="""
        def verify(batch, *, seed):
            pass

        def test_mine(tokenlaw):
            (row,) = tokenlaw.check_verifier(verify).evidence
            assert row.statistics["samples"] == 70
            assert row.statistics["ledger"][0]["alpha"] == 1e-6
            assert row.statistics["told"] == {"claims": "textbook", "device": "cpu", "tolerance": 0.0}
        """
    )
    options = ["budget=70", "alpha=1e-6", "claims=exact", "tolerance=0.5", "target=fake_verifiers:verify"]
    result = with_laws.runpytest_inprocess(*(f"--tokenlaw-{option}" for option in options))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["  power: deviations from TV 0.013 (law/fake) on would have been refuted *"])


def test_what_is_refuted_fails_with_its_message_and_can_be_expected(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_engine="""
        import pytest
        from fake_targets import NotExercised, Refuted

        def test_refuted(tokenlaw):
            tokenlaw.check_block_manager(Refuted)

        def test_open(tokenlaw):
            tokenlaw.check_block_manager(NotExercised)

        def test_bad_use(tokenlaw):
            tokenlaw.check_block_manager(lambda config: {})

        def test_expected(tokenlaw):
            with pytest.raises(tokenlaw.Refuted, match="fake/content"):
                tokenlaw.check_block_manager(Refuted)
            assert tokenlaw.check_block_manager(Refuted, raises=False).verdict is tokenlaw.Verdict.REFUTED

        def test_session_target(tokenlaw):
            tokenlaw.audit(contracts=["block-manager"])
        """
    )
    result = project.runpytest_inprocess("--tokenlaw-target=fake_targets:Refuted")
    result.assert_outcomes(failed=4, passed=1)
    result.stdout.fnmatch_lines(
        [
            "_* test_refuted _*",
            "Refuted in this process: refuted (1 refuted, 1 not supported), profile dev, seed 0",
            "expected 1 *found 2",
            "_* test_open _*",
            "not exercised: fake/content",
            "_* test_bad_use _*",
            "BadUse: *the block-manager factory returned dict, which lacks *",
            "_* test_session_target _*",
            "fake_targets:Refuted 7.5: refuted (1 refuted, 1 not supported), profile dev, seed 0",
        ]
    )
    text = result.stdout.str()
    assert not re.search(r"Traceback|test_engine\.py:\d|\x1b", text)
    assert "tokenlaw.check_block_manager(lambda" not in text


def test_a_glob_that_selects_nothing_of_a_contract_skips_its_test(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_engine="""
        def test_mine(tokenlaw):
            from fake_targets import Manager
            tokenlaw.check_block_manager(Manager)
        """
    )
    result = project.runpytest_inprocess(
        "-rs", "--tokenlaw-only=store/*", "--tokenlaw-target=fake_targets:BOTH"
    )
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*--tokenlaw-only selects no check of block-manager"])


def test_the_project_says_what_is_audited(project: pytest.Pytester) -> None:
    project.makepyprojecttoml('[tool.tokenlaw]\ntarget = "fake_targets:BOTH"\nprofile = "ci"')
    result = project.runpytest_inprocess()
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["block-manager of both 1.2: holds", "  tried: *profile ci, seed 0"])
    result = project.runpytest_inprocess(
        "--tokenlaw-profile=dev", "--tokenlaw-target=fake_targets:STORE_ONLY"
    )
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["kv-store of store 1.2: holds", "  tried: *profile dev, seed 0"])


def test_known_deviations_are_those_of_the_project(project: pytest.Pytester) -> None:
    from deviating import CASE

    (project.path / "case.json").write_text(json.dumps(CASE))
    (project.path / "deviations.toml").write_text(ENTRY)
    project.makepyprojecttoml('[tool.tokenlaw]\ndeviations = "deviations.toml"')
    project.makepyfile(
        test_own="""
        def test_mine(tokenlaw):
            from fake_targets import Refuted
            assert tokenlaw.check_block_manager(Refuted, raises=False).known()
        """
    )
    result = project.runpytest_inprocess("-k", "manager or mine", "--tokenlaw-target=fake_targets:Refuted")
    result.assert_outcomes(xfailed=1, skipped=1, passed=1)
    result.stdout.fnmatch_lines(["  checks: 1 not supported, 1 known to deviate"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('profil = "ci"', "[tool.tokenlaw] has the unknown key 'profil'; did you mean 'profile'?"),
        ('alpha = "small"', "[tool.tokenlaw] alpha = 'small': expected a number between 0 and 1"),
    ],
)
def test_a_wrong_table_stops_the_session_in_one_line(
    project: pytest.Pytester, text: str, message: str
) -> None:
    project.makepyprojecttoml(f"[tool.tokenlaw]\n{text}")
    result = project.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.stderr.lines if line]
    assert line == f"ERROR: tokenlaw: {project.path / 'pyproject.toml'}: {message}"
