"""Options that several commands, or tests, know."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

STDOUT = Path("/dev/stdout")


def as_stream(path: Path | None) -> Path | None:
    """Standard output for ``-``; reports that go there have it to themselves."""
    return STDOUT if path == Path("-") else path


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
