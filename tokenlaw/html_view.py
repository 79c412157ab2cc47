"""What the HTML page shows of a report, in the words and the order in which it shows it."""

import base64
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from tokenlaw.counterexamples import file_name
from tokenlaw.diagram_legend import legend
from tokenlaw.diagram_panel import draw_panel
from tokenlaw.diagram_svg import to_svg
from tokenlaw.diagram_words import has_rows
from tokenlaw.html_data import KNOWN, Row, Stored
from tokenlaw.html_laws import LawFigure, figure
from tokenlaw.html_ledger import LedgerView, entry_of, number
from tokenlaw.prove_command import PROFILE as PROOF
from tokenlaw.report import replay_command
from tokenlaw.spec.claims import MEANINGS
from tokenlaw.spec.suites import DEFAULTS, Settings
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.text import one_line, printable
from tokenlaw.writing import formatted

MARKS = {
    Verdict.REFUTED: "\u2717",
    Verdict.VOID: "\u2298",
    Verdict.UNKNOWN: "?",
    Verdict.NOT_EXERCISED: "\u25cb",
    Verdict.HOLDS: "\u2713",
    Verdict.NOT_SUPPORTED: "\u2013",
}
"""A sign beside the colour of each verdict."""

_COLUMNS = 3
"""Blocks side by side: what a telephone can show."""

_MOST_FRAMES = 60


@dataclass(frozen=True)
class Panel:
    """One step of a counterexample: its number, its picture, and whether it shows the fault."""

    number: int
    svg: str
    wrong: bool


@dataclass(frozen=True)
class CheckView:
    """A check, with everything that is shown of it.

    ``kind`` says how it was decided (proved, probed, sampled, tried), ``tried`` how much is behind it.
    """

    row: Row
    verdict: str
    anchor: str
    kind: str
    tried: str
    message: str
    laws: tuple[LawFigure, ...] = ()
    panels: tuple[Panel, ...] = ()
    legend: str = ""
    download: str = ""
    file: str = ""
    replay: str = ""


@dataclass(frozen=True)
class ControlView:
    """A control: of which contract, what was put in place of the target, and what the suite said."""

    contract: str
    what: str
    verdict: str
    told: str
    failed: bool


@dataclass(frozen=True)
class Page:
    """Everything on the page."""

    report: Stored
    name: str
    verdict: str
    summary: str
    counts: tuple[tuple[str, int], ...]
    open: tuple[CheckView, ...]
    checks: tuple[CheckView, ...]
    ledger: tuple[LedgerView, ...]
    alpha: str
    allotted: str
    coverage: tuple[tuple[str, tuple[tuple[str, int, float], ...]], ...]
    facts: tuple[tuple[str, str], ...]
    claim: str
    controls: tuple[ControlView, ...]
    void: tuple[str, ...]

    @property
    def title(self) -> str:
        """The target and the verdict."""
        return f"{self.name}: {self.verdict}"


def page_of(report: Stored) -> Page:
    """The page of a report."""
    checks = tuple(_check(row, report) for row in report.checks)
    passing = (Verdict.HOLDS, Verdict.NOT_SUPPORTED)
    words = [view.verdict for view in checks]
    open_ = [view for view in checks if view.verdict not in passing or view.panels]
    order: list[str] = [*MARKS, KNOWN]
    controls = tuple(_controls(report))
    return Page(
        report,
        one_line(f"{report.target.name} {report.target.version}"),
        report.verdict,
        "" if report.profile == PROOF else f"profile {report.profile}, seed {report.seed}",
        tuple((word, words.count(word)) for word in order if word in words),
        tuple(sorted(open_, key=lambda view: order.index(view.verdict) if view.verdict in order else -1)),
        checks,
        tuple(map(entry_of, report.ledger)),
        number(report.settings.get("alpha")),
        number(sum(entry.alpha for entry in report.ledger)),
        _coverage(report),
        _facts(report),
        _claim(report),
        controls,
        tuple(dict.fromkeys(control.contract for control in controls if control.failed)),
    )


def _claim(report: Stored) -> str:
    """The strongest claim about the laws of a verifier that still stands, in words."""
    claim = report.strongest_claim
    return "" if claim is None else f"{claim} ({MEANINGS[claim]})" if claim in MEANINGS else claim


def _controls(report: Stored) -> Iterator[ControlView]:
    for contract, kinds in report.controls.items():
        for kind, row in kinds.items():
            what = f"{kind}: {row.fault}" if row.fault else kind
            told = row.message if row.failed or row.verdict is None else ", ".join(row.checks)
            yield ControlView(contract, what, row.verdict or "not run", printable(told).rstrip(), row.failed)


def _check(row: Row, report: Stored) -> CheckView:
    statistics = row.statistics
    laws = () if statistics is None else tuple(map(figure, statistics.laws()))
    hidden = max(0, len(row.frames) - _MOST_FRAMES)  # what is wrong shows in the last ones
    panels = tuple(
        Panel(
            number,
            to_svg(draw_panel(frame, number, columns=_COLUMNS), alone=False),
            bool(frame.broken or frame.crash),
        )
        for number, frame in enumerate(row.frames[hidden:], start=hidden + 1)
    )
    file = f"{file_name(row.id)}.json" if row.counterexample is not None else ""
    return CheckView(
        row,
        row.judged,
        f"check-{file_name(row.id)}",
        "" if row.verdict == Verdict.NOT_SUPPORTED else _kind(row),
        _tried(row),
        printable(row.message).rstrip(),
        laws,
        panels,
        Markup(legend(rows=any(map(has_rows, row.frames)))),
        _download(row.counterexample) if file else "",
        file,
        _replay(file, report),
    )


def _kind(row: Row) -> str:
    """How a check was decided."""
    return (row.statistics.evidence if row.statistics else "") or "tried"


def _tried(row: Row) -> str:
    """How much is behind a verdict."""
    counts = {} if row.statistics is None else row.statistics.counts()
    counts = counts or {"operations": row.operations}
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)


def _download(counterexample: Mapping[str, Any] | None) -> str:
    """The counterexample as an address that holds it."""
    content = base64.b64encode(formatted(counterexample)).decode("ascii")
    return f"data:application/json;base64,{content}"


def _replay(file: str, report: Stored) -> str:
    """How to run a counterexample; empty where another process couldn't find the target."""
    if not (file and report.target.address):
        return ""
    device = str(report.settings.get("device", DEFAULTS.device))
    return replay_command(file, report.target.address, Settings(device=device))


def _coverage(report: Stored) -> tuple[tuple[str, tuple[tuple[str, int, float], ...]], ...]:
    """For each contract how often what its checks are about has happened, with a logarithmic bar."""
    counts: dict[str, dict[str, int]] = {}
    for row in report.checks:
        for event, count in row.exercised.items():
            events = counts.setdefault(row.contract, {})
            events[event] = max(events.get(event, 0), count)
    largest = max((count for events in counts.values() for count in events.values()), default=0)
    scale = math.log1p(largest) or 1.0
    return tuple(
        (
            contract,
            tuple(
                (event, count, round(100 * math.log1p(max(count, 0)) / scale, 1))
                for event, count in sorted(events.items())
            ),
        )
        for contract, events in counts.items()
    )


def _facts(report: Stored) -> tuple[tuple[str, str], ...]:
    """About the run: versions, settings, capabilities."""
    # A proof knows nothing of alpha and budgets.
    settings = {} if report.profile == PROOF else report.settings
    chosen = {name: value for name, value in settings.items() if value not in (None, [], "")}
    offered = [
        (f"capabilities of {contract}", ", ".join(found) or "none")
        for contract, found in report.target.capabilities.items()
    ]
    return tuple(
        (one_line(name), one_line(str(value)))
        for name, value in [
            ("contracts", ", ".join(report.target.contracts)),
            *offered,
            *chosen.items(),
            *report.versions.items(),
            ("spec version", report.spec_version),
        ]
    )
