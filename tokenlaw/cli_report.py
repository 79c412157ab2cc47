"""``tokenlaw report``: another view of a report that was saved as JSON."""

# ruff: noqa: PLC0415 - the command line starts quickly

from pathlib import Path
from typing import Annotated

import typer

from tokenlaw.options import STDOUT, report_file


def report(
    context: typer.Context,
    saved: Annotated[Path, typer.Argument(metavar="REPORT.json", help="What --json wrote.")],
    html: Annotated[Path, typer.Option(help="Write it as an HTML page to this file, or -.")],
) -> int:
    """Show a saved report, or a matrix of faults, as an HTML page; nothing is run again."""
    from tokenlaw.html_data import read
    from tokenlaw.html_report import to_html
    from tokenlaw.writing import write_to

    content = to_html(read(saved), str(saved))
    page = report_file(context, html, "--html")
    assert page is not None
    write_to(page, "--html", content)
    if page != STDOUT:
        print(f"{page}: open it in a browser")
    return 0
