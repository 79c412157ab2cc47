"""``tokenlaw audit --vary-seed``: the same audit with many seeds."""

from pathlib import Path
from typing import TYPE_CHECKING

from tokenlaw import __version__
from tokenlaw.errors import BadUse
from tokenlaw.text import one_line

if TYPE_CHECKING:
    from tokenlaw.protocol import Request


def refuse_others(given: dict[str, object]) -> None:
    """Raise `BadUse` for options of one audit that say nothing about many."""
    named = [option for option, value in given.items() if value is not None]
    if named:
        raise BadUse(f"--vary-seed doesn't go with {', '.join(named)}: leave it out")


def vary(request: "Request", seeds: int, json: Path | None) -> int:
    """Audit with so many seeds and say how often each check refuted; what was found is told on Ctrl-C too.

    The exit status is that of all audits together: 0 if each holds, 1 if one is refuted, else 2.
    """
    from tokenlaw import terminal
    from tokenlaw.report import audit_command
    from tokenlaw.seeds import SeedRun, vary_seed
    from tokenlaw.seeds_report import lines, to_data
    from tokenlaw.settings import used_by
    from tokenlaw.writing import formatted, write_to

    heading = f"tokenlaw {__version__}: auditing {one_line(request.target)}, profile {request.profile}"

    def resolved() -> None:
        print(f"{heading}, {seeds} seeds from {request.seed} on", flush=True)

    run = SeedRun(request.target)
    try:
        with terminal.progress() as progress:
            vary_seed(request, seeds, progress=progress, resolved=resolved, run=run)
    finally:
        if run.verdicts:
            contracts = {contract for contract, _ in run.tallies}
            command = audit_command(
                request.target,
                request.profile,
                request.seed,
                request.only,
                request.contracts or (),
                used_by(contracts, request.settings),
                deviations=request.deviations.source if request.deviations else "",
                given=request.given,
            )
            command += f" --vary-seed {seeds}"
            print("\n".join(lines(run, command, asked=seeds)), flush=True)
            if json is not None:
                data = to_data(run, command, profile=request.profile, asked=seeds)
                write_to(json, "--json", formatted(data))
    return run.status
