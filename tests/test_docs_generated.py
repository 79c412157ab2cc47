"""What is generated from the code is what the code says now."""

import doctest
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def _generators(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules of ``docs/`` can be imported, and are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(DOCS))
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(f"{DOCS}/"):
            del sys.modules[name]


@pytest.mark.usefixtures("_generators")
def test_the_rules_page_is_that_of_the_code() -> None:
    page = import_module("generate_rules").page()
    assert page == (DOCS / "rules.md").read_text(), "run: python docs/generate_rules.py"


@pytest.mark.usefixtures("_generators")
def test_the_reference_is_that_of_the_code() -> None:
    pages = import_module("generate_reference").PAGES
    stale = [place for place, make in pages.items() if make() != (DOCS / place).read_text()]
    assert stale == [], "run: python docs/generate_reference.py"


@pytest.mark.usefixtures("_generators")
def test_every_page_of_the_reference_is_generated() -> None:
    generated = import_module("generate_reference").PAGES
    assert {f"reference/{page.name}" for page in DOCS.glob("reference/*")} <= set(generated)


@pytest.mark.usefixtures("_generators")
def test_the_picture_is_that_of_a_run() -> None:
    drawn = (DOCS / "torch-paged-attention.svg").read_text()
    version = re.findall(r"\(torch ([\d.]+), ", drawn)[0]
    assert import_module("draw_torch_finding").picture(version) == drawn, "run: draw_torch_finding.py"


@pytest.mark.usefixtures("_generators")
def test_a_field_without_a_meaning_stops_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("reference_report")
    monkeypatch.delitem(module.CHECK, "frames")
    with pytest.raises(SystemExit, match="frames"):
        module.report()


class Door:
    """What a door does.

    Optional capabilities (name: members)
        ``bell``: ``ring(times)``, that many
        times. ``both``: nothing.
        ``lock``, ``bolt``: as above.

    Parameters
    ----------
    wood : of any kind,
        even oak.

    Raises
    ------
    Closed, Jammed
        It doesn't open.

    Examples
    --------
    >>> Door().open(1)
    """

    def open(self, far: "int | None" = None, *, slowly: bool = False) -> None: ...


@pytest.mark.usefixtures("_generators")
def test_docstrings_become_markdown() -> None:
    assert import_module("docstrings").rendered(Door) == (
        "What a door does.\n\n"
        "**Optional capabilities (name: members)**\n\n"
        "- `bell`: `ring(times)`, that many times. `both`: nothing.\n"
        "- `lock`, `bolt`: as above.\n\n"
        "**Parameters**\n\n- `wood`: of any kind, even oak.\n\n"
        "**Raises**\n\n- `Closed, Jammed`: It doesn't open.\n\n"
        '**Examples**\n\n```pycon unrun="run as a doctest"\n>>> Door().open(1)\n```'
    )


@pytest.mark.usefixtures("_generators")
def test_signatures_are_those_of_the_source() -> None:
    signature: Any = import_module("docstrings").signature
    assert signature(Door.open, "open") == "open(far: 'int | None' = None, *, slowly: bool = False) -> None"


@pytest.mark.usefixtures("_generators")
@pytest.mark.parametrize("name", ["docstrings", "site_pages", "tables"])
def test_the_examples_of_the_generators_are_true(name: str) -> None:
    failed, tried = doctest.testmod(import_module(name))
    assert tried
    assert not failed
