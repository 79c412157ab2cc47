"""``tokenlaw diagram``: a trace as a picture of blocks, tables and copies."""

from pathlib import Path
from typing import Annotated

import typer

from tokenlaw.errors import BadUse
from tokenlaw.options import Device

_TRACE = "A trace of a block manager, or of a KV store."
_OUTPUT = "Where the picture goes: a name that ends in .svg, .png or .txt. Without it, to the terminal."


def diagram(
    trace: Annotated[Path, typer.Argument(metavar="TRACE.json", help=_TRACE)],
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help=_OUTPUT)] = None,
    step: Annotated[int | None, typer.Option(help="Only the state after this operation.", min=1)] = None,
    target: Annotated[str, typer.Option(help="What runs the trace.")] = "reference",
    device: Device = "cpu",
) -> int:
    """Draw what a trace does: it is run, and after each operation the target is asked what it did."""
    from tokenlaw.diagram import FORMS, rendered, show_on_terminal, taken
    from tokenlaw.spec.suites import Settings
    from tokenlaw.writing import require_writable, write_to

    if output is not None:
        if output.suffix.lower() not in FORMS:
            raise BadUse(f"--output {output}: name a file that ends in {', '.join(FORMS)}")
        require_writable(output, "--output")
    picture = taken(trace, target, step, Settings(device=device))
    if output is None:
        show_on_terminal(picture)
    else:
        write_to(output, "--output", rendered(picture, output.suffix.lower()))
    return 0
