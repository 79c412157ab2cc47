"""A proof in this process, for somebody's own test."""

from collections.abc import Callable
from typing import Any

from tokenlaw.in_process import IN_THIS_PROCESS, raise_unless_holds
from tokenlaw.prove_command import PROFILE, PROGRAM
from tokenlaw.prove_programs import Bounds, Named, prove_program
from tokenlaw.report import Report, Target
from tokenlaw.runner import versions
from tokenlaw.settings import require_in_range
from tokenlaw.spec.suites import Settings


def prove_here(
    program: Callable[[], Any], spec: Callable[..., Any], bounds: Bounds, *, raises: bool
) -> Report:
    """Prove a program of this process; see `tokenlaw.prove`."""
    __tracebackhide__ = True
    require_in_range(Settings(tolerance=bounds.tolerance or 0.0))
    name, against = _name(program), _name(spec)
    evidence = prove_program(Named(program, name), Named(spec, against), bounds)
    changed = {option: value for option, value in vars(bounds).items() if value != getattr(Bounds(), option)}
    options = "".join(f", {option}={value!r}" for option, value in changed.items())
    report = Report(
        Target(name, IN_THIS_PROCESS, (PROGRAM,)),
        (evidence,),
        PROFILE,
        0,
        versions(),
        f"tokenlaw.prove({name}, spec={against}{options})",
        evidence.seconds,
    )
    if raises:
        raise_unless_holds(report)
    return report


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))
