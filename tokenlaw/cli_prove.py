"""``tokenlaw prove``: the law of a program, or of a verifier, without sampling."""

from typing import Annotated

import typer

from tokenlaw import __version__
from tokenlaw.options import ClaimName
from tokenlaw.prove_command import MAX_PATHS, SECONDS
from tokenlaw.report_files import Html, Json, ReportFiles
from tokenlaw.text import one_line

_TARGET = (
    "module:function, script.py::function or notebook.ipynb::function without arguments; or a verifier by "
    "its name (tokenlaw list) or module:attribute."
)
_SPEC = (
    "What TARGET must equal: a function of the tuple of tokens so far that returns the law of the next "
    "token, or a function without arguments. Without it the law is printed."
)


def prove(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help=_TARGET)],
    spec: Annotated[str | None, typer.Option(metavar="FUNCTION", help=_SPEC)] = None,
    claims: Annotated[
        ClaimName | None, typer.Option(help="Hold a verifier to this claim, whatever it claims itself.")
    ] = None,
    max_paths: Annotated[int, typer.Option(help="Paths that are run at most.", min=1)] = MAX_PATHS,
    seconds: Annotated[float | None, typer.Option(help="Stop after so long, with bounds.", min=0)] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(metavar="EPS", help="Accept this TV; else 0 for fractions, 1e-6 for floats.", min=0),
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds that one path may take.", min=0.1, max=86_400)
    ] = SECONDS,
    json: Json = None,
    html: Html = None,
) -> int:
    """Prove, by running every path of its random numbers, that TARGET has the law of a spec.

    Ctrl-C ends a program's proof with the bounds that are known by then; once more, without.
    """
    from tokenlaw import terminal
    from tokenlaw.prove_runner import law_alone, prove_target

    files = ReportFiles.named(context, json=json, html=html)
    against = "" if spec is None else f" against {one_line(spec)}"
    heading = f"tokenlaw {__version__}: proving {one_line(target)}{against}"
    with terminal.progress(share=True) as progress:
        report = prove_target(
            target,
            spec=spec,
            claims=None if claims is None else str(claims),
            max_paths=max_paths,
            seconds=seconds,
            tolerance=tolerance,
            timeout=timeout,
            progress=progress,
            resolved=lambda: print(heading, flush=True),
        )
    status = files.finish(report, lambda: terminal.show_proof(report))
    return 0 if law_alone(report) else status
