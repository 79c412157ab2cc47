"""What a person sees: a table and a progress bar on a terminal, plain lines elsewhere."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tokenlaw.counterexamples import Saved, told
from tokenlaw.report import Report
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.text import one_line, printable

_STYLES = {
    Verdict.REFUTED: "bold red",
    Verdict.UNKNOWN: "bold magenta",
    Verdict.NOT_EXERCISED: "yellow",
    Verdict.HOLDS: "green",
    Verdict.NOT_SUPPORTED: "dim",
}
_HOW = (
    "see `tokenlaw.spec.contracts`: give the methods; what has none is declared, with all the others of its "
    "contract, by Implementation(..., capabilities={...})"
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
def progress() -> Iterator[Callback]:
    """A progress callback for the block: a bar on a terminal, a line now and then elsewhere."""
    if not is_interactive():
        yield _lines()
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda what, done, total: bar.update(
            task, description=one_line(what), completed=done, total=total
        )


def _lines() -> Callback:
    """Prints where the run stands, at most every ten seconds."""
    last = time.monotonic()

    def tell(what: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _LINE_SECONDS:
            last = time.monotonic()
            print(f"... {one_line(what)}: {done} of {total}", flush=True)

    return tell


def show(report: Report, saved: Mapping[str, Saved]) -> None:
    """Print the verdict of every check, then everything about those that didn't hold, then the summary."""
    if is_interactive() and _console().width >= _TABLE_WIDTH:
        _console().print(_table(report))
    else:
        for row in report.evidence:
            _say(_line(row), _STYLES[row.verdict])
    for row in report.evidence:
        if row.verdict not in (Verdict.HOLDS, Verdict.NOT_SUPPORTED):
            _show_failure(row, report.target.address, saved)
    if lacking := report.lacking():
        _say(f"\nnot supported for lack of: {', '.join(lacking)} ({_HOW})")
    _say(f"\n{report.summary()}", _STYLES[report.verdict])
    _say(f"repeat: {report.command}")


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
    table.add_column("operations", justify="right", no_wrap=True)
    for row in report.evidence:
        cells = [row.check.id, row.check.rule, row.check.title, f"{row.operations:,}"]
        verdict = Text(str(row.verdict), style=_STYLES[row.verdict])
        table.add_row(verdict, *(Text(one_line(cell)) for cell in cells))
    return table


def _line(row: Evidence) -> str:
    check = row.check
    claim = one_line(f"{check.id} ({check.rule}) {check.title} [{row.operations} operations]")
    return f"{row.verdict:{_WIDTH}}  {claim}"


def _show_failure(row: Evidence, target: str, saved: Mapping[str, Saved]) -> None:
    _say(f"\n{row.verdict}: {row.check.id}", _STYLES[row.verdict])
    _say(row.message.rstrip())
    for line in told(saved.get(row.check.id), target):
        _say(line)
