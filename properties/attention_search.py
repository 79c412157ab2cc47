"""Search for a case that breaks one check, and the evidence that comes of it."""

import time
import traceback
import zlib
from collections import Counter
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, Phase, Verbosity, given, settings, target
from hypothesis import seed as hypothesis_seed

from tokenlaw.properties.attention_cases import AttentionCase, describe, to_data
from tokenlaw.properties.attention_checks import AttentionCheck
from tokenlaw.properties.attention_findings import RuleBrokenError
from tokenlaw.properties.attention_shrinking import shrink
from tokenlaw.properties.attention_strategies import Dimensions, basic_cases, cases
from tokenlaw.properties.attention_subject import Subject
from tokenlaw.spec.announcing import announce, announce_evidence
from tokenlaw.spec.stopwatch import Stopwatch
from tokenlaw.spec.verdicts import Check, Evidence, Verdict

ENOUGH_CRASHES = 10
"""So many crashes end a search: the case that would refute isn't reached any more."""


SHRINK_SECONDS = 10.0
"""Seconds of a `Stopwatch` at most that are spent on shrinking one failure."""

BROKEN = "rule broken"
"""Kind of a failure that is a finding, not an exception."""


class _StopSearch(BaseException):
    """Ends a hypothesis run from within."""


@dataclass(frozen=True)
class Failure:
    """A case and what went wrong: ``kind`` is `BROKEN`, or the name of the exception that was raised.

    ``text`` is the complete message of a broken rule, or the traceback of the exception. ``excusable``: see
    `RuleBrokenError`.
    """

    case: AttentionCase
    kind: str
    text: str
    excusable: bool = False


class Search:
    """Looks for a case that breaks one check.

    Parameters
    ----------
    seconds : of a `Stopwatch`; when they are over the search ends as soon as every event has happened.
    """

    def __init__(
        self,
        entry: AttentionCheck,
        subject: Subject,
        dimensions: Dimensions,
        seconds: float,
    ) -> None:
        subject.counts, subject.largest_ratio = Counter(), 0.0
        self.entry, self.subject, self.dimensions = entry, subject, dimensions
        self.seconds, self.spent = seconds, Stopwatch()
        self.cases = 0
        self.refuted: Failure | None = None
        self.crash: Failure | None = None
        self.crashes = 0
        self.dtypes: set[str] = set()

    def evidence(self, examples: int, seed: int) -> Evidence:
        """Search, shrink, and say what was found."""
        started = time.monotonic()
        basic = list(basic_cases(self.entry.scope, self.dimensions, self.subject.capabilities))
        try:
            for case in basic:
                self._try(case)
            if not self._late():
                self._explore(examples, seed)
        except _StopSearch:
            pass
        failure = self.refuted or self.crash
        counts, ratio = +self.subject.counts, self.subject.largest_ratio
        if failure is not None:
            failure = self._shrunk(failure)
        found = evidence_of(self.entry.check, failure, counts, ratio)
        if failure is None and (less := self._shortfall(len(basic), examples)):
            found = replace(found, message=f"{found.message}; {less}")
        return replace(found, seconds=time.monotonic() - started)

    def _shortfall(self, basic: int, examples: int) -> str:
        """What was left out when the time was over; empty if nothing was."""
        drawn = self.cases - basic
        if not self._late() or drawn >= examples:
            return ""
        always = f"{self.cases} of the {basic} cases of every run"
        tried = always if drawn < 0 else f"{drawn} of {examples} drawn cases"
        return f"the time was over after {tried}"

    def _explore(self, examples: int, seed: int) -> None:
        strategy = cases(self.entry.scope, self.subject.capabilities, self.dimensions)

        @hypothesis_seed(seed * 2**32 + zlib.crc32(self.entry.check.id.encode()))
        @settings(
            max_examples=max(examples, 1),
            database=None,
            deadline=None,
            derandomize=False,
            phases=(Phase.generate, Phase.target),
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )
        @given(strategy)
        def trial(case: AttentionCase) -> None:
            self._try(case)
            target(min(self.subject.worst, 1e6), label="error as a share of its bound")

        trial()

    def _try(self, case: AttentionCase) -> None:
        failure = judge(self.entry, self.subject, case)
        self.cases += 1
        self.dtypes.add(case.dtype)
        if failure is not None and failure.kind == BROKEN:
            self.refuted = failure
            announce_evidence(evidence_of(self.entry.check, failure, +self.subject.counts, 0.0))
            raise _StopSearch
        if failure is not None:
            self.crash = self.crash or failure
            self.crashes += 1
        if self.crashes >= ENOUGH_CRASHES or (self._late() and self._exercised()):
            raise _StopSearch

    def _late(self) -> bool:
        return self.spent() > self.seconds

    def _exercised(self) -> bool:
        """Whether every event has happened, in every dtype: else a slow machine would prove nothing."""
        happened = all(self.subject.counts[event] for event in self.entry.check.exercised_by)
        return happened and self.dtypes.issuperset(self.dimensions.dtypes)

    def _shrunk(self, failure: Failure) -> Failure:
        """The simplest case that fails in the same way, judged once more for its message."""
        best = failure
        spent = Stopwatch()

        def still_fails(case: AttentionCase) -> bool:
            nonlocal best
            if spent() > SHRINK_SECONDS:
                return False
            again = judge(self.entry, self.subject, case)
            # A fault must not shrink to a case so small that a declaration would excuse it.
            if again is None or again.kind != failure.kind or again.excusable > failure.excusable:
                return False
            best = again
            return True

        shrink(failure.case, still_fails, self.entry.scope, self.dimensions)
        return best


def judge(entry: AttentionCheck, subject: Subject, case: AttentionCase) -> Failure | None:
    """Run one case; None when the rule holds."""
    announce(case)
    subject.worst = 0.0
    try:
        entry.run(subject, case)
    except RuleBrokenError as broken:
        return Failure(case, BROKEN, broken.explain(entry.check, describe(case)), broken.excusable)
    except Exception as error:
        return Failure(case, type(error).__name__, traceback.format_exc())
    return None


def evidence_of(check: Check, failure: Failure | None, counts: Counter[str], ratio: float) -> Evidence:
    """Evidence of a search that found this failure, or none; ``ratio`` is the largest error per bound."""
    if failure is None:
        missing = [name for name in check.exercised_by if not counts[name]]
        verdict = Verdict.NOT_EXERCISED if missing else Verdict.HOLDS
        size = f"largest error: {ratio:.3g} of its bound"
        message = f"never happened: {', '.join(missing)}" if missing else size
        return Evidence(check, verdict, dict(counts), counts["calls"], message=message)
    verdict, message = Verdict.REFUTED, failure.text
    if failure.kind != BROKEN:
        verdict, message = (
            Verdict.UNKNOWN,
            (
                f"{check.id} ({check.rule}): {check.title}\n"
                "The implementation raised an exception.\n"
                f"case: {describe(failure.case)}\n{failure.text}"
            ),
        )
    data = to_data(failure.case)
    return Evidence(check, verdict, dict(counts), counts["calls"], message=message, counterexample=data)
