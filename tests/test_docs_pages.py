"""Every page of the documentation, followed as a reader would; `support.documents` says what is done."""

import re
from pathlib import Path

import pytest

from support.documents import DOCS, Misled, blocks, follow

PAGES = sorted(DOCS.rglob("*.md"))
DRAWN_ELSEWHERE = {
    "shared-prefix.svg": "test_diagram.py",
    "torch-paged-attention.svg": "test_docs_generated.py",
}
"""Figures that no block draws, and the tests that draw them."""


def name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def images(page: Path) -> list[Path]:
    return [page.parent / link for link in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())]


@pytest.mark.docs
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name)
def test_a_page_says_what_happens(page: Path, tmp_path: Path) -> None:
    runs = follow(page, tmp_path)
    assert runs == len([block for block in blocks(page) if is_run(block.language, block.marks)])
    for image in images(page):
        if image.name not in DRAWN_ELSEWHERE:
            drawn = tmp_path / image.name
            assert drawn.read_text() == image.read_text(), f"{image} isn't what the page draws: copy {drawn}"


def is_run(language: str, marks: dict[str, str]) -> bool:
    return language in {"python", "sh"} and not marks.keys() & {"unrun", "title"}


def test_there_is_something_to_follow() -> None:
    run = [page for page in PAGES if any(is_run(block.language, block.marks) for block in blocks(page))]
    assert len(run) >= 12


def test_every_figure_exists() -> None:
    figures = [image for page in PAGES for image in images(page)]
    assert {image.name for image in figures} >= {*DRAWN_ELSEWHERE}
    assert [image for image in figures if not image.exists()] == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "page.md:7: not printed:\n2\nbut:\n1"),
        ("```python\n1 / 0\n```\n", "page.md:3 raises ZeroDivisionError: division by zero"),
        ("```sh\nexit 2\n```\n", "page.md:3 ends with status 2"),
        ('```sh exit="1"\ntrue\n```\n', "page.md:3 ends with status 0"),
        ("```text\n1\n```\n", "page.md:3: no block before it was run that could print this"),
        ("```toml\na = 1\n```\n", "page.md:3: toml is neither run nor written"),
        ("```python once\n1\n```\n", "page.md:3: unknown mark in ' once'"),
        ("```\n1\n```\n", "page.md: a block lacks its language or its end"),
        ("  ```python\n  1\n  ```\n", "page.md: a block lacks its language or its end"),
    ],
)
def test_a_reader_who_is_misled_says_where(text: str, complaint: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{text}")
    with pytest.raises(Misled, match=re.escape(complaint)):
        follow(page, tmp_path)


def test_blocks_go_on_from_each_other(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n"
        '```python title="three.py"\nTHREE = 3\n```\n\n'
        "```python\nfrom three import THREE\nfour = THREE + 1\n```\n\n"
        '```python unrun="it would raise"\n1 / 0\n```\n\n'
        "```python\nprint('from')\nprint('here')\nprint(four)\n```\n\n```text\nfrom\n...\n4\n```\n"
    )
    assert follow(page, tmp_path) == 2
