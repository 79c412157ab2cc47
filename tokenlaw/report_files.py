"""The files that a run writes its report to: JSON, JUnit XML, HTML, Markdown."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated

import typer

from tokenlaw.errors import BadUse
from tokenlaw.options import report_file
from tokenlaw.report import Report
from tokenlaw.writing import formatted, write_to

Json = Annotated[Path | None, typer.Option(help="Write the report as JSON to this file, or -.")]
Junit = Annotated[Path | None, typer.Option(help="Write it as JUnit XML to this file, or -.")]
Html = Annotated[Path | None, typer.Option(help="Write it as an HTML page to this file, or -.")]
Markdown = Annotated[
    Path | None, typer.Option(help="Write a summary as Markdown to this file, or -: for step summaries.")
]


def _json(report: Report) -> bytes:
    return formatted(report.to_data())


def _junit(report: Report) -> bytes:
    from tokenlaw.junit import to_xml

    return to_xml(report)


def _html(report: Report) -> bytes:
    from tokenlaw.html_report import to_html

    return to_html(report.to_data())


def _markdown(report: Report) -> bytes:
    from tokenlaw.markdown_report import to_markdown

    return to_markdown(report.to_data())


_FORMS: Mapping[str, Callable[[Report], bytes]] = {
    "--json": _json,
    "--junit": _junit,
    "--html": _html,
    "--markdown": _markdown,
}


def require_different(paths: Mapping[str, Path | None]) -> None:
    """Raise `BadUse` if two options name one file."""
    named = [(option, path) for option, path in paths.items() if path is not None]
    for (one, path), (other, same) in combinations(named, 2):
        if path.resolve() == same.resolve():
            raise BadUse(f"{one} and {other} both name {path}; name two files")


@dataclass(frozen=True)
class ReportFiles:
    """Option to file, for those that were named; all of them can be written, and are different.

    Raises
    ------
    BadUse
        Nothing can be written to one of them, or two options name one file.
    """

    paths: Mapping[str, Path]

    @staticmethod
    def named(
        context: typer.Context,
        *,
        json: Path | None = None,
        junit: Path | None = None,
        html: Path | None = None,
        markdown: Path | None = None,
    ) -> "ReportFiles":
        """The files of a command line."""
        options = {"--json": json, "--junit": junit, "--html": html, "--markdown": markdown}
        tried = {option: report_file(context, path, option) for option, path in options.items()}
        paths = {option: path for option, path in tried.items() if path is not None}
        require_different(paths)
        return ReportFiles(paths)

    def leave_room_for(self, folder: Path, option: str) -> None:
        """Raise `BadUse` if a file stands where this folder, or one above it, has to be made."""
        for name, path in self.paths.items():
            if folder.resolve().is_relative_to(path.resolve()):
                needed = f"a folder of that name is needed for {option}"
                raise BadUse(f"{name} {path}: {needed}; name another file")

    def write(self, report: Report) -> list[str]:
        """Write all files; what couldn't be written, which must not hide the verdict."""
        unwritten = []
        for option, path in self.paths.items():
            try:
                write_to(path, option, _FORMS[option](report))
            except BadUse as error:
                unwritten.append(str(error))
        return unwritten

    def finish(self, report: Report, show: Callable[[], None]) -> int:
        """Write all files, then show the report; its exit status.

        Raises
        ------
        BadUse
            A file couldn't be written; told after the report.
        """
        unwritten = self.write(report)
        show()
        if unwritten:
            raise BadUse("; ".join(unwritten))
        return report.status
