"""The command ``tokenlaw plan``."""

from pathlib import Path
from typing import Annotated

import typer

from tokenlaw.options import report_file


def plan(
    context: typer.Context,
    tv: Annotated[float, typer.Option(help="Total variation that is to be seen.")],
    vocab: Annotated[int, typer.Option(help="Tokens of the vocabulary.", min=2)],
    tokens: Annotated[int, typer.Option(help="Tokens in a row that the law is about.", min=1)] = 1,
    alpha: Annotated[float, typer.Option(help="Probability of a false alarm.")] = 1e-9,
    beta: Annotated[float, typer.Option(help="Probability of a miss.")] = 1e-3,
    json: Annotated[Path | None, typer.Option(help="Write the plan as JSON to this file, or -.")] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw samples against TV: a name in .svg or .png.")
    ] = None,
) -> int:
    """Say how many samples of a law see a deviation, and how long they take here."""
    from tokenlaw.plots import OPTION, require_plottable
    from tokenlaw.report_files import require_different
    from tokenlaw.writing import formatted, write_to

    json = report_file(context, json)
    require_plottable(plot)
    require_different({"--json": json, OPTION: plot})
    from tokenlaw.planning import in_lines, planned

    data = planned(tv, vocab, tokens, alpha=alpha, beta=beta)
    if json is not None:
        write_to(json, "--json", formatted(data))
    if plot is not None:
        from tokenlaw.plot_plan import plot_plan

        plot_plan(data, plot)
    print("\n".join(in_lines(data)))
    return 0
