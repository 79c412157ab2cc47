"""Fake targets to explore: each breaks a check, or crashes, where a pattern of operations is complete."""

from collections import Counter
from functools import partial

from tokenlaw.properties.exploration import explore
from tokenlaw.properties.running import Outcome, Violation
from tokenlaw.properties.strategies import rolled_trace, traces
from tokenlaw.spec.suites import Profile
from tokenlaw.spec.verdicts import Check, Severity

CAPABILITIES = frozenset({"fork", "rollback"})
PROFILE = Profile("test", examples=120, max_operations=20, seconds=60.0)
TRACES = traces(CAPABILITIES, PROFILE)


def check(name, *events, needs=()):
    return Check(
        f"kv/{name}", "K0", f"{name} is right", "block-manager", Severity.LEAK, frozenset(needs), events
    )


def first_match(trace, pattern):
    """Index of the operation that completes the pattern of kinds as a subsequence, or None."""
    rest = list(pattern)
    for index, operation in enumerate(trace.operations):
        if rest and type(operation) is rest[0]:
            rest.pop(0)
            if not rest:
                return index
    return None


def fake(patterns, crash_on=()):
    """A target that breaks check id at the operation that completes its pattern, earliest first."""

    def run(trace, muted):
        found = {id_: first_match(trace, pattern) for id_, pattern in patterns.items() if id_ not in muted}
        crash = first_match(trace, crash_on) if crash_on else None
        where = min((i for i in (*found.values(), crash) if i is not None), default=None)
        kinds = Counter(type(operation).__name__.lower() for operation in trace.operations)
        outcome = Outcome(exercised=kinds, operations=len(trace.operations))
        if where is not None:
            outcome.violations = [
                Violation(id_, where, "right", "wrong") for id_, index in found.items() if index == where
            ]
            outcome.crash = None if outcome.violations else "Traceback:\n  File 'x', line 1\nKeyError: 7"
        return outcome

    return run


def explored(checks, run, **changes):
    arguments = {
        "profile": PROFILE,
        "seed": 1,
        "selected": frozenset(one.id for one in checks),
        "capabilities": CAPABILITIES,
        "progress": lambda *_: None,
    }
    roll = changes.pop("roll", partial(rolled_trace, CAPABILITIES, PROFILE))
    return explore(checks, TRACES, roll, run, **(arguments | changes))


def kinds(evidence):
    return [operation["op"] for operation in evidence.counterexample["operations"]]
