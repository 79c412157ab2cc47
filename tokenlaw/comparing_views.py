"""A comparison of two reports as lines, as a table, as Markdown and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from tokenlaw.comparing import Change, Comparison, Row
from tokenlaw.markdown_text import code, document, plain, table
from tokenlaw.text import one_line

SCHEMA = "tokenlaw.comparison/1"

_STYLES = {
    Change.WORSE: "bold red",
    Change.WEAKER: "yellow",
    Change.CHANGED: "cyan",
    Change.GONE: "cyan",
    Change.NEW: "cyan",
    Change.BETTER: "green",
    Change.STRONGER: "green",
}
_MARKS = {
    Change.WORSE: "\u2717",
    Change.WEAKER: "\u25bd",
    Change.CHANGED: "\u25cb",
    Change.GONE: "\u2013",
    Change.NEW: "+",
    Change.BETTER: "\u2713",
    Change.STRONGER: "\u25b3",
}
_HEADINGS = ("change", "check", "of", "verdict", "what else")
_DIFFERENCES = "the runs differ, so not every change need be the target's:"


def head(found: Comparison) -> list[str]:
    """Lines that say what is compared, and in what the two runs differ."""
    sides = (("old", found.old), ("new", found.new))
    lines = [f"{name}: {side.title} ({one_line(side.source)})" for name, side in sides]
    if found.differences:
        lines += ["", _DIFFERENCES]
        width = max(len(one_line(one.what)) for one in found.differences)
        lines += [
            f"  {one_line(one.what):{width}}  {_told(one.old)} -> {_told(one.new)}"
            for one in found.differences
        ]
    return [*lines, ""]


def lines_of(rows: Sequence[Row]) -> list[str]:
    """A line for each check that changed."""
    width = max((len(cells[1]) for cells in _cells(rows)), default=0)
    return [
        f"{cells[0]:8}  {cells[1]:{width}}  {': '.join(filter(None, cells[3:]))}" for cells in _cells(rows)
    ]


def styled(rows: Sequence[Row]) -> Table:
    """A table of the checks that changed, for a terminal."""
    shown = Table()
    for heading in _HEADINGS:
        shown.add_column(heading, no_wrap=heading != _HEADINGS[-1])
    for row, cells in zip(rows, _cells(rows), strict=True):
        shown.add_row(Text(cells[0], style=_STYLES[row.change]), *map(Text, cells[1:]))
    return shown


def end(found: Comparison) -> str:
    """The last line: whether something is worse, and how many checks changed in which way."""
    return f"{'worse' if found.status else 'nothing is worse'} ({found.summary()})"


def to_markdown(found: Comparison) -> bytes:
    """The comparison for a step summary, what is worse first."""
    mark = _MARKS[Change.WORSE if found.status else Change.BETTER]
    sides = table(
        ["", "report", "file"],
        [
            [name, plain(side.title), code(side.source)]
            for name, side in (("old", found.old), ("new", found.new))
        ],
    )
    rows = found.changed()
    changes = [
        [f"{_MARKS[row.change]} {row.change}", code(check), code(group), plain(verdicts), plain(notes)]
        for row, (_, check, group, verdicts, notes) in zip(rows, _cells(rows), strict=True)
    ]
    differences = [
        [plain(one.what), plain(_told(one.old)), plain(_told(one.new))] for one in found.differences
    ]
    return document(
        [
            f"## {mark} {plain(end(found))}",
            sides,
            table(_HEADINGS, changes) if changes else "",
            f"{_DIFFERENCES.capitalize()}\n\n{table(['', 'old', 'new'], differences)}" if differences else "",
        ]
    )


def to_data(found: Comparison) -> dict[str, Any]:
    """The JSON envelope as plain data; checks that are the same are counted only."""
    return {
        "schema": SCHEMA,
        "worse": bool(found.status),
        "summary": found.summary(),
        "old": {"source": found.old.source, "title": found.old.title},
        "new": {"source": found.new.source, "title": found.new.title},
        "differences": [asdict(one) for one in found.differences],
        "checks": [_row(row) for row in found.changed()],
        "same": sum(row.change is Change.SAME for row in found.rows),
    }


def _row(row: Row) -> dict[str, Any]:
    states = {"old": row.old, "new": row.new}
    left_out = ("told", "needed")
    described = {
        name: None
        if state is None
        else {key: value for key, value in asdict(state).items() if key not in left_out}
        for name, state in states.items()
    }
    return {
        "change": str(row.change),
        "check": row.check,
        "group": row.group,
        **described,
        "notes": list(row.notes),
    }


def _cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    return [
        (
            str(row.change),
            one_line(row.check),
            one_line(row.group),
            one_line(row.verdicts),
            one_line("; ".join(row.notes)),
        )
        for row in rows
    ]


def _told(value: str) -> str:
    return one_line(value) or "none"
