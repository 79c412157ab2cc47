"""``tokenlaw report``: another view of a report that was saved as JSON."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tokenlaw.errors import BadUse
from tokenlaw.options import STDOUT, report_file
from tokenlaw.report_files import Html, Markdown, require_different


def report(
    context: typer.Context,
    saved: Annotated[Path, typer.Argument(metavar="REPORT.json", help="What --json wrote.")],
    html: Html = None,
    markdown: Markdown = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw accepted drafts, or the matrix: a name in .svg or .png."),
    ] = None,
) -> int:
    """Show a saved report, or a matrix of faults, as a page, Markdown or plot; nothing is run again."""
    from tokenlaw.html_data import read
    from tokenlaw.plots import OPTION, require_plottable
    from tokenlaw.writing import write_to

    if html is None and markdown is None and plot is None:
        raise BadUse("say what to write: --html PAGE.html, --markdown SUMMARY.md, --plot PICTURE.svg")
    require_plottable(plot)
    paths = {
        "--html": report_file(context, html, "--html"),
        "--markdown": report_file(context, markdown, "--markdown"),
    }
    require_different({**paths, OPTION: plot})
    data = read(saved)
    contents: dict[str, bytes] = {}
    if html is not None:
        from tokenlaw.html_report import to_html

        contents["--html"] = to_html(data, str(saved))
    if markdown is not None:
        from tokenlaw.markdown_report import to_markdown

        contents["--markdown"] = to_markdown(data, str(saved))
    if plot is not None:
        _plot(data, str(saved), plot)
    for option, path in paths.items():
        if path is not None:
            write_to(path, option, contents[option])
    page = paths["--html"]
    if page not in (None, STDOUT):
        print(f"{page}: open it in a browser")
    return 0


def _plot(data: dict[str, Any], source: str, path: Path) -> None:
    """A heat map of a matrix of faults; accepted drafts against theory of anything else."""
    from tokenlaw.html_data import stored
    from tokenlaw.html_faults import is_matrix, matrix

    if is_matrix(data):
        from tokenlaw.plot_faults import plot_faults

        plot_faults(matrix(data, source), path)
    else:
        from tokenlaw.plot_lengths import laws_of, plot_lengths

        plot_lengths(laws_of(stored(data, source), source), path)
