"""Pages before mkdocs builds the site of them (``mkdocs build --strict`` is run by .ci/run)."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = runpy.run_path(str(ROOT / "docs" / "site_pages.py"))


@pytest.mark.parametrize(
    ("page", "link", "moved"),
    [
        ("docs/audits/economize.md", "../../examples/audits/README.md", "../examples/audits/README.md"),
        ("docs/audits/economize.md", "../law-evidence.md", "../law-evidence.md"),
        ("docs/findings.md", "../README.md", "index.md"),
        ("docs/findings.md", "https://example.org/../a.md", "https://example.org/../a.md"),
        ("examples/audits/README.md", "../../spec/contracts.py", "../../spec/contracts.py"),
        ("examples/audits/README.md", "../../docs/audits", "../../audits/index.md"),
        ("examples/audits/README.md", "../../docs/rules.md#kv-store", "../../rules.md#kv-store"),
    ],
)
def test_links_lead_to_the_places_in_the_site(page: str, link: str, moved: str) -> None:
    assert PAGES["rewritten"](f"[a]({link})", ROOT / page) == f"[a]({moved})"


def test_marks_of_blocks_are_hidden() -> None:
    text = '```sh exit="1"\na\n```\n```python title="a.py"\nb\n```\n```sh unrun="slow: \'x\'"\nc\n```\n'
    shown = PAGES["rewritten"](text, ROOT / "docs" / "index.md")
    assert shown == '```sh\na\n```\n```python title="a.py"\nb\n```\n```sh\nc\n```\n'


def test_linked_files_are_found_with_what_they_link_to() -> None:
    found = {
        path.relative_to(ROOT).as_posix() for path in PAGES["linked_files"](ROOT / "docs/audits/economize.md")
    }
    assert {"examples/audits/README.md", "spec/generation_contracts.py"} <= found


@pytest.mark.parametrize(
    ("html", "loads"),
    [
        ('<script src="https://example.org/a.js"></script>', True),
        ("<link rel=stylesheet href=//example.org/a.css>", True),
        ('<img alt="a" src="http://example.org/a.png">', True),
        ('<a href="https://example.org">a</a><script src="../a.js"></script>', False),
    ],
)
def test_what_a_page_would_load_from_elsewhere_is_seen(html: str, loads: bool) -> None:
    assert bool(PAGES["foreign"](html)) is loads


def test_every_page_is_in_the_navigation() -> None:
    navigation = re.findall(r"^ +- .*?([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= set(navigation)
    assert len(navigation) == len(set(navigation))
