"""The section ``tokenlaw`` of pytest's summary: what every audit of the session showed, and how to repeat it.

An audit is told as plain data on the report of its test, which xdist carries from a worker to the controller.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from tokenlaw.spec.shown_numbers import deviation_seen, rounded_up

if TYPE_CHECKING:
    from tokenlaw.report import Report
    from tokenlaw.spec.verdicts import Evidence

Told = dict[str, Any]
"""Of an audit: ``heading``, ``verdict``, ``lines``, and ``worker`` and ``files``, which differ by worker."""

ATTRIBUTE = "tokenlaw"
"""Of a test's report: the audits that the test has run, a list of `Told`."""

_COLOURS = {"holds": "green", "refuted": "red"}
_WORDS = {"holds": "held"}


class SummarySection:
    """Collects what tests tell, and writes it once all have run."""

    def __init__(self) -> None:
        self._told: list[Told] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a test tells, wherever it ran."""
        self._told += getattr(report, ATTRIBUTE, ())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the section, if anything was audited."""
        if not self._told:
            return
        terminalreporter.section("tokenlaw")
        audits: dict[tuple[str, ...], list[Told]] = {}
        for told in self._told:
            audits.setdefault((told["heading"], *told["lines"]), []).append(told)
        for same in audits.values():
            first = same[0]
            colour = _COLOURS.get(first["verdict"], "yellow")
            terminalreporter.write_line(f"{first['heading']}: {first['verdict']}", **{colour: True})
            for line in (*first["lines"], *_places(same)):
                terminalreporter.write_line(f"  {line}")


def _places(same: list[Told]) -> Iterator[str]:
    """Where the reports are, and that several workers did the same work."""
    for told in same:
        if told["files"]:
            yield f"report: {', '.join(told['files'])}"
    workers = sorted({told["worker"] for told in same})
    if len(workers) > 1:
        yield f"workers: {', '.join(workers)} each ran this audit; with --dist loadfile one does"


def tell(
    report: "Report",
    heading: str,
    *,
    worker: str = "",
    files: tuple[str, ...] = (),
    selected: int | None = None,
) -> Told:
    """What the section says of an audit, of whose checks so many are tests of the session, if not all."""
    from tokenlaw.text import one_line

    return {
        "heading": one_line(heading),
        "verdict": str(report.verdict),
        "lines": [one_line(line) for line in (*_selection(report, selected), *_lines(report))],
        "worker": worker,
        "files": list(files),
    }


def _selection(report: "Report", selected: int | None) -> Iterator[str]:
    """That the verdict is about more than what pytest passes or fails."""
    if selected is not None and selected < len(report.evidence):
        yield f"selected: {selected} of {len(report.evidence)} checks are tests of this run; all were audited"


def _lines(report: "Report") -> Iterator[str]:
    from tokenlaw.controls import failures
    from tokenlaw.report import FAILED
    from tokenlaw.spec.verdicts import Verdict

    rows = [(verdict, report.with_verdict(verdict)) for verdict in Verdict]
    counts = [f"{len(found)} {_WORDS.get(verdict, verdict)}" for verdict, found in rows if found]
    known = [f"{len(found)} known to deviate" for found in [report.known()] if found]
    yield f"checks: {', '.join(counts + known) or 'none'}"
    for verdict, found in rows:
        if found and verdict in FAILED:
            yield f"{verdict}: {', '.join(row.check.id for row in found)}"
    yield from failures(report.controls)
    yield from _power(report)
    yield f"tried: {_tried(report)}, profile {report.profile}, seed {report.seed}"
    yield f"repeat: {report.command}"


def _power(report: "Report") -> Iterator[str]:
    """What the laws would have seen, from the smallest deviation on, and what was known without sampling."""
    from tokenlaw.spec.verdicts import PROBED, PROVED, Verdict

    held = [(row.check.id, row.statistics) for row in report.with_verdict(Verdict.HOLDS) if row.statistics]
    powers = [
        (found["power"]["tv"], found["power"]["probability"], check)
        for check, found in held
        if found.get("power") and "ledger" in found
    ]
    if powers:
        # The law with the smallest is the sharpest; it is another law than that of the largest.
        (least, probability, sharpest), (most, _, bluntest) = min(powers), max(powers)
        upto = f" to {rounded_up(most)} ({bluntest})" if len(powers) > 1 else ""
        yield (
            f"power: deviations from TV {rounded_up(least)} ({sharpest}){upto} on "
            f"would have been refuted with probability {probability}"
        )
    for check, found in held:
        if found.get("evidence") in (PROVED, PROBED):
            yield f"{found['evidence']}: {check}: {_behind(found)}"


def _behind(statistics: Mapping[str, Any]) -> str:
    """How much is behind a law, and how far from the exact one it may be."""
    kinds = ("paths", "evaluations", "samples")
    counted = [f"{statistics[kind]:,} {kind}" for kind in kinds if statistics.get(kind)]
    within = statistics.get("tv_at_most", statistics.get("tv"))
    bound = [] if within is None else [f"within TV {rounded_up(within)}"]
    return ", ".join([*bound, *counted])


def _tried(report: "Report") -> str:
    """The requests behind all laws, which most checks share, or else the operations."""
    requests = max(((row.statistics or {}).get("samples") or 0 for row in report.evidence), default=0)
    if requests:
        return f"{requests:,} requests"
    return f"{max((row.operations for row in report.evidence), default=0):,} operations"


def properties(report: "Report", row: "Evidence | None" = None) -> list[tuple[str, str]]:
    """What JUnit says of the test of an audit, or of one of its checks."""
    from tokenlaw.text import one_line

    found = [("tokenlaw_verdict", str(report.verdict if row is None else row.verdict))]
    if row is None:
        found.append(("tokenlaw_evidence", _tried(report)))
        found += [("tokenlaw_power", line.partition(" ")[2].strip()) for line in _power(report)]
    else:
        found += _of_check(row)
    found += [("tokenlaw_seed", str(report.seed)), ("tokenlaw_repeat", report.command)]
    return [(name, one_line(value)) for name, value in found]


def _of_check(row: "Evidence") -> Iterator[tuple[str, str]]:
    from tokenlaw.spec.verdicts import Verdict

    statistics = row.statistics or {}
    behind = _behind(statistics) or f"{row.operations:,} operations"
    yield "tokenlaw_evidence", f"{statistics.get('evidence', 'tried')}: {behind}"
    power = statistics.get("power")
    if power and row.verdict is Verdict.HOLDS:
        seen = deviation_seen(power["tv"], statistics)
        yield "tokenlaw_power", f"{seen} would have been refuted with probability {power['probability']}"
    if row.known:
        yield "tokenlaw_known", row.known
