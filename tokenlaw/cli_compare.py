"""``tokenlaw compare``: what changed between two saved reports."""

from pathlib import Path
from typing import Annotated

import typer

from tokenlaw.options import report_file


def compare(
    context: typer.Context,
    old: Annotated[Path, typer.Argument(metavar="OLD.json", help="What --json wrote.")],
    new: Annotated[Path, typer.Argument(metavar="NEW.json", help="What --json wrote, later.")],
    json: Annotated[Path | None, typer.Option(help="Write it as JSON to this file, or -.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write it as Markdown to this file, or -.")] = None,
) -> int:
    """Tell what changed between two reports of audit, or two matrices of faults; 1 if something is worse.

    Worse is what is newly refuted, void, unknown or not exercised, and what held and is no longer asked.
    """
    from tokenlaw import terminal
    from tokenlaw.comparing_reports import compare_files
    from tokenlaw.comparing_views import end, head, lines_of, styled, to_data, to_markdown
    from tokenlaw.report_files import require_different
    from tokenlaw.writing import formatted, write_to

    found = compare_files(old, new)
    paths = {
        "--json": report_file(context, json, "--json"),
        "--markdown": report_file(context, markdown, "--markdown"),
    }
    require_different(paths)
    print("\n".join(head(found)))
    if changed := found.changed():
        terminal.show_table(styled(changed), lines_of(changed))
    print(end(found))
    contents = {"--json": lambda: formatted(to_data(found)), "--markdown": lambda: to_markdown(found)}
    for option, path in paths.items():
        if path is not None:
            write_to(path, option, contents[option]())
    return found.status
