"""``tokenlaw prove`` as a run: a request to a child process, and the command that repeats it."""

import shlex
from typing import TYPE_CHECKING, Any

from tokenlaw.arguments import number_between, seconds_of, whole_number

if TYPE_CHECKING:
    from tokenlaw.protocol import Limits, ProofRequest

PROGRAM = "program"
"""What stands for the contract of a function without arguments."""

PROFILE = "prove"
"""What reports of proofs have for a profile: nothing is drawn, so nothing else is set."""

MAX_PATHS = 200_000
"""Paths of a law that are run at most, unless asked for more."""

SECONDS = 30.0
"""How long a single path may take."""


def plain_bounds(max_paths: Any, seconds: Any, tolerance: Any) -> tuple[int, float | None, float | None]:
    """Paths, seconds and tolerance of a proof as numbers of Python.

    >>> plain_bounds(0, None, None)
    Traceback (most recent call last):
    tokenlaw.errors.BadUse: max_paths 0: expected 1 or more paths
    """
    return (
        whole_number("max_paths", max_paths, 1, "1 or more paths"),
        None if seconds is None else seconds_of(seconds),
        None
        if tolerance is None
        else number_between("tolerance", tolerance, "0 or a number below 1", zero=True),
    )


def proof_command(target: str, proof: "ProofRequest", limits: "Limits", claims: str | None = None) -> str:
    """The command line that repeats a proof; of a verifier, what it is held to.

    >>> from tokenlaw.protocol import Limits, ProofRequest
    >>> proof_command("a.py::step", ProofRequest("a.py::law", MAX_PATHS, None, None), Limits())
    'tokenlaw prove a.py::step --spec a.py::law'
    """
    words = ["tokenlaw", "prove", target]
    options = {
        "--spec": (proof.spec, None),
        "--claims": (claims, None),
        "--max-paths": (proof.max_paths, MAX_PATHS),
        "--seconds": (proof.seconds, None),
        "--tolerance": (proof.tolerance, None),
        "--timeout": (limits.quiet, SECONDS),
    }
    for option, (value, default) in options.items():
        if value != default:
            words += [option, f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)
