"""Verdicts, severities and the evidence that carries them.

The lattice is that of Jepsen's checkers: one refutation outweighs everything, one unknown outweighs
every pass, and what was not tested is never a pass.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What a check says about a claim. ``str(verdict)`` is the word that reports print.

    Only a whole audit is ``void``: its controls show that it couldn't fail, or that it blames what is exact.
    """

    REFUTED = "refuted"
    VOID = "void"
    UNKNOWN = "unknown"
    NOT_EXERCISED = "not exercised"
    HOLDS = "holds"
    NOT_SUPPORTED = "not supported"


class Severity(StrEnum):
    """How bad a violation is, worst first (``catalogue/kv.md`` section 9)."""

    CROSS_SEQUENCE = "another sequence's content"
    WRONG_CONTENT = "wrong content"
    WRONG_LAW = "wrong law"
    CRASH = "crash"
    LEAK = "leak"
    EFFICIENCY = "lost efficiency"


_ORDER = (
    Verdict.REFUTED,
    Verdict.VOID,
    Verdict.UNKNOWN,
    Verdict.NOT_EXERCISED,
    Verdict.HOLDS,
    Verdict.NOT_SUPPORTED,
)


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """Join verdicts: the first of refuted, void, unknown, not exercised, holds that occurs.

    What is not supported changes nothing, but a run in which nothing at all was supported has no
    evidence and is ``not exercised``.

    >>> str(overall([Verdict.HOLDS, Verdict.NOT_SUPPORTED]))
    'holds'
    >>> str(overall([Verdict.HOLDS, Verdict.UNKNOWN, Verdict.REFUTED]))
    'refuted'
    >>> str(overall([Verdict.NOT_SUPPORTED]))
    'not exercised'
    """
    worst = min(verdicts, key=_ORDER.index, default=Verdict.NOT_SUPPORTED)
    return Verdict.NOT_EXERCISED if worst is Verdict.NOT_SUPPORTED else worst


def exit_status(verdict: Verdict) -> int:
    """Exit status of a run: 0 conforms, 1 refuted, 2 void, unknown or not exercised.

    >>> exit_status(Verdict.HOLDS), exit_status(Verdict.REFUTED), exit_status(Verdict.UNKNOWN)
    (0, 1, 2)
    """
    return {Verdict.HOLDS: 0, Verdict.REFUTED: 1}.get(verdict, 2)


@dataclass(frozen=True)
class Check:
    """A claim that can be asked of an implementation.

    Attributes
    ----------
    id : check id such as ``kv/content``; stable, used by ``--only`` and by reports.
    rule : number of the invariant in ``docs/rules.md``, such as ``K1``.
    title : the claim in one sentence.
    contract : the contract it is asked of, such as ``block-manager``.
    severity : what a violation means for the user of an engine.
    needs : capabilities without which the claim is ``not supported``.
    exercised_by : names of the events of which each must have happened, else ``not exercised``.
    exercised_with : pairs of capabilities and a further such event, for targets with all of them.
    """

    id: str
    rule: str
    title: str
    contract: str
    severity: Severity
    needs: frozenset[str] = frozenset()
    exercised_by: tuple[str, ...] = ()
    exercised_with: tuple[tuple[frozenset[str], str], ...] = ()

    def events(self, capabilities: frozenset[str]) -> tuple[str, ...]:
        """All events that must have happened on a target with these capabilities.

        >>> events = {"exercised_by": ("new",), "exercised_with": ((frozenset({"fork"}), "fork"),)}
        >>> check = Check("kv/some", "K0", "Some claim.", "block-manager", Severity.LEAK, **events)
        >>> check.events(frozenset()), check.events(frozenset({"fork"}))
        (('new',), ('new', 'fork'))
        """
        further = (event for needed, event in self.exercised_with if needed <= capabilities)
        return (*self.exercised_by, *further)


PROVED, PROBED, SAMPLED = "proved", "probed", "sampled"
"""How a law was found, the strongest first: by running every path of the random numbers, by finding every
threshold of injected numbers, or by counting samples. Checks of laws say it in their statistics, as
``evidence``."""

UNCLAIMED = "not part of the claim"
"""How the message of a check begins that a verifier doesn't claim."""


@dataclass(frozen=True)
class Evidence:
    """The outcome of one check on one implementation; one row of the JSON report.

    ``exercised`` counts the events behind the verdict, ``counterexample`` is plain JSON data (a trace,
    or an attention case), ``message`` is complete: rule, place, expected, found, the trace in words.

    Checks of laws add ``statistics``, plain JSON data with finite numbers: ``samples``; ``power`` with
    ``tv``, the smallest deviation that would have been refuted, and the ``probability`` of that; ``ledger``,
    a list of ``kind``, ``share``, ``alpha`` and ``observed``; and what a later run needs to go on.

    ``known`` is the reason, and the link, why a refutation is a known deviation that doesn't count.

    ``frames`` is what the target said of itself after each operation of the counterexample, plain JSON data
    to be drawn (`tokenlaw.spec.frames`); empty where nothing can be.
    """

    check: Check
    verdict: Verdict
    exercised: Mapping[str, int] = field(default_factory=dict)
    operations: int = 0
    seconds: float = 0.0
    message: str = ""
    counterexample: Mapping[str, Any] | None = None
    statistics: Mapping[str, Any] | None = None
    known: str = ""
    frames: Sequence[Mapping[str, Any]] = ()
