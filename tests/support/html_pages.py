"""HTML pages, taken apart."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Elements, their attributes and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._open.reverse()
        self._open.remove(tag)
        self._open.reverse()

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self._open):
            self.text += f"{data} "

    def words(self) -> str:
        return " ".join(self.text.split())


def assert_loads_nothing(parsed: Page) -> None:
    """Nothing on the page comes from elsewhere."""
    for tag, attributes in parsed.tags:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form"}
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:application/json;base64,"))
