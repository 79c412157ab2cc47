"""CONTRIBUTING, SECURITY, CHANGELOG and CITATION name files, tests and versions that exist."""

import re
from pathlib import Path

import pytest
import yaml

import tokenlaw

ROOT = Path(__file__).parents[1]
PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
FOLDERS = "spec|impl|properties|stats|tokenlaw|tests|docs|examples|benchmarks"
FILE = re.compile(rf"`((?:{FOLDERS})/[\w./-]*)`")
NAME = re.compile(r"`([A-Z][A-Z_]+|[A-Z]\w+[a-z]\w+|[a-z]+_[a-z_]+)`")
SOURCES = "\n".join(
    path.read_text()
    for folder in ("spec", "impl", "properties", "stats", "tokenlaw", "tests")
    for path in (ROOT / folder).rglob("*.py")
)
WORDS = set(re.findall(r"\w+", SOURCES))
NOT_CODE = {"CONTRIBUTING.md": {"Classes", "Report", "Effect"}}


@pytest.mark.parametrize("name", PAGES)
def test_files_and_links_of_a_page_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    named = [*FILE.findall(text), *re.findall(r"\]\((?![a-z]+:)([^)#]+)\)", text)]
    assert name != "CONTRIBUTING.md" or len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", PAGES)
def test_names_of_a_page_are_those_of_the_code(name: str) -> None:
    named = set(NAME.findall((ROOT / name).read_text())) - NOT_CODE.get(name, set())
    assert sorted(named - WORDS) == []
    assert name != "CONTRIBUTING.md" or sum(one.startswith("test_") for one in named) > 15


def test_tests_that_are_named_are_tests() -> None:
    named = re.findall(r"`(test_\w+)`", (ROOT / "CONTRIBUTING.md").read_text())
    assert [one for one in named if f"def {one}(" not in SOURCES] == []


def test_the_version_is_that_of_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert str(citation["version"]) == tokenlaw.__version__
    assert citation["license"] in (ROOT / "pyproject.toml").read_text()
    assert tokenlaw.__version__ in (ROOT / "CHANGELOG.md").read_text()
