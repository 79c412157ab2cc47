"""The CI recipes of `examples/ci`: options exist, the shell works, the page shows them as they are."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from support.recipes import FOLDER, REAL, Job, environment, jobs, run
from tokenlaw.cli import app

PAGE = (FOLDER.parents[1] / "docs" / "ci.md").read_text()
RECIPES = sorted(FOLDER.glob("*.yml"))
ALL = {f"{path.stem}:{job.name}": job for path in RECIPES for job in jobs(path)}
NIGHTS = {name: job for name, job in ALL.items() if "BUDGET" in job.variables}
NIGHTLY = jobs(FOLDER / "github-gpu-nightly.yml")[0]

RECORDING = """
{ printf '%s\\n' "$@"; echo; } >> calls
if [ "$1" = compare ]; then echo changes > changes.md; exit "${COMPARED:-0}"; fi
for name in report.json report.xml report.html summary.md; do echo "$name" > "$name"; done
exit "${AUDITED:-0}"
"""
"""Stands for tokenlaw: notes how it was called, and writes the files that its options name."""


def calls(folder: Path) -> list[list[str]]:
    """How tokenlaw was called."""
    return [call.split("\n") for call in (folder / "calls").read_text().strip("\n").split("\n\n")]


def parsed(words: list[str]) -> dict[str, object]:
    """What the command line makes of a call; a usage error where it knows an option no more."""
    command = typer.main.get_group(app).commands[words[0]]
    return dict(command.make_context(words[0], words[1:]).params)


def commands_of_page() -> Iterator[list[str]]:
    for text in re.findall(r"^```sh[^\n]*\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL):
        for line in text.replace("\\\n", " ").splitlines():
            if line.startswith("tokenlaw "):
                yield shlex.split(line, comments=True)[1:]


def test_there_are_recipes_for_both() -> None:
    assert [path.name for path in RECIPES] == ["github-gpu-nightly.yml", "github-push.yml", "gitlab.yml"]
    assert (len(ALL), len(NIGHTS)) == (4, 2)


@pytest.mark.parametrize("job", ALL.values(), ids=ALL)
def test_a_job_runs_and_every_option_exists(job: Job, tmp_path: Path) -> None:
    done = run(job.steps, tmp_path, environment(tmp_path, job, RECORDING))
    assert done.status == 0, done.output
    (audit,) = calls(tmp_path)
    options = parsed(audit)
    assert options["target"] == "my_engine:ENGINE"
    assert [str(options[name]) for name in ("json", "junit", "html")] == [
        "report.json",
        "report.xml",
        "report.html",
    ]
    assert options["budget"] == (100_000_000 if options["device"] == "cuda" else None)
    assert options["seed"] == (7 if options["device"] == "cuda" else 0)


@pytest.mark.parametrize("job", ALL.values(), ids=ALL)
@pytest.mark.parametrize("status", ["1", "2", "4"])
def test_a_failing_audit_fails_the_job_and_its_report_is_kept(job: Job, status: str, tmp_path: Path) -> None:
    done = run(job.steps, tmp_path, environment(tmp_path, job, RECORDING, AUDITED=status))
    assert done.status == int(status), done.output
    if (tmp_path / "step_summary.md").exists():
        assert (tmp_path / "step_summary.md").read_text() == "summary.md\n"
    if job in NIGHTS.values():
        assert (tmp_path / "last" / "report.json").exists()


@pytest.mark.parametrize("job", NIGHTS.values(), ids=NIGHTS)
@pytest.mark.parametrize("status", ["0", "1"])
def test_a_night_is_compared_with_the_last_one(job: Job, status: str, tmp_path: Path) -> None:
    (tmp_path / "last").mkdir()
    (tmp_path / "last" / "report.json").write_text("last night")
    done = run(job.steps, tmp_path, environment(tmp_path, job, RECORDING, COMPARED=status))
    assert done.status == int(status), done.output
    options = parsed(calls(tmp_path)[1])
    assert [str(options[name]) for name in ("old", "new")] == ["last/report.json", "report.json"]
    assert (tmp_path / "last" / "report.json").read_text() == "report.json\n"
    if (tmp_path / "step_summary.md").exists():
        assert (tmp_path / "step_summary.md").read_text() == "changes\nsummary.md\n"


def test_a_job_that_cannot_install_ends_there(tmp_path: Path) -> None:
    variables = environment(tmp_path, NIGHTLY, RECORDING)
    (tmp_path / "programs" / "python").write_text("#!/bin/sh\nexit 9\n")
    assert run(NIGHTLY.steps, tmp_path, variables).status == 9
    assert not (tmp_path / "calls").exists()
    assert not (tmp_path / "last").exists()


def test_a_night_for_real_on_a_small_budget(tmp_path: Path) -> None:
    small = {"TARGET": "reference-greedy", "PROFILE": "dev", "DEVICE": "cpu", "BUDGET": "2000"}
    variables = environment(tmp_path, NIGHTLY, REAL, **small)
    done = run(NIGHTLY.steps, tmp_path, variables)
    assert done.status == 0, done.output
    assert "## ✓ holds: <code>reference-greedy" in (tmp_path / "step_summary.md").read_text()
    assert {"report.json", "report.xml", "report.html"} <= {path.name for path in tmp_path.iterdir()}
    again = run([NIGHTLY.step("Compare with the last night")], tmp_path, variables)
    assert again.status == 0, again.output
    assert "nothing is worse" in again.output
    assert (tmp_path / "changes.md").read_text().startswith("## ✓ nothing is worse")


def test_every_command_of_the_page_can_be_parsed() -> None:
    commands = list(commands_of_page())
    assert {words[0] for words in commands} == {"audit", "compare"}
    for words in commands:
        assert parsed(words)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_page_shows_the_recipe(path: Path) -> None:
    assert f"(../examples/ci/{path.name})" in PAGE
    assert re.search(r'```yaml title="[^"]+"\n' + re.escape(path.read_text()) + "```\n", PAGE)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_has_the_schema_of_its_ci(path: Path) -> None:
    pytest.importorskip(
        "check_jsonschema", reason="the schemas of CIs come with check-jsonschema, of the dev extra"
    )
    gitlab = path.stem == "gitlab"
    schema = ["vendor.gitlab-ci", "--data-transform", "gitlab-ci"] if gitlab else ["vendor.github-workflows"]
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", *schema, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
