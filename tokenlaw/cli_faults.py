"""``tokenlaw faults``: what the suites themselves are worth."""

import fnmatch
import os
import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tokenlaw import __version__
from tokenlaw.errors import BadUse
from tokenlaw.options import STDOUT, HowMuch, ProfileName, Seed, report_file


class Family(StrEnum):
    """What a fault is planted in."""

    KV = "kv"
    ATTENTION = "attention"
    VERIFIER = "verifier"
    DECODER = "decoder"


def faults(
    context: typer.Context,
    family: Annotated[list[Family] | None, typer.Option(help="Only these; may be repeated.")] = None,
    only: Annotated[str, typer.Option(metavar="GLOB", help="Only faults whose name matches.")] = "*",
    json: Annotated[Path | None, typer.Option(help="Write the matrix as JSON to this file, or -.")] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it as a heat map: a name in .svg or .png.")
    ] = None,
    seed: Seed = 0,
    profile: HowMuch = ProfileName.DEV,
    processes: Annotated[
        int | None, typer.Option(help="Audits at one time; as many as there are cores.", min=1)
    ] = None,
) -> int:
    """Audit every planted fault, which must be refuted, and every innocent, which must not."""
    from tokenlaw import terminal
    from tokenlaw.checks import did_you_mean
    from tokenlaw.faults import Row, audit_all
    from tokenlaw.faults_report import lines, to_data
    from tokenlaw.impl.faults.targets import SUSPECTS
    from tokenlaw.plots import OPTION, require_plottable
    from tokenlaw.report_files import require_different
    from tokenlaw.writing import formatted, write_to

    json = report_file(context, json)
    require_plottable(plot)
    require_different({"--json": json, OPTION: plot})
    of_family = [one for one in SUSPECTS.values() if not family or one.family in family]
    suspects = [one for one in of_family if fnmatch.fnmatchcase(one.name, only)]
    if not suspects:
        known = did_you_mean(only, [one.name for one in of_family])
        raise BadUse(f"--only {only!r} matches no fault; {known}")
    command = _command(family or [], only, seed, profile)
    rows: list[Row] = []

    def data_of(rows: list[Row]) -> dict[str, Any]:
        return to_data(rows, of=len(suspects), profile=profile, seed=seed, command=command)

    def keep(row: Row) -> None:
        rows.append(row)
        if json is not None and (json != STDOUT or len(rows) == len(suspects)):
            order = sorted(rows, key=lambda one: suspects.index(one.suspect))
            write_to(json, "--json", formatted(data_of(order)))

    of_what = "faults and innocents" if len(suspects) > 1 else "fault or innocent"
    print(f"tokenlaw {__version__}: {len(suspects)} {of_what}, profile {profile}, seed {seed}")
    with terminal.progress() as progress:
        found = audit_all(
            suspects,
            profile=profile,
            seed=seed,
            processes=processes or os.cpu_count() or 1,
            progress=progress,
            found=keep,
        )
    print("\n".join([*lines(found), f"repeat: {command}"]))
    if plot is not None:
        from tokenlaw.html_faults import matrix
        from tokenlaw.plot_faults import plot_faults

        plot_faults(matrix(data_of(found), "the matrix"), plot)
    return 0 if all(row.right for row in found) else 1


def _command(family: list[Family], only: str, seed: int, profile: str) -> str:
    words = ["tokenlaw", "faults", "--seed", str(seed), "--profile", str(profile)]
    for name in family:
        words += ["--family", str(name)]
    return shlex.join(words + (["--only", only] if only != "*" else []))
