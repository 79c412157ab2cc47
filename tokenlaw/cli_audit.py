"""``tokenlaw audit``: every check of every contract that a target fulfils."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tokenlaw import __version__
from tokenlaw.cli_seeds import refuse_others, vary
from tokenlaw.counterexamples import FOLDER
from tokenlaw.options import ClaimName, Device, HowMuch, ProfileName, Seed, Target, chosen
from tokenlaw.report import Report
from tokenlaw.report_files import Html, Json, Junit, Markdown, ReportFiles
from tokenlaw.text import one_line

_Only = Annotated[str, typer.Option(metavar="GLOB", help="Only checks whose id matches.")]
_Contracts = Annotated[list[str] | None, typer.Option(help="Only this contract; may be repeated.")]
_Counterexamples = Annotated[Path, typer.Option(help="Folder for counterexamples.")]
_Claims = Annotated[ClaimName | None, typer.Option(help="Hold a verifier to this claim.")]
_Alpha = Annotated[float, typer.Option(help="Chance that laws refute an exact verifier.")]
_Budget = Annotated[int | None, typer.Option(help="Requests given to a verifier.", min=1)]
_Tolerance = Annotated[float, typer.Option(metavar="EPS", help="Accept laws within this TV.")]
_Continued = Annotated[
    Path | None,
    typer.Option("--continue", metavar="REPORT.json", help="Go on from the laws of this report."),
]
_Deviations = Annotated[
    Path | None, typer.Option(metavar="FILE.toml", help="Known deviations, which don't count.")
]
_Controls = Annotated[
    bool, typer.Option(help="Ask the reference, and the target in a broken wrapper, as well.")
]
_VarySeed = Annotated[
    int | None,
    typer.Option(metavar="N", help="Use N seeds, and say how often each check refutes.", min=1),
]


def audit(
    context: typer.Context,
    target: Target,
    json: Json = None,
    junit: Junit = None,
    html: Html = None,
    markdown: Markdown = None,
    seed: Seed = 0,
    profile: HowMuch = ProfileName.DEV,
    only: _Only = "*",
    contract: _Contracts = None,
    counterexamples: _Counterexamples = FOLDER,
    device: Device = "cpu",
    claims: _Claims = None,
    alpha: _Alpha = 1e-9,
    budget: _Budget = None,
    tolerance: _Tolerance = 0.0,
    continued: _Continued = None,
    deviations: _Deviations = None,
    controls: _Controls = True,
    vary_seed: _VarySeed = None,
) -> int:
    """Audit TARGET: every check of every contract that it fulfils.

    [tool.tokenlaw] of the nearest pyproject.toml may give target, profile, alpha, budget and deviations.
    """
    from tokenlaw import counterexamples as saving
    from tokenlaw import terminal
    from tokenlaw.deviation_files import read_deviations
    from tokenlaw.protocol import Request
    from tokenlaw.spec.suites import Settings

    if vary_seed is not None:
        refuse_others({"--junit": junit, "--html": html, "--markdown": markdown, "--continue": continued})
    files = ReportFiles.named(context, json=json, junit=junit, html=html, markdown=markdown)
    files.leave_room_for(counterexamples, "--counterexamples")
    saving.require_folder(counterexamples)
    settings = Settings(device, claims and str(claims), alpha, budget, tolerance)
    asked: dict[str, Any] = {
        "profile": str(profile),
        "seed": seed,
        "only": only,
        "contracts": tuple(contract) if contract else None,
        "settings": settings,
        "given": chosen(context),
        "deviations": None if deviations is None else read_deviations(deviations),
    }
    if vary_seed is not None:
        return vary(Request(target, **asked), vary_seed, files.paths.get("--json"))
    report = _audited(target, asked, continued, controls=controls)
    saved = saving.save(report, counterexamples)
    return files.finish(report, lambda: terminal.show(report, saved))


def _audited(target: str, asked: dict[str, Any], continued: Path | None, *, controls: bool) -> Report:
    """Run one audit, with a heading and its progress."""
    from tokenlaw import terminal
    from tokenlaw.earlier import read_earlier
    from tokenlaw.runner import audit as run_audit

    earlier = None if continued is None else read_earlier(continued)
    heading = (
        f"tokenlaw {__version__}: auditing {one_line(target)}, profile {asked['profile']}, "
        f"seed {asked['seed']}"
    )
    with terminal.progress() as progress:
        return run_audit(
            target,
            **asked,
            earlier=earlier,
            controls=controls,
            progress=progress,
            resolved=lambda: print(heading, flush=True),
        )
