"""What is proved, inside the process that runs it: a program and its spec, or a verifier."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec

from tokenlaw.errors import BadUse
from tokenlaw.protocol import ProofRequest, Request
from tokenlaw.prove_command import PROGRAM
from tokenlaw.prove_enumeration import Bounds, Named, never
from tokenlaw.prove_loading import SEPARATOR, Loader
from tokenlaw.prove_programs import LAW, prove_program
from tokenlaw.prove_signatures import is_next_token_law, require_program
from tokenlaw.session import Session, readable
from tokenlaw.spec.announcing import Keeper, Listener
from tokenlaw.spec.contracts import VERIFIER, Implementation
from tokenlaw.spec.suites import PROFILES, Progress
from tokenlaw.spec.verdicts import Check, Evidence
from tokenlaw.spec.verifiers import verifier_factory
from tokenlaw.stats.enumeration.sources import default_sources
from tokenlaw.stats.enumeration.tape import Tape
from tokenlaw.stats.proving_check import MOST_PATHS, ROWS_A_PATH, SECONDS_A_PATH
from tokenlaw.stats.verifier_checks import PROVED
from tokenlaw.targets import adapters
from tokenlaw.text import one_line

_LONGEST_RUN = 30 * 24 * 3600.0
"""Seconds of a proof that has no limit of its own; a single path has one."""


def opened(
    request: Request, proof: ProofRequest, stopped: Callable[[], bool] = never
) -> "tuple[Request, Session | ProofSession]":
    """The session of a proof, and the request as it turned out: a verifier is proved by its own suite.

    Parameters
    ----------
    request, proof : what is asked.
    stopped : see `tokenlaw.prove_enumeration.Bounds`.

    Raises
    ------
    BadUse
        The request can't be fulfilled; the message says why.
    """
    _warm_up()
    if request.target in adapters():
        return _verifier(request, proof)
    loader = Loader()
    program = loader.load(request.target)
    if isinstance(program, Implementation) or verifier_factory(program) is not None:
        return _verifier(request, proof)
    if request.settings.claims is not None:
        raise BadUse(f"{request.target} is a program; --claims is what a verifier is held to, give --spec")
    return request, ProofSession(request, proof, loader, program, stopped)


def _warm_up() -> None:
    """Import what sources need, which takes seconds, before paths are timed."""
    for source in default_sources(Tape()):
        with source:
            pass


def _verifier(request: Request, proof: ProofRequest) -> tuple[Request, Session]:
    if proof.spec is not None:
        raise BadUse(f"{request.target} is a verifier, which knows what it must equal; leave --spec out")
    if proof.seconds is not None:
        raise BadUse(f"{request.target} is a verifier; bound its proof by --max-paths instead of --seconds")
    if SEPARATOR in request.target:
        raise BadUse(f"{request.target} is a verifier; write module:attribute")
    paths = min(proof.max_paths, MOST_PATHS)
    budget = paths * ROWS_A_PATH
    # A sign of life comes with every situation, and one of them may take all the time.
    limits = msgspec.structs.replace(request.limits, quiet=request.limits.quiet + paths * SECONDS_A_PATH)
    audit = msgspec.structs.replace(
        request,
        proof=None,
        contract=None,
        contracts=(VERIFIER,),
        only=PROVED,
        profile=next(iter(PROFILES)),
        settings=replace(request.settings, budget=budget),
        limits=limits,
    )
    return audit, Session(audit)


class ProofSession:
    """What a request for a proof asks for, with program and spec loaded; as `tokenlaw.session.Session`.

    Parameters
    ----------
    request, proof : what is asked.
    loader : has loaded the program.
    program : called without arguments.
    stopped : see `tokenlaw.prove_enumeration.Bounds`.

    Raises
    ------
    BadUse
        They can't be loaded, or need other arguments.
    """

    contracts = to_run = (PROGRAM,)
    contract = PROGRAM
    capabilities: tuple[str, ...] = ()
    checks: tuple[Check, ...] = (LAW,)

    def __init__(
        self,
        request: Request,
        proof: ProofRequest,
        loader: Loader,
        program: Any,
        stopped: Callable[[], bool] = never,
    ) -> None:
        self.name, self.version = request.target, ""
        self.seconds = _LONGEST_RUN
        self._bounds = Bounds(proof.max_paths, proof.seconds, proof.tolerance, stopped)
        self._loader = loader
        require_program(program, request.target)
        self._program = Named(program, _function(request.target))
        self._spec = None
        if proof.spec is not None:
            spec = loader.load(proof.spec)
            is_next_token_law(spec, proof.spec)
            self._spec = Named(spec, _function(proof.spec))

    def run(
        self, progress: Progress, before_run: Listener, keep: Keeper = lambda _: None
    ) -> Iterator[Evidence]:
        """The evidence; progress is told now and then, the others never."""
        found = prove_program(self._program, self._spec, self._bounds, progress)
        notes = [one_line(note) for note in self._loader.notes]
        yield readable(replace(found, message="\n".join([found.message, *notes])))


def _function(address: str) -> str:
    """The last part of an address, which its sentences are easier to read with."""
    return address.rpartition(":")[2]
