"""The HTML page: what is on it, that it needs nothing else, and that nobody's text breaks out of it."""

import base64
import json
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from support.html_pages import Page, assert_loads_nothing
from support.pages import (
    HOSTILE,
    TORN,
    evidence,
    holding_law,
    hostile_report,
    page_of,
    refuted_law,
    refuted_store,
    refuted_trace,
    report_of,
)
from tokenlaw.cli import main
from tokenlaw.controls import Control, Kind
from tokenlaw.diagram_words import ROWS
from tokenlaw.errors import BadUse
from tokenlaw.html_data import Outcome, ShownLaw, stored
from tokenlaw.html_laws import figure
from tokenlaw.html_report import to_html
from tokenlaw.report_files import ReportFiles
from tokenlaw.spec.claims import COMPLETED, MEANINGS
from tokenlaw.spec.contracts import VERIFIER
from tokenlaw.spec.verdicts import Verdict


def test_verdicts_come_first_and_every_check_has_its_evidence() -> None:
    absent = evidence("kv/window", Verdict.NOT_SUPPORTED, "needs window")
    words = Page(page_of(refuted_trace(), holding_law(), absent)).words()
    assert words.index("refuted") < words.index("Ledger of alpha") < words.index("What was exercised")
    assert words.index("What was exercised") < words.index("Findings") < words.index("All checks")
    assert "1 refuted" in words
    assert "With 4000 samples any law at TV >= 0.04 would have been refuted." in words
    assert "sampled 4,000 samples" in words
    assert "tried 12,345 operations" in words
    assert "needs window" in words
    assert "copy never happened" in words
    assert "fork 1,200" in words


def test_the_ledger_says_what_was_allotted_and_how_far_it_got() -> None:
    page = page_of(refuted_law(), holding_law())
    words = Page(page).words()
    assert "with probability 1e-09 at most" in words
    assert "law/completed gate 50.0 % 5e-10 e = 10^26.1 e \u2265 10^9.3" in words
    assert "law/chi-square p-value 50.0 % 5e-10 p = 0.5 p \u2264 5e-10" in words
    assert '<div class="meter full" role="img" aria-label="100.0 percent' in page


def test_a_refuted_law_is_drawn_as_paired_bars_with_intervals() -> None:
    page = page_of(refuted_law())
    words = Page(page).words()
    assert "1,000 samples; lines are 99.9% intervals (exact binomial)" in words
    assert "impossible 0.2 (200\u00d7)" in words
    assert "0.5 0.3 (300\u00d7), too rare" in words
    assert "0.26 0.25 (250\u00d7) 0.2 to 0.3 1,234 more 0.24 0.25" in words
    assert page.count('<rect class="exact"') == page.count('<rect class="found"') == 3
    assert "draft 1, rejected" in words


def test_what_is_refuted_comes_before_what_is_unknown() -> None:
    unknown = evidence("law/first", Verdict.UNKNOWN, "it died", "verifier")
    page = page_of(unknown, refuted_law())
    assert page.index('id="check-law-completed"') < page.index('id="check-law-first"')


def test_an_interval_has_both_ends_unless_it_runs_out_of_the_picture() -> None:
    whole = ShownLaw("law", (Outcome("a", 0.5, 0.6, 60, 0.4, 0.7),), counted=100)
    cut = ShownLaw("law", (Outcome("a", 0.1, 0.2, 1, 0.0, 0.9),), counted=5)
    assert [figure(law).bars[0].high == 100 for law in (whole, cut)] == [False, True]


def test_bars_are_as_long_as_their_probabilities() -> None:
    statistics = refuted_law().statistics
    assert statistics is not None
    bars = figure(msgspec.convert(statistics["laws_shown"][0], ShownLaw)).bars
    assert [(bar.exact, bar.found) for bar in bars] == [(0, 40), (100, 60), (52, 50)]
    assert [bar.verdict for bar in bars] == ["impossible", "too rare", ""]
    assert (bars[1].low, bars[1].high) == (50, 70)


def test_a_proved_law_needs_no_interval() -> None:
    statistics = {
        "evidence": "proved",
        "paths": 51,
        "outcomes": [{"outcome": "[0, 1]", "program": 0.25, "spec": 0.5}],
        "path": ["draft 1, accepted", "token 0 replaces it"],
    }
    row = evidence("program/law", Verdict.REFUTED, "TV = 0.25", "program", statistics=statistics)
    words = Page(page_of(row)).words()
    assert "proved 51 paths" in words
    assert "0.5 0.25, too rare" in words
    assert "draft 1, accepted token 0 replaces it" in words
    assert "interval" not in words


def test_a_refuted_trace_is_drawn_step_by_step() -> None:
    parsed = Page(page_of(refuted_trace()))
    drawn = [
        attributes for tag, attributes in parsed.tags if tag == "svg" and attributes.get("role") == "img"
    ]
    assert len(drawn) == len(TORN.operations)
    assert "4. append to sequence 0: token 6" in parsed.words()
    assert "kv/content: expected" in parsed.words()


def test_a_refuted_trace_of_a_store_is_drawn_with_its_rows() -> None:
    words = Page(page_of(refuted_store())).words()
    assert "2. new sequence 1: token 0 \u2717 refuted here: store/bystanders" in words
    assert (
        "seq 0, position 0: reads another sequence's row, 1:0 of operation 2; not 0:0 of operation 1" in words
    )
    assert "1:0 other" in words
    assert ROWS in words
    assert ROWS not in Page(page_of(refuted_trace())).words()


def test_the_counterexample_and_its_command_are_on_the_page() -> None:
    parsed = Page(page_of(refuted_trace()))
    links = [attributes for tag, attributes in parsed.tags if "download" in attributes]
    assert [link["download"] for link in links] == ["kv-content.json"]
    content = base64.b64decode((links[0]["href"] or "").partition("base64,")[2])
    assert json.loads(content)["operations"][0]["tokens"] == [7, 8, 9]
    assert "tokenlaw replay kv-content.json --target mine:make" in parsed.text
    assert "tokenlaw audit mine:make --profile dev --seed 5" in parsed.text
    copied = {attributes["data-copies"] for tag, attributes in parsed.tags if "data-copies" in attributes}
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert copied
    assert copied <= set(ids)
    assert len(set(ids)) == len(ids)


def test_nothing_is_loaded_from_outside() -> None:
    assert_loads_nothing(Page(page_of(refuted_trace(), refuted_law(), holding_law())))
    page = page_of(refuted_trace())
    assert not re.search(r"https?://|@import|url\(", page)
    assert "default-src 'none'" in page


def test_what_a_target_writes_stays_text() -> None:
    report = hostile_report()
    page = to_html(report.to_data()).decode()
    plain = Page(to_html(report_of(*report.evidence[1:2]).to_data()).decode())
    parsed = Page(page)
    assert [tag for tag, _ in parsed.tags].count("script") == 1
    assert (
        [tag for tag, _ in parsed.tags].count("style") == [tag for tag, _ in plain.tags].count("style") == 1
    )
    assert not [tag for tag, _ in parsed.tags if tag == "img"]
    assert parsed.text.count("document.title='broken'") > 15
    assert "1337" not in parsed.text
    assert "\x1b" not in page
    assert_loads_nothing(parsed)


def test_a_saved_report_gives_the_same_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of(refuted_trace(), refuted_law(), holding_law())
    report.write_json(tmp_path / "report.json")
    assert main(["report", str(tmp_path / "report.json"), "--html", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_bytes() == to_html(report.to_data())
    assert capsys.readouterr().out == f"{tmp_path / 'page.html'}: open it in a browser\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "report.json"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "damaged, not JSON"),
        ("[1]", "not a report: schema None"),
        ('{"schema": "tokenlaw.trace/1"}', "not a report: schema 'tokenlaw.trace/1'"),
        ('{"schema": "tokenlaw.report/1"}', "a damaged report: Object missing required field `target`"),
    ],
)
def test_what_is_no_report_is_bad_use(
    content: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.json").write_text(content)
    command = ["report", str(tmp_path / "report.json"), "--html", str(tmp_path / "page.html")]
    assert main(command) == 3
    assert told in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 0.0},
        {"alpha": 1.5},
        {"share": "much"},
    ],
)
def test_a_damaged_ledger_is_seen(wrong: dict[str, object]) -> None:
    data = report_of(holding_law()).to_data()
    data["ledger"][0] |= wrong
    with pytest.raises(BadUse, match="a damaged report"):
        stored(data)


@pytest.mark.parametrize("observed", [2000.0, 1e308, -1e308])
def test_a_p_value_above_one_is_shown_as_one(observed: float) -> None:
    """The logarithm of a p-value is 0 at most; a report that says more is still shown."""
    data = report_of(holding_law()).to_data()
    data["ledger"][0] |= {"kind": "chi-square", "observed": observed}
    assert ("p = 1" if observed > 0 else "p = 0") in to_html(data).decode()


def test_a_count_beyond_all_counts_is_damage() -> None:
    data = report_of(holding_law()).to_data()
    data["checks"][0]["exercised"] = {"rows": 10**400}
    with pytest.raises(BadUse, match="a damaged report"):
        stored(data)


def test_a_frame_that_contradicts_itself_is_drawn_as_far_as_it_goes() -> None:
    row = refuted_trace()
    frames = [dict(frame) for frame in row.frames]
    frames[-1]["sequences"] = [
        {"number": -3, "tokens": [1], "table": [99, None], "wrong": [-1, 0, 10**9], "swapped": False}
    ]
    frames[-1]["copies"] = [{"source": 99, "destination": 98}]
    data = report_of(row).to_data()
    data["checks"][0]["frames"] = frames
    assert b"seq -3" in to_html(data)


def test_a_store_s_frame_that_contradicts_itself_is_drawn_as_far_as_it_goes() -> None:
    row = refuted_store()
    frames = [dict(frame) for frame in row.frames]
    misread = [{"position": 10**9, "wrong": "nothing"}, {"position": -1, "wrong": "a stale row"}]
    frames[0]["sequences"] = [{**frames[0]["sequences"][0], "misread": misread, "tokens": [], "table": [7]}]
    frames[1]["blocks"] = []
    data = report_of(row).to_data()
    data["checks"][0]["frames"] = frames
    words = Page(to_html(data).decode()).words()
    assert "seq 0, position 1000000000: reads nothing" in words
    data["checks"][0]["frames"][0]["sequences"][0]["misread"] = [{"position": 0, "wrong": "hardly"}]
    with pytest.raises(BadUse, match="a damaged report"):
        to_html(data)


def test_controls_and_the_strongest_claim_are_told() -> None:
    controls = (
        Control(VERIFIER, Kind.REFERENCE, Verdict.HOLDS),
        Control(VERIFIER, Kind.BROKEN, Verdict.HOLDS, fault="a bonus token too many", message="not seen"),
    )
    words = Page(to_html(replace(report_of(holding_law()), controls=controls).to_data()).decode()).words()
    assert f"Void: a control failed, so this run says nothing about {VERIFIER}." in words
    assert "reference holds (as it must)" in words
    assert "broken wrapper: a bonus token too many holds (failed) not seen" in words
    data = report_of(holding_law()).to_data() | {"strongest_claim": COMPLETED}
    told = f"Strongest claim that still stands: {COMPLETED} ({MEANINGS[COMPLETED]})"
    assert told in Page(to_html(data).decode()).words()


def test_files_of_a_run_are_written_each_in_its_form(tmp_path: Path) -> None:
    report = report_of(holding_law())
    paths = {"--html": tmp_path / "page.html", "--json": tmp_path / "report.json"}
    missing = {"--junit": tmp_path / "no folder" / "report.xml"}
    unwritten = ReportFiles(missing | paths).write(report)
    assert [line.partition(":")[0] for line in unwritten] == [f"--junit {missing['--junit']}"]
    assert paths["--html"].read_bytes() == to_html(report.to_data())
    assert json.loads(paths["--json"].read_text()) == report.to_data()


def test_two_options_name_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = str(tmp_path / "report")
    assert main(["audit", "reference", "--json", same, "--html", same]) == 3
    assert f"--json and --html both name {same}; name two files" in capsys.readouterr().err


def test_a_hostile_name_is_no_command() -> None:
    """A command line of a target whose name is hostile is quoted, or it isn't shown."""
    words = Page(to_html(hostile_report().to_data()).decode())
    commands = [line for line in words.text.splitlines() if "tokenlaw replay" in line]
    assert commands
    assert all(f"'{HOSTILE[:20]}" in line for line in commands)
