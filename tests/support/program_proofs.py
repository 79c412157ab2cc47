"""A proof of a small program, as tests ask for it."""

from collections.abc import Callable
from typing import Any

from support.sampled_programs import target_law
from tokenlaw.prove_enumeration import Bounds, Named
from tokenlaw.prove_programs import prove_program
from tokenlaw.spec.verdicts import Evidence


def proof(
    program: Callable[[], Any], spec: Callable[..., Any] | None = target_law, **bounds: Any
) -> Evidence:
    """The evidence of a proof; None for ``spec`` compares with nothing."""
    return prove_program(
        Named(program, "program"), None if spec is None else Named(spec, "spec"), Bounds(**bounds)
    )
