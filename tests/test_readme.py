"""The README, followed as a reader would; ``make`` itself is run by .ci/run."""

import json
import re
from pathlib import Path

import pytest

from support.documents import ROOT, blocks, follow, shell
from tokenlaw.impl.faults.targets import SUSPECTS
from tokenlaw.suites import suites

README = ROOT / "README.md"
BLOCKS = blocks(README)
HEADINGS = list(dict.fromkeys(block.heading for block in BLOCKS))


def test_there_are_blocks_of_every_kind() -> None:
    assert {block.language for block in BLOCKS} == {"python", "sh", "text"}
    assert len(HEADINGS) >= 4


@pytest.mark.docs
@pytest.mark.timeout(600)
@pytest.mark.parametrize("heading", HEADINGS)
def test_the_readme_says_what_happens(heading: str, tmp_path: Path) -> None:
    assert follow(README, tmp_path, heading) > 0


@pytest.mark.docs
def test_the_engine_of_the_readme_can_be_audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (engine,) = (block for block in BLOCKS if block.marks.get("title") == "engine.py")
    monkeypatch.chdir(tmp_path)
    Path("engine.py").write_text(engine.text)
    done = shell("tokenlaw audit engine:ENGINE --only '*/[c-e]*' --json -")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["target"]["contracts"] == ["kv-store", "paged-attention"]
    assert "my-engine 1.2.0: holds" in done.stderr


def test_its_numbers_of_faults_and_checks_are_those_of_the_code() -> None:
    """The reference is asked everything but trees, which a verifier of its own has."""
    text = README.read_text()
    guilty = sum(one.guilty for one in SUSPECTS.values())
    assert f"({guilty} of {guilty}, and 0 of {len(SUSPECTS) - guilty})" in text
    checks = [check.id for suite in suites().values() for check in suite.checks]
    assert f"| {len(checks) - checks.count('law/trees')} checks of five contracts, all exercised |" in text


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)", README.read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
