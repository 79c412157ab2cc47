"""Runs a proof in a child process: the program may hang, die or print what it likes."""

from collections.abc import Callable
from typing import Any

from tokenlaw.conversation import nothing
from tokenlaw.protocol import Limits, ProofRequest, Request
from tokenlaw.prove_command import MAX_PATHS, PROFILE, PROGRAM, SECONDS, plain_bounds
from tokenlaw.report import Report
from tokenlaw.runner import report_of
from tokenlaw.settings import plain_settings
from tokenlaw.spec.suites import Progress, Settings, ignore
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.enumeration.law import NEGLIGIBLE


def prove_target(
    target: str,
    *,
    spec: str | None = None,
    claims: str | None = None,
    max_paths: int = MAX_PATHS,
    seconds: float | None = None,
    tolerance: float | None = None,
    timeout: float = SECONDS,
    progress: Progress = ignore,
    resolved: Callable[[], Any] = nothing,
) -> Report:
    """Prove a program, or a verifier, by name.

    Parameters
    ----------
    target : ``module:function``, ``file.py::function`` or ``file.ipynb::function`` without arguments; without
        a spec also a verifier: the name of an adapter, or ``module:attribute``.
    spec : a function of the tokens so far, or without arguments, named in the same ways.
    claims : of `tokenlaw.spec.generation_contracts.CLAIMS`: what a verifier is held to, in place of what it
        claims.
    max_paths, seconds, tolerance : see `tokenlaw.prove_enumeration.Bounds`.
    timeout : seconds that a single path may take.
    progress : called as ``progress(what, done, total)``, with the explored probability in millionths.
    resolved : called once everything is loaded.

    Raises
    ------
    BadUse
        Something can't be loaded, or isn't a program, a spec or a verifier.
    ToolFault
        tokenlaw itself failed.
    """
    max_paths, seconds, tolerance = plain_bounds(max_paths, seconds, tolerance)
    settings = plain_settings(Settings(claims=claims, tolerance=tolerance or 0.0))
    request = Request(
        target,
        contract=PROGRAM,
        profile=PROFILE,
        settings=settings,
        proof=ProofRequest(spec, max_paths, seconds, tolerance),
        limits=Limits(quiet=timeout),
    )
    return report_of(request, progress, resolved)


def law_alone(report: Report) -> bool:
    """Whether a whole law was asked for, and found, with nothing to compare it with."""
    rows = report.evidence
    return all(
        row.verdict is Verdict.NOT_EXERCISED and row.check.contract == PROGRAM and _complete(row.statistics)
        for row in rows
    )


def _complete(statistics: Any) -> bool:
    return bool(statistics) and statistics["unexplored"] <= NEGLIGIBLE
