"""From what an exploration or a replay saw to verdicts and their messages."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from tokenlaw.properties import words
from tokenlaw.properties.full_pool import last_line
from tokenlaw.properties.running import Example, Outcome, Violation
from tokenlaw.spec.capabilities import needed
from tokenlaw.spec.verdicts import Check, Evidence, Verdict

Describe = Callable[[Check, Violation, Example], str]
"""A violation of a check in words."""


@dataclass(frozen=True)
class Finding:
    """A trace that breaks a check.

    ``operations`` and ``seconds`` tell how much was tried before it was found. ``muted`` are the checks that
    weren't looked at; ``first`` are those among them that the trace breaks earlier. ``stable`` is false when
    a second run of the same trace passed.
    """

    trace: Example
    violation: Violation
    muted: frozenset[str]
    operations: int
    seconds: float
    first: tuple[str, ...] = ()
    stable: bool = True


@dataclass(frozen=True)
class Crash:
    """A trace on which the target raised what its contract doesn't allow; fields as in `Finding`."""

    trace: Example
    traceback: str
    muted: frozenset[str] = frozenset()
    first: tuple[str, ...] = ()
    stable: bool = True


@dataclass(frozen=True)
class Judgement:
    """Everything that verdicts follow from. ``shortfall`` says why less was tried than asked, or is empty."""

    findings: dict[str, Finding]
    crash: Crash | None
    exercised: Counter[str]
    operations: int
    seconds: float
    shortfall: str
    describe: Describe
    tell: Callable[[Example], str]


def judgement_of(
    outcome: Outcome,
    trace: Example,
    describe: Describe = words.explain,
    tell: Callable[[Example], str] = words.tell,
) -> Judgement:
    """What one run of one trace says, ready to be judged."""
    findings = {
        violation.check: Finding(trace, violation, frozenset(), outcome.operations, 0.0)
        for violation in reversed(outcome.violations)
    }
    crash = None if outcome.crash is None else Crash(trace, outcome.crash)
    return Judgement(findings, crash, Counter(outcome.exercised), outcome.operations, 0.0, "", describe, tell)


def judge(checks: Sequence[Check], capabilities: frozenset[str], judgement: Judgement) -> list[Evidence]:
    """Evidence for each of the checks.

    A crash makes every check that isn't refuted ``unknown``; the first of them carries the trace.
    """
    evidence = []
    crash_told = False
    for check in checks:
        one = _judge_one(check, capabilities, judgement)
        if one.verdict is Verdict.UNKNOWN and judgement.crash is not None:
            one = _with_crash(one, judgement.crash, judgement.tell, whole=not crash_told)
            crash_told = True
        evidence.append(one)
    return evidence


def _judge_one(check: Check, capabilities: frozenset[str], judgement: Judgement) -> Evidence:
    missing = check.needs - capabilities
    if missing:
        return Evidence(check, Verdict.NOT_SUPPORTED, message=needed(check.contract, missing))
    exercised = {event: judgement.exercised[event] for event in check.events(capabilities)}
    finding = judgement.findings.get(check.id)
    if finding is not None:
        return refutation(check, finding, exercised, judgement.describe)
    verdict, message = _verdict(exercised, judgement)
    return Evidence(check, verdict, exercised, judgement.operations, judgement.seconds, message)


def refutation(check: Check, finding: Finding, exercised: dict[str, int], describe: Describe) -> Evidence:
    """The evidence of a finding; ``exercised`` counts the events that the check is about."""
    message = describe(check, finding.violation, finding.trace) + _caveat(finding)
    return Evidence(
        check,
        Verdict.REFUTED,
        exercised,
        finding.operations,
        finding.seconds,
        message,
        _data(finding.trace),
    )


def _data(trace: Example) -> Any:
    """The trace as plain JSON data."""
    return msgspec.json.decode(msgspec.json.encode(trace))


def _verdict(exercised: dict[str, int], judgement: Judgement) -> tuple[Verdict, str]:
    """The verdict of a supported check that nothing refuted."""
    if judgement.crash is not None:
        return Verdict.UNKNOWN, ""
    never = [event for event, count in exercised.items() if not count]
    if never or not judgement.operations:
        what = f"never happened: {', '.join(never)}" if never else "no operation ran"
        return Verdict.NOT_EXERCISED, "; ".join(filter(None, (what, judgement.shortfall)))
    return Verdict.HOLDS, judgement.shortfall


def _caveat(evidence: Finding | Crash) -> str:
    """What limits the meaning of a finding, as a last line; empty if nothing does."""
    if not evidence.stable:
        return "\nnot shrunk: a second run of the same trace passed, so the target isn't deterministic"
    if evidence.first:
        return f"\nmay follow from {', '.join(evidence.first)}, which this trace breaks earlier"
    return ""


def _with_crash(evidence: Evidence, crash: Crash, tell: Callable[[Example], str], whole: bool) -> Evidence:
    """Evidence of an unknown verdict, with the crash in full or only its last line."""
    if not whole:
        return replace(evidence, message=f"the target crashed: {last_line(crash.traceback)}")
    message = f"the target crashed:\n{crash.traceback}\n{tell(crash.trace)}{_caveat(crash)}"
    return replace(evidence, message=message, counterexample=_data(crash.trace))
