"""A proof in this process, for somebody's own test."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tokenlaw.arguments import require_bool
from tokenlaw.in_process import IN_THIS_PROCESS, raise_unless_holds
from tokenlaw.prove_command import MAX_PATHS, PROFILE, PROGRAM, plain_bounds
from tokenlaw.prove_enumeration import Bounds, Named
from tokenlaw.prove_programs import prove_program
from tokenlaw.report import Report, Target
from tokenlaw.runner import versions

_LONGEST_NAME = 60
"""Characters; an object that needs more to be written is called by its class."""


def prove(
    program: Callable[[], Any],
    *,
    spec: Callable[..., Any],
    max_paths: int = MAX_PATHS,
    seconds: float | None = None,
    tolerance: float | None = None,
    raises: bool = True,
) -> Report:
    """Prove in this process that a program has the law of its spec: every path of its random numbers is run.

    Parameters
    ----------
    program : called once for each path, without arguments. It draws from ``random``, ``numpy.random`` or
        torch, and keeps nothing between calls. It is also run as it is, about as long as the proof has taken;
        random generators are afterwards where they were before.
    spec : a function of the tuple of tokens so far that returns the law of the next token (a list, an array,
        a tensor, a dictionary; None where the text has ended): what the program emits, completed by
        target-only decoding, must have the target-only law. Or another program: both laws must be equal.
    max_paths, seconds : a law is left unfinished there, and only what is certain by then is said.
    tolerance : total variation up to which laws count as equal; without it 0 if all probabilities are
        fractions, else 1e-6.
    raises : if false, the report is returned whatever it says.

    Raises
    ------
    Refuted
        The law is another one.
    Inconclusive
        The law isn't known well enough, can't be enumerated, or plain runs of the program have another one.
    BadUse
        Program or spec need other arguments, or the spec returns no law.

    Examples
    --------
    >>> import random
    >>> from fractions import Fraction
    >>> import tokenlaw
    >>> def toss():
    ...     return [int(random.random() < Fraction(1, 3))]
    >>> tokenlaw.prove(toss, spec=lambda tokens: [Fraction(2, 3), Fraction(1, 3)]).verdict
    <Verdict.HOLDS: 'holds'>
    """
    __tracebackhide__ = True
    require_bool("raises", raises)
    bounds = Bounds(*plain_bounds(max_paths, seconds, tolerance))
    name, against = name_of(program), name_of(spec)
    evidence = prove_program(Named(program, name), Named(spec, against), bounds)
    report = Report(
        Target(name, IN_THIS_PROCESS, (PROGRAM,)),
        (evidence,),
        PROFILE,
        0,
        versions(),
        f"tokenlaw.prove({name}, spec={against}{_options(bounds)})",
        evidence.seconds,
    )
    if raises:
        raise_unless_holds(report)
    return report


def _options(bounds: Bounds) -> str:
    """The bounds that aren't the defaults, as arguments of a call."""
    changed = {option: value for option, value in vars(bounds).items() if value != getattr(Bounds(), option)}
    return "".join(f", {option}={value!r}" for option, value in changed.items())


def name_of(function: Any) -> str:
    """What a report calls a function, or an object that can be called.

    >>> import functools
    >>> from fractions import Fraction
    >>> name_of(name_of), name_of(functools.partial(name_of, 1)), name_of(Fraction(1, 2)), name_of(object())
    ('name_of', 'partial(name_of, ...)', 'Fraction(1, 2)', 'object(...)')
    """
    if isinstance(function, partial):
        return f"partial({name_of(function.func)}, ...)"
    if name := getattr(function, "__qualname__", ""):
        return str(name)
    told = repr(function)
    says_more = told != object.__repr__(function) and len(told) <= _LONGEST_NAME
    return told if says_more else f"{type(function).__qualname__}(...)"
