"""Options that nothing of what is asked for looks at are refused by name; defaults never are."""

from pathlib import Path
from typing import Any

import pytest

import tokenlaw
from tokenlaw import runner
from tokenlaw.cli import main
from tokenlaw.errors import BadUse
from tokenlaw.report import Report, Target
from tokenlaw.settings import require_used
from tokenlaw.spec.suites import Settings

pytest_plugins = ["pytester", "support.plugin_projects"]

USERS = {
    "device": "kv-store, paged-attention and verifier",
    "claims": "verifier",
    "alpha": "verifier and decoder",
    "budget": "verifier and decoder",
    "tolerance": "verifier and decoder",
}


@pytest.mark.parametrize(("option", "users"), USERS.items())
def test_a_block_manager_has_no_use_for_options_of_laws(option: str, users: str) -> None:
    with pytest.raises(BadUse) as caught:
        require_used([option], ["block-manager"])
    message = f"option {option}: it is for {users}, but what is asked for is block-manager: leave it out"
    assert str(caught.value) == message


def test_what_one_of_the_contracts_looks_at_is_fine() -> None:
    require_used(["claims", "device", "alpha"], ["block-manager", "verifier"])
    require_used([], ["block-manager"])
    with pytest.raises(BadUse, match="option claims: it is for verifier, but what is asked for is decoder"):
        require_used(["alpha", "claims"], ["decoder"])


def test_an_audit_refuses_them(capsys: pytest.CaptureFixture[str]) -> None:
    """The checks that are selected say which contracts are asked for."""
    assert main(["audit", "reference", "--only", "kv/cont*", "--budget", "100"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "tokenlaw: option budget: it is for verifier and decoder, but what is asked for is"
    )


def test_the_library_refuses_settings_that_differ_from_the_defaults() -> None:
    with pytest.raises(BadUse, match="option tolerance: it is for verifier and decoder"):
        tokenlaw.audit("reference", contracts=["block-manager"], settings=Settings(tolerance=0.1))


def test_what_stands_on_the_command_line_is_chosen_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what is the default anyway; what ``[tool.tokenlaw]`` says for all runs never is."""
    heard: list[dict[str, Any]] = []

    def listen(target: str, **asked: Any) -> Report:
        heard.append(asked)
        return Report(Target(target, "1"), (), "dev", 0, {}, "repeat")

    monkeypatch.setattr(runner, "audit", listen)
    (tmp_path / "pyproject.toml").write_text("[tool.tokenlaw]\nbudget = 1000\nalpha = 1e-8\n")
    monkeypatch.chdir(tmp_path)
    main(["audit", "reference"])
    main(["audit", "reference", "--device", "cpu", "--tolerance", "0", "--alpha", "1e-8"])
    assert [asked["given"] for asked in heard] == [(), ("device", "alpha", "tolerance")]
    assert heard[0]["settings"].budget == 1000


def test_pytest_refuses_them_when_it_starts(project: pytest.Pytester) -> None:
    words = ["--tokenlaw-target", "fake_targets:Manager"]
    result = project.runpytest_inprocess(*words, "--tokenlaw-claims", "exact")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*option claims: it is for verifier, but what is asked for is *"])
    assert project.runpytest_inprocess(*words).ret != pytest.ExitCode.USAGE_ERROR
