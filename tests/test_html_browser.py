"""The HTML page in a real browser: no errors, nothing from outside, usable by keyboard and on a telephone."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.pages import (
    evidence,
    holding_law,
    hostile_report,
    refuted_law,
    refuted_store,
    refuted_trace,
    report_of,
)
from tokenlaw.html_report import to_html
from tokenlaw.report import Report
from tokenlaw.spec.verdicts import Verdict

playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright (pip install tokenlaw[browser])"
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium (apt-get install chromium)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    # Chromium refuses to sandbox itself for root, which CI often is.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as player:
        found = player.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield found
        found.close()


RUN = report_of(refuted_trace(), refuted_store(), refuted_law(), holding_law())


class Opened:
    """A page in the browser, and everything that it complained of or asked for."""

    def __init__(self, browser: Any, report: Report, folder: Path) -> None:
        file = folder / "page.html"
        file.write_bytes(to_html(report.to_data()))
        self.address = file.as_uri()
        self.page = browser.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(self.address)

    def background(self, **media: str) -> str:
        self.page.emulate_media(**media)
        return str(self.page.evaluate("getComputedStyle(document.body).backgroundColor"))


@pytest.fixture(scope="module")
def opened(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """The page of one run, which several tests look at."""
    return Opened(browser, RUN, tmp_path_factory.mktemp("page"))


@pytest.mark.parametrize("report", [RUN, hostile_report()], ids=["run", "hostile"])
def test_no_error_and_nothing_from_outside(browser: Any, report: Report, tmp_path: Path) -> None:
    found = Opened(browser, report, tmp_path)
    assert found.said == []
    assert found.asked == [found.address]
    assert found.page.title().endswith(f": {report.verdict}")
    assert found.page.evaluate("document.scripts.length") == 1


def test_a_script_that_got_in_all_the_same_is_not_run(browser: Any, tmp_path: Path) -> None:
    """The page's policy is a second wall: it knows the hash of its own script, and no other runs."""
    page = to_html(RUN.to_data()).replace(b"</footer>", b"</footer><script>document.title='broken'</script>")
    (tmp_path / "page.html").write_bytes(page)
    found = browser.new_page()
    found.goto((tmp_path / "page.html").as_uri())
    assert found.title() == "mine:make 1.0: refuted"


def test_nothing_is_wider_than_the_screen(browser: Any, opened: Opened, tmp_path: Path) -> None:
    words = evidence("kv/" + "long" * 40, Verdict.UNKNOWN, "word" * 200)
    wide = Opened(browser, report_of(words, name="name" * 50), tmp_path)
    for page in (opened.page, wide.page):
        for width in (320, 390, 1200):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_light_and_dark_and_paper(opened: Opened) -> None:
    assert opened.background(color_scheme="light") == "rgb(255, 255, 255)"
    assert opened.background(color_scheme="dark") == "rgb(20, 24, 29)"
    assert opened.background(media="print") == "rgb(255, 255, 255)"
    opened.page.emulate_media(media="screen", color_scheme="light")


def test_a_command_is_copied_by_keyboard(opened: Opened) -> None:
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = opened.page.get_by_role("button", name="Copy the command that repeats this run")
    for _ in range(10):
        opened.page.keyboard.press("Tab")
        if button.evaluate("one => one === document.activeElement"):
            break
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_function("document.activeElement.textContent === 'Copied'")
    assert opened.page.evaluate("navigator.clipboard.readText()") == RUN.command
    assert opened.said == []


def test_what_is_folded_away_is_printed(opened: Opened) -> None:
    folded = "document.querySelectorAll('details:not([open])').length"
    before = opened.page.evaluate(folded)
    assert before > 0
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.page.evaluate(folded) == 0
    opened.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.page.evaluate(folded) == before
