"""A report as Markdown for step summaries: verdicts first, then what failed and how to repeat it, then power.

A view of the same data as the HTML page; whatever a target wrote stays text (`tokenlaw.markdown_text`).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tokenlaw.html_data import KNOWN, stored
from tokenlaw.html_faults import Matrix, faults_page, is_matrix, matrix
from tokenlaw.html_faults import Row as Fate
from tokenlaw.html_view import MARKS, CheckView, Page, page_of
from tokenlaw.markdown_text import block, code, document, folded, plain, table
from tokenlaw.spec.shown_numbers import deviation_seen
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.text import one_line

_FAILED = (Verdict.REFUTED, Verdict.UNKNOWN, KNOWN)


def to_markdown(data: Mapping[str, Any], source: str = "report") -> bytes:
    """The summary of a report's JSON data, or of a matrix of faults; ``source`` names them in errors.

    Raises
    ------
    BadUse
        The data are neither, or of another version, or damaged.
    """
    if is_matrix(data):
        return document(_faults_parts(matrix(data, source)))
    return document(_parts(page_of(stored(data, source))))


def _parts(page: Page) -> Iterator[str]:
    yield f"## {_signed(page.verdict)}: {code(page.name)}"
    yield _told(page)
    if page.void:
        yield f"**Void**: a control failed, so this run says nothing about {plain(', '.join(page.void))}."
    yield from (_finding(view) for verdict in _FAILED for view in page.checks if view.verdict == verdict)
    yield from _not_tried(page.checks)
    yield _power(page.checks)
    yield folded("All checks", _all(page.checks)) if page.checks else ""
    yield _controls(page)
    yield f"Repeat it:\n\n{block(one_line(page.report.command), 'sh')}" if page.report.command else ""
    facts = table(["", ""], [[plain(name), plain(value)] for name, value in page.facts])
    yield folded("About this run", facts)


def _signed(verdict: str) -> str:
    """A verdict with its sign."""
    sign = {str(word): mark for word, mark in MARKS.items()}.get(verdict, "")
    return f"{sign} {plain(verdict)}".lstrip()


def _told(page: Page) -> str:
    counts = ", ".join(f"{count} {word}" for word, count in page.counts) or "no checks"
    lines = [f"Checks: {plain(counts)}" + (f"; {plain(page.summary)}" if page.summary else "") + "."]
    if page.claim:
        lines.append(f"Strongest claim that still stands: {plain(page.claim)}.")
    return "\n\n".join(lines)


def _finding(view: CheckView) -> str:
    """A check that failed, with its message and the command that runs its counterexample."""
    row = view.row
    about = " · ".join(
        filter(None, [plain(row.contract), plain(row.rule), plain(row.severity), plain(view.tried)])
    )
    parts = [f"### {_signed(view.verdict)}: {code(row.id)}", f"**{plain(row.title)}** {about}"]
    if row.known:
        parts.append(f"Known: {plain(row.known)}")
    if view.message:
        parts.append(block(view.message))
    if view.replay:
        parts.append(f"With the counterexample that the audit saved:\n\n{block(view.replay, 'sh')}")
    return "\n\n".join(parts)


def _not_tried(views: Iterable[CheckView]) -> Iterator[str]:
    """What is no pass though nothing failed: never happened, or not supported."""
    rows = [
        [_signed(view.verdict), code(view.row.id), plain(view.message)]
        for verdict in (Verdict.NOT_EXERCISED, Verdict.NOT_SUPPORTED)
        for view in views
        if view.verdict == verdict
    ]
    if rows:
        yield f"### Not tested\n\n{table(['', 'check', 'why'], rows)}"


def _power(views: Iterable[CheckView]) -> str:
    """What each law that holds would have shown."""
    rows = []
    for view in views:
        statistics = view.row.statistics
        if statistics is None or statistics.power is None or view.verdict != Verdict.HOLDS:
            continue
        power = statistics.power
        seen = [
            deviation_seen(power.tv, statistics.present()),
            f"{power.probability:g}",
            str(power.laws),
        ]
        rows.append([code(view.row.id), plain(view.kind), plain(view.tried), *seen])
    headings = [
        "law that holds",
        "evidence",
        "behind it",
        "what it would have seen",
        "with probability",
        "kinds of rows",
    ]
    return f"### Power\n\n{table(headings, rows)}" if rows else ""


def _all(views: Iterable[CheckView]) -> str:
    rows = (
        [_signed(view.verdict), code(view.row.id), plain(view.row.title), plain(f"{view.kind} {view.tried}")]
        for view in views
    )
    return table(["verdict", "check", "claim", "evidence"], rows)


def _controls(page: Page) -> str:
    rows = [
        [
            plain(one.contract),
            plain(one.what),
            plain(one.verdict),
            "failed" if one.failed else "",
            plain(one.told),
        ]
        for one in page.controls
    ]
    return (
        folded("Controls", table(["contract", "in place of the target", "verdict", "", ""], rows))
        if rows
        else ""
    )


def _faults_parts(found: Matrix) -> Iterator[str]:
    """A matrix of planted faults: what wasn't as it should be, then all of them folded away."""
    page = faults_page(found)
    mark = MARKS[Verdict(page.verdict)]
    told = f"{page.killed} of {len(found.faults)} planted faults killed"
    yield f"## {mark} {told}, silent on {page.silent} of {len(found.innocents)} innocents"
    yield "" if found.complete else "**Not all were audited yet.**"
    rows = [*found.faults, *found.innocents]
    wrong = [row for row in rows if row.wrong]
    yield f"### Missed, or alarmed\n\n{_faults_table(wrong)}" if wrong else ""
    yield folded("All of them", _faults_table(rows)) if rows else ""
    yield f"Repeat it:\n\n{block(found.command, 'sh')}" if found.command else ""


def _faults_table(rows: Iterable[Fate]) -> str:
    headings = ["", "name", "family", "what it does", "refuted by"]
    cells = (
        [
            plain(row.verdict),
            code(row.name),
            plain(row.family),
            plain(row.effect or row.reason or row.unknown),
            plain(", ".join(kill.check for kill in row.refuted)),
        ]
        for row in rows
    )
    return table(headings, cells)
