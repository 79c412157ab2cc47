"""CI recipes, taken apart and run here as their CI would, with what they install and check out left out."""

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "examples" / "ci"


@dataclass(frozen=True)
class Step:
    """Lines of a shell, and whether they run though an earlier step has failed."""

    name: str
    script: str
    always: bool = False


@dataclass(frozen=True)
class Job:
    """A job of a recipe: its variables, and its steps with a script."""

    name: str
    variables: Mapping[str, str]
    steps: tuple[Step, ...]

    def step(self, name: str) -> Step:
        """The step of that name."""
        return next(step for step in self.steps if step.name == name)


def jobs(path: Path) -> list[Job]:
    """The jobs of a recipe for GitHub or for GitLab."""
    recipe = yaml.safe_load(path.read_text())
    return _github(recipe) if "jobs" in recipe else _gitlab(recipe)


def _github(recipe: Mapping[str, Any]) -> list[Job]:
    return [
        Job(
            name,
            job.get("env", {}),
            tuple(
                Step(step.get("name", step["run"]), step["run"], "cancelled()" in step.get("if", ""))
                for step in job["steps"]
                if "run" in step
            ),
        )
        for name, job in recipe["jobs"].items()
    ]


def _gitlab(recipe: Mapping[str, Any]) -> list[Job]:
    """All lines of a job run in one shell, those of ``before_script`` first."""
    found = []
    for name, own in recipe.items():
        if "script" not in own:
            continue
        job = {**recipe[own["extends"]], **own}
        lines = [*job["before_script"], *job["script"]]
        variables = {**recipe["variables"], **job["variables"]}
        found.append(Job(name, variables, (Step(name, "\n".join(lines)),)))
    return found


@dataclass(frozen=True)
class Ran:
    """What a job did: the status of its first step that failed, and what was printed."""

    status: int
    output: str


def run(steps: Iterable[Step], folder: Path, environment: Mapping[str, str]) -> Ran:
    """Run steps in a folder; after one that failed only those that always run."""
    status, output = 0, ""
    for step in steps:
        if status and not step.always:
            continue
        shell = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step.script]
        done = subprocess.run(
            shell, cwd=folder, env=environment, capture_output=True, text=True, timeout=110, check=False
        )
        output += done.stdout + done.stderr
        status = status or done.returncode
    return Ran(status, output)


def environment(folder: Path, job: Job, tokenlaw: str, **changed: str) -> dict[str, str]:
    """Variables of a job that runs here: pip installs nothing, and ``tokenlaw`` is this script."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name, script in {"python": 'test "$1 $2 $3" = "-m pip install"', "tokenlaw": tokenlaw}.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    own = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(folder / "step_summary.md"),
        "GITHUB_RUN_NUMBER": "7",
        "CI_PIPELINE_IID": "7",
        "CI": "true",
    }
    return {**os.environ, **job.variables, **own, **changed}


REAL = f'exec "{Path(sys.executable).parent / "tokenlaw"}" "$@"'
"""The command itself."""
