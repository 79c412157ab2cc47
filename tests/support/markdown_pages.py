"""Markdown as those who show it do, taken apart."""

from html.parser import HTMLParser

from markdown_it import MarkdownIt

RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
"""CommonMark with tables, as of step summaries."""


class Shown(HTMLParser):
    """What a page shows: its elements, and its text by element."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self.cells: list[str] = []
        self._in_cell = False
        self.feed(RENDERER.render(markdown))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag in ("td", "th"):
            self.cells.append("")
            self._in_cell = True

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._in_cell:
            self.cells[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in ("td", "th")
