"""What mutation testing found untested of how verdicts follow from what was seen; judgements set by hand."""

from collections import Counter
from dataclasses import replace

import pytest

from tokenlaw.properties.full_pool import HINT
from tokenlaw.properties.judging import Crash, Finding, Judgement, judge, judgement_of
from tokenlaw.properties.running import Example, Outcome, Violation
from tokenlaw.spec.contracts import DECODER
from tokenlaw.spec.sessions import Session, Step
from tokenlaw.spec.verdicts import Check, Severity, Verdict

NOTHING = frozenset[str]()
TRACE = Session((Step(),), 2)


def check(name: str, *events: str, needs: frozenset[str] = NOTHING) -> Check:
    return Check(name, "D0", "Some claim.", DECODER, Severity.LEAK, needs, events)


ONE, OTHER = check("one", "seen"), check("other")


def describe(about: Check, violation: Violation, trace: Example) -> str:
    return f"{about.id}: {violation.found}"


def tell(trace: Example) -> str:
    return f"{len(trace.operations)} operations"


def judgement(
    crash: Crash | None = None, shortfall: str = "", operations: int = 5, **findings: Finding
) -> Judgement:
    seen = Counter({"seen": 2})
    return Judgement(findings, crash, seen, operations, 1.5, shortfall, describe, tell)


def found(what: str = "wrong") -> Finding:
    return Finding(TRACE, Violation("one", 0, "right", what), NOTHING, 3, 0.5)


def test_what_was_seen_and_not_refuted_holds() -> None:
    one, other = judge((ONE, OTHER), NOTHING, judgement(shortfall="time is up"))
    assert (one.verdict, one.exercised, one.operations, one.seconds) == (Verdict.HOLDS, {"seen": 2}, 5, 1.5)
    assert (other.verdict, other.exercised, other.message) == (Verdict.HOLDS, {}, "time is up")
    assert one.counterexample is None


@pytest.mark.parametrize(
    ("operations", "events", "message"),
    [
        (5, ("seen", "fork", "abort"), "never happened: fork, abort; time is up"),
        (0, ("fork",), "never happened: fork; time is up"),
        (0, ("seen",), "no operation ran; time is up"),
    ],
)
def test_what_never_happened_is_not_exercised_and_named(
    operations: int, events: tuple[str, ...], message: str
) -> None:
    seen = judgement(shortfall="time is up", operations=operations)
    (one,) = judge((check("one", *events),), NOTHING, seen)
    assert (one.verdict, one.message) == (Verdict.NOT_EXERCISED, message)
    (plain,) = judge((check("one", *events),), NOTHING, replace(seen, shortfall=""))
    assert plain.message == message.removesuffix("; time is up")


def test_a_check_whose_needs_are_lacking_is_not_supported_whatever_was_found() -> None:
    """A crash says nothing of it either."""
    needing = check("one", needs=frozenset({"abort", "fork"}))
    seen = judgement(crash=Crash(TRACE, "KeyError"), one=found())
    (lacking,) = judge((needing,), frozenset({"fork"}), seen)
    assert (lacking.verdict, lacking.message) == (Verdict.NOT_SUPPORTED, "needs abort (method abort)")
    (supported,) = judge((needing,), frozenset({"fork", "abort", "requests"}), seen)
    assert supported.verdict is Verdict.REFUTED


def test_a_finding_refutes_its_check_alone_and_carries_its_trace() -> None:
    one, other = judge((ONE, OTHER), NOTHING, judgement(one=found()))
    assert (one.verdict, one.message, one.exercised) == (Verdict.REFUTED, "one: wrong", {"seen": 2})
    assert (one.operations, one.seconds) == (3, 0.5)
    assert one.counterexample is not None
    assert one.counterexample["operations"] == [{"op": "step"}]
    assert other.verdict is Verdict.HOLDS


def test_what_limits_a_finding_is_its_last_line() -> None:
    """That it didn't happen again outweighs what it may follow from."""
    later = replace(found(), first=("kv/a", "kv/b"))
    (one,) = judge((ONE,), NOTHING, judgement(one=later))
    assert one.message == "one: wrong\nmay follow from kv/a, kv/b, which this trace breaks earlier"
    (one,) = judge((ONE,), NOTHING, judgement(one=replace(later, stable=False)))
    assert one.message.startswith("one: wrong\nnot shrunk: a second run of the same trace passed")
    assert "may follow" not in one.message


def test_a_crash_makes_all_unknown_that_is_not_refuted_and_its_trace_is_told_once() -> None:
    crash = Crash(TRACE, f"Traceback\nKeyError: 3\n{HINT}")
    checks = (check("one", "never"), OTHER, check("third"), check("fourth", needs=frozenset({"fork"})))
    found_before = replace(found(), violation=Violation("other", 0, "right", "wrong"))
    one, other, third, fourth = judge(checks, NOTHING, judgement(crash, other=found_before))
    assert [row.verdict for row in (one, other, third, fourth)] == [
        Verdict.UNKNOWN,
        Verdict.REFUTED,
        Verdict.UNKNOWN,
        Verdict.NOT_SUPPORTED,
    ]
    assert one.message == f"the target crashed:\n{crash.traceback}\n1 operations"
    assert one.counterexample is not None
    assert third.message == "the target crashed: KeyError: 3"
    assert third.counterexample is None
    assert "crashed" not in other.message + fourth.message


def test_what_limits_a_crash_is_its_last_line() -> None:
    (one,) = judge((OTHER,), NOTHING, judgement(Crash(TRACE, "KeyError", first=("kv/a",))))
    assert one.message.endswith("1 operations\nmay follow from kv/a, which this trace breaks earlier")


def test_a_single_run_says_what_was_broken_first_for_each_check() -> None:
    """Nothing is muted in it, it is taken as stable, and it takes no time."""
    violations = [
        Violation(name, 0, "right", what) for name, what in (("one", "a"), ("other", "b"), ("one", "c"))
    ]
    outcome = Outcome(violations, Counter({"seen": 1}), operations=4)
    seen = judgement_of(outcome, TRACE, describe, tell)
    assert seen.findings == {
        "one": Finding(TRACE, violations[0], NOTHING, 4, 0.0),
        "other": Finding(TRACE, violations[1], NOTHING, 4, 0.0),
    }
    assert seen == Judgement(seen.findings, None, Counter({"seen": 1}), 4, 0.0, "", describe, tell)
    assert [row.message for row in judge((ONE, OTHER), NOTHING, seen)] == ["one: a", "other: b"]


def test_a_single_run_that_crashed_is_unknown() -> None:
    outcome = Outcome(operations=2, crash="KeyError: 3")
    seen = judgement_of(outcome, TRACE, describe, tell)
    assert seen.crash == Crash(TRACE, "KeyError: 3")
    (one,) = judge((OTHER,), NOTHING, seen)
    assert one.message == "the target crashed:\nKeyError: 3\n1 operations"
