"""The audit of a kernel, and honest ones."""

from tokenlaw.impl.faults import SteppedAttention as Kernel
from tokenlaw.properties.attention_suite import AttentionSuite
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import PAGED_ATTENTION, Implementation
from tokenlaw.spec.suites import Profile
from tokenlaw.spec.verdicts import Verdict

ALL = frozenset(CAPABILITY_MEMBERS[PAGED_ATTENTION])


__all__ = ["ALL", "IDS", "SMALL", "SUITE", "Kernel", "implementation", "refuted", "run"]


def implementation(kernel, capabilities=ALL):
    return Implementation(
        "kernel", "1", {PAGED_ATTENTION: kernel}, {PAGED_ATTENTION: frozenset(capabilities)}
    )


SMALL = Profile("small", examples=40, max_operations=1, seconds=60.0)
SUITE = AttentionSuite()
IDS = tuple(check.id for check in SUITE.checks)


def run(kernel, *, capabilities=ALL, checks=IDS, seed=1, suite=SUITE, profile=SMALL):
    evidence = suite.run(
        implementation(kernel, capabilities),
        profile=profile,
        seed=seed,
        selected=frozenset(checks),
        progress=lambda what, done, total: None,
    )
    return {found.check.id: found for found in evidence}


def refuted(evidence):
    return {name for name, found in evidence.items() if found.verdict is Verdict.REFUTED}
