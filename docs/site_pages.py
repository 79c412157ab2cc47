"""Pages as files of the repository and as pages of the site: links, marks of code blocks, foreign hosts.

Pages are written to be read in the repository as well, where ``../examples/audits/README.md`` is a good link.
Files that are linked like this become files of the site, at the place that they have in the repository.
"""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")
MARKS = re.compile(r'^(```\w+.*?)(?: (?:unrun|exit)="[^"]*")+$', re.MULTILINE)
FOREIGN = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?\s(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


def site_path(file: Path) -> str:
    """Where a file, or the index of a folder, of the repository stands in the site."""
    if file == ROOT / "README.md":
        return "index.md"  # the site's own first page
    place = file.relative_to(DOCS if file.is_relative_to(DOCS) else ROOT)
    return (place / "index.md" if file.is_dir() else place).as_posix()


def linked_files(page: Path) -> set[Path]:
    """Files outside ``docs/`` that the page links to, and those that they link to."""
    found, unread = set[Path](), [page]
    while unread:
        one = unread.pop()
        files = {(one.parent / link).resolve() for link in LINK.findall(one.read_text())}
        new = {file for file in files if _is_outside(file)} - found
        found |= new
        unread += [file for file in new if file.suffix == ".md"]
    return found


def _is_outside(file: Path) -> bool:
    return file.is_file() and file.is_relative_to(ROOT) and not file.is_relative_to(DOCS)


def rewritten(text: str, page: Path) -> str:
    """The page as the site has it: links lead to the places of files in the site, blocks lose our marks."""

    def moved(found: re.Match[str]) -> str:
        file = (page.parent / found[1]).resolve()
        if not file.is_relative_to(ROOT) or file.is_relative_to(DOCS) == page.is_relative_to(DOCS):
            return found[1]
        return posixpath.relpath(site_path(file), posixpath.dirname(site_path(page)) or ".")

    return MARKS.sub(r"\1", LINK.sub(moved, text))


def foreign(html: str) -> list[str]:
    """Elements of a page that would load something from another host.

    >>> foreign('<a href="https://example.org">a link</a><img src="https://example.org/a.png">')
    ['<img src="https://example.org/a.png">']
    """
    return FOREIGN.findall(html)
