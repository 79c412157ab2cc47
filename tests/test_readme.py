"""The README's code blocks, run as a reader would run them; ``make`` itself is run by .ci/run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCKS if kind == language]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    binaries = str(Path(sys.executable).parent)
    environment = os.environ | {
        "PATH": os.pathsep.join([binaries, os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT / "examples"),
    }
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=110, check=False
    )


def test_there_are_blocks_of_every_kind() -> None:
    assert {kind for kind, _ in BLOCKS} == {"python", "sh", "text"}


@pytest.mark.parametrize("number", [0, 1])
def test_the_python_blocks_print_what_the_readme_shows(number: int, tmp_path: Path) -> None:
    done = run([sys.executable, "-P", "-c", blocks("python")[number]], tmp_path)
    assert done.returncode == 0, done.stderr
    assert blocks("text")[number] in done.stdout


def test_the_third_python_block_runs(tmp_path: Path) -> None:
    _, _, program, _ = blocks("python")
    done = run([sys.executable, "-P", "-c", program], tmp_path)
    assert done.returncode == 0, done.stderr
    assert ": holds (" in done.stdout


def test_the_engine_of_the_readme_can_be_audited(tmp_path: Path) -> None:
    *_, engine = blocks("python")
    (tmp_path / "engine.py").write_text(engine)
    command = ["tokenlaw", "audit", "engine:ENGINE", "--only", "*/[c-e]*", "--json", "-"]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["target"]["contracts"] == ["kv-store", "paged-attention"]
    assert "my-engine 1.2.0: holds" in done.stderr


@pytest.mark.parametrize("script", blocks("sh"))
def test_the_shell_blocks_run(script: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = run(["sh", "-e", "-c", script], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    if "tokenlaw prove" in script:
        assert blocks("text")[2] in done.stdout
        assert "TV <= 1e-12, tolerance 1e-06 (39 paths)" in done.stdout


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_rules_page_is_that_of_the_code() -> None:
    program = "import generate_rules; print(generate_rules.page(), end='')"
    done = run([sys.executable, "-c", program], ROOT / "docs")
    assert done.stdout == (ROOT / "docs" / "rules.md").read_text(), "run: python docs/generate_rules.py"


def test_the_picture_is_that_of_a_run() -> None:
    program = "import draw_torch_finding as d; print(d.picture(), end='')"
    done = run([sys.executable, "-c", program], ROOT / "docs")
    if "+cpu" not in done.stdout:
        pytest.skip("the picture was drawn with the CPU build of torch that constraints.txt pins")
    drawn = (ROOT / "docs" / "torch-paged-attention.svg").read_text()
    assert done.stdout == drawn, "run: python docs/draw_torch_finding.py"
