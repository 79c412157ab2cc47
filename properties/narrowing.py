"""Narrowing a finding down: the smallest trace that shows it, and whether it stands on its own."""

from collections.abc import Callable

from tokenlaw.properties.judging import Crash, Finding
from tokenlaw.properties.running import Example, Outcome, Violation
from tokenlaw.properties.shrink import Simplifier, shrink

Once = Callable[[Example, frozenset[str]], Outcome]
"""``once(trace, muted)``: run a trace on a fresh target."""

SECONDS = 20.0
"""Wall-clock limit of shrinking one finding."""


def _violation(outcome: Outcome, check: str) -> Violation | None:
    return next((violation for violation in outcome.violations if violation.check == check), None)


def shrink_finding(
    once: Once, silent: frozenset[str], finding: Finding, simplifier: Simplifier | None = None
) -> Finding:
    """Shrink for this check, with nothing else muted if that shows the violation too."""
    check = finding.violation.check
    alone: list[Example] = []

    def fails_alone(trace: Example) -> bool:
        return _violation(once(trace, silent), check) is not None

    def fails(trace: Example) -> bool:
        failed = _violation(once(trace, finding.muted), check) is not None
        if failed and not alone and fails_alone(trace):
            alone.append(trace)
        return failed

    if not fails(finding.trace):
        return _unstable(finding)
    trace = finding.trace if alone else shrink(finding.trace, fails, seconds=SECONDS, simplifier=simplifier)
    if alone:
        trace = shrink(alone[0], fails_alone, seconds=SECONDS, simplifier=simplifier)
    return _described(once, silent, finding, trace, silent if alone else finding.muted)


def _described(
    once: Once, silent: frozenset[str], finding: Finding, trace: Example, muted: frozenset[str]
) -> Finding:
    """The finding on its shrunk trace; other checks that break first are named as the possible cause."""
    check = finding.violation.check
    violation = _violation(once(trace, muted), check)
    if violation is None:
        return _unstable(finding)
    first = () if muted == silent else tuple(v.check for v in once(trace, silent).violations)
    return Finding(trace, violation, muted, finding.operations, finding.seconds, tuple(dict.fromkeys(first)))


def _unstable(finding: Finding) -> Finding:
    return Finding(
        finding.trace, finding.violation, finding.muted, finding.operations, finding.seconds, stable=False
    )


def shrink_crash(
    once: Once, silent: frozenset[str], crash: Crash, simplifier: Simplifier | None = None
) -> Crash:
    """Shrink a crash to a trace that crashes at the same place, unmuted if that crashes too."""
    place = crash_place(crash.traceback)

    def crashes(trace: Example, muted: frozenset[str]) -> bool:
        found = once(trace, muted).crash
        return found is not None and crash_place(found) == place

    muted = silent if crashes(crash.trace, silent) else crash.muted
    if not crashes(crash.trace, muted):
        return Crash(crash.trace, crash.traceback, crash.muted, stable=False)
    small = shrink(crash.trace, lambda trace: crashes(trace, muted), seconds=SECONDS, simplifier=simplifier)
    found = once(small, muted)
    first = () if muted == silent else tuple(v.check for v in once(small, silent).violations)
    return Crash(small, found.crash or crash.traceback, muted, tuple(dict.fromkeys(first)))


def crash_place(traceback: str) -> tuple[str, str]:
    """What tells one crash from another: the innermost frame, and the kind of the exception."""
    lines = [line.strip() for line in traceback.splitlines() if line.strip()] or [""]
    frames = [line for line in lines if line.startswith("File ")]
    kind = next((line for line in reversed(lines) if ":" in line or line.isidentifier()), lines[-1])
    return (frames[-1] if frames else "", kind.split(":")[0])
