"""What a person sees: a table and a progress bar on a terminal, plain lines elsewhere."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from tokenlaw.controls import failures
from tokenlaw.counterexamples import Saved, told
from tokenlaw.report import Report
from tokenlaw.spec.shown_numbers import deviation_seen
from tokenlaw.spec.verdicts import UNCLAIMED, Evidence, Verdict
from tokenlaw.text import one_line, printable

_STYLES = {
    Verdict.REFUTED: "bold red",
    Verdict.VOID: "bold magenta",
    Verdict.UNKNOWN: "bold magenta",
    Verdict.NOT_EXERCISED: "yellow",
    Verdict.HOLDS: "green",
    Verdict.NOT_SUPPORTED: "dim",
}
_KNOWN = "known"
_KNOWN_STYLE = "yellow"
_ALMOST_ALL = 0.995
"""A deviation that rounds to one is no promise."""
_HOW = (
    "see `tokenlaw.spec.contracts`, and `generation_contracts` and `decoder_contract` beside it: give the "
    "methods; what has none is declared, with all the others of its contract, by "
    "Implementation(..., capabilities={...})"
)
_LINE_SECONDS = 10.0
_WIDTH = 13  # of the longest verdict
_TABLE_WIDTH = 100  # columns without which a table would cut verdicts and claims

Callback = Callable[[str, int, int], None]


def is_interactive() -> bool:
    """True on a terminal outside CI."""
    # There is no stream where the caller closed it.
    return sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("CI")


@contextmanager
def progress(*, share: bool = False) -> Iterator[Callback]:
    """A progress callback for the block: a bar on a terminal, a line now and then elsewhere.

    With ``share`` how much is done is shown as a percentage, else as a number.
    """
    if not is_interactive():
        yield _lines(share)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn("{task.percentage:.2f} %") if share else MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda what, done, total: bar.update(
            task, description=one_line(what), completed=done, total=total
        )


def _lines(share: bool) -> Callback:
    """Prints where the run stands, at most every ten seconds."""
    last = time.monotonic()

    def tell(what: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _LINE_SECONDS:
            last = time.monotonic()
            much = f"{done / total:.2%}" if share else f"{done} of {total}"
            print(f"... {one_line(what)}: {much}", flush=True)

    return tell


def show(report: Report, saved: Mapping[str, Saved]) -> None:
    """Print the verdict of every check, what laws would have seen, all about what didn't hold, a summary."""
    if is_interactive() and _console().width >= _TABLE_WIDTH:
        _console().print(_table(report))
    else:
        for row in report.evidence:
            _say(_line(row), _style(row))
    laws = [row for row in report.with_verdict(Verdict.HOLDS) if row.statistics and row.message]
    for number, row in enumerate(laws):
        _say(("" if number else "\n") + one_line(f"{row.check.id}: {row.message}"))
    for row in report.evidence:
        if row.verdict not in (Verdict.HOLDS, Verdict.NOT_SUPPORTED):
            _show_failure(row, report, saved)
    for line in _unclaimed(report):
        _say(line)
    _show_controls(report)
    if lacking := report.lacking():
        _say(f"\nnot supported for lack of: {', '.join(lacking)} ({_HOW})")
    for line in _left_out(report, lacking):
        _say(line)
    _say(f"\n{report.summary()}", _STYLES[report.verdict])
    if claim := report.standing():
        _say(claim)
    _say(f"repeat: {report.command}")


def show_table(table: Table, otherwise: Iterable[str]) -> None:
    """Print a table where there is room for one, else lines that say the same."""
    if is_interactive() and _console().width >= _TABLE_WIDTH:
        _console().print(table)
    else:
        for line in otherwise:
            _say(line)


def show_proof(report: Report) -> None:
    """Print what a proof found, and the verdict."""
    for row in report.evidence:
        _say(row.message.rstrip())
    _say(f"\n{one_line(report.target.name)}: {report.verdict}", _STYLES[report.verdict])
    _say(f"repeat: {report.command}")


def _unclaimed(report: Report) -> list[str]:
    """What laws that aren't claimed would have said, and those that weren't watched in one line."""
    rows = [row for row in report.with_verdict(Verdict.NOT_SUPPORTED) if row.message.startswith(UNCLAIMED)]
    watched = [f"{row.check.id}: {row.message}" for row in rows if ";" in row.message]
    others = [row.check.id for row in rows if ";" not in row.message]
    if others:
        watched.append(f"not claimed, not asked: {', '.join(others)}")
    return [("" if number else "\n") + one_line(line) for number, line in enumerate(watched)]


def _left_out(report: Report, lacking: list[str]) -> list[str]:
    """What isn't supported though nothing is lacking and it is claimed: a line for each reason."""
    checks: dict[str, list[str]] = {}
    for row in report.with_verdict(Verdict.NOT_SUPPORTED):
        if row.message and row.check.needs.isdisjoint(lacking) and not row.message.startswith(UNCLAIMED):
            checks.setdefault(row.message, []).append(row.check.id)
    lines = [f"not supported: {', '.join(names)}: {message}" for message, names in checks.items()]
    return [("" if number else "\n") + one_line(line) for number, line in enumerate(lines)]


def _show_controls(report: Report) -> None:
    """A line for each control, and all about one that failed."""
    for number, control in enumerate(report.controls):
        style = _STYLES[Verdict.VOID] if control.failed else ""
        _say(f"{'' if number else chr(10)}control of {control.contract}: {control.in_words()}", style)
    for text in failures(report.controls):
        _say(f"\n{text}")


def _console() -> Console:
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def _say(text: str, style: str = "") -> None:
    """Print a text as it is: no markup, no wrapping, colours only on a terminal."""
    if is_interactive():
        _console().print(Text(printable(text), style=style))
    else:
        print(printable(text), flush=True)


def _table(report: Report) -> Table:
    table = Table(title=Text(one_line(f"{report.target.name} {report.target.version}")), title_justify="left")
    for heading in ("verdict", "check", "rule"):
        table.add_column(heading, no_wrap=True)
    table.add_column("claim")
    table.add_column("tried", justify="right", no_wrap=True)
    for row in report.evidence:
        cells = [row.check.id, row.check.rule, row.check.title, _tried(row)]
        table.add_row(Text(_word(row), style=_style(row)), *(Text(cell) for cell in map(one_line, cells)))
    return table


def _word(row: Evidence) -> str:
    return _KNOWN if row.known else str(row.verdict)


def _style(row: Evidence) -> str:
    return _KNOWN_STYLE if row.known else _STYLES[row.verdict]


def _tried(row: Evidence) -> str:
    """How much is behind a verdict: operations, or the samples of a law and what they would have shown."""
    statistics = row.statistics or {}
    if "paths" in statistics:
        return f"{statistics['paths']:,} paths"
    if "samples" not in statistics:
        return f"{row.operations} operations"
    samples = f"{statistics['samples']:,} samples"
    power = statistics.get("power")
    if not power or row.verdict is not Verdict.HOLDS or power["tv"] >= _ALMOST_ALL:
        return samples
    seen = deviation_seen(power["tv"], statistics)
    return f"{samples}, would have seen {seen}"


def _line(row: Evidence) -> str:
    check = row.check
    claim = one_line(f"{check.id} ({check.rule}) {check.title} [{_tried(row)}]")
    return f"{_word(row):{_WIDTH}}  {claim}"


def _show_failure(row: Evidence, report: Report, saved: Mapping[str, Saved]) -> None:
    _say(f"\n{_word(row)}: {row.check.id}", _style(row))
    _say(row.message.rstrip())
    for line in told(saved.get(row.check.id), report.target.address, report.settings):
        _say(line)
