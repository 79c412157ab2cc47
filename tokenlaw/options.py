"""Options that several commands, or tests, know."""

import sys
from contextlib import redirect_stdout
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tokenlaw.settings import OPTIONS
from tokenlaw.writing import require_writable

STDOUT = Path("/dev/stdout")


def report_file(context: typer.Context, path: Path | None, option: str = "--json") -> Path | None:
    """Where a report goes, tried; ``-`` is standard output, which a report that goes there has to itself.

    Raises
    ------
    BadUse
        Nothing can be written there; the message names the option.
    """
    if path in (Path("-"), STDOUT):
        context.with_resource(redirect_stdout(sys.stderr))
        path = STDOUT
    if path is not None:
        require_writable(path, option)
    return path


def chosen(context: typer.Context) -> tuple[str, ...]:
    """Names of the settings (`tokenlaw.spec.suites.Settings`) that stand on the command line itself."""
    sources = {name: context.get_parameter_source(name) for name in OPTIONS}
    return tuple(name for name, source in sources.items() if source and source.name == "COMMANDLINE")


class ProfileName(StrEnum):
    """How much is tried: for development (seconds), for CI (minutes), in depth (an hour)."""

    DEV = "dev"
    CI = "ci"
    DEEP = "deep"


class ClaimName(StrEnum):
    """What a verifier is held to, the strongest first."""

    TEXTBOOK = "textbook"
    BLOCK = "block"
    EXACT = "exact"
    APPROXIMATE = "approximate"


Device = Annotated[str, typer.Option(help="torch device on which tensors are made.")]
Target = Annotated[str, typer.Argument(help="An installed adapter (tokenlaw list), or module:attribute.")]
Seed = Annotated[int, typer.Option(help="The same seed repeats the run.", min=0)]
HowMuch = Annotated[ProfileName, typer.Option(help="How much is tried.")]
