"""Small suites for the tests of the face: quick, and refuted, crashed or fooled as the fake targets like."""

import os
import time

from tokenlaw.impl.faults.wrappers import Wrapper
from tokenlaw.properties.trace import New, Trace, TraceError, to_data
from tokenlaw.spec.announcing import announce, announce_evidence
from tokenlaw.spec.capabilities import effective_capabilities
from tokenlaw.spec.contracts import BLOCK_MANAGER, KV_STORE, VERIFIER, CacheConfig
from tokenlaw.spec.suites import DEFAULTS, ignore
from tokenlaw.spec.verdicts import Check, Evidence, Severity, Verdict
from tokenlaw.spec.verifiers import build_verifier, claim_of

RUNS = 5
HOSTILE = "expected 1 [bold]not markup[/bold] <&>\x1b[31m\x00\ud800 found 2"


class FakeSuite:
    """Runs a few traces of one operation; the object itself says which verdict it deserves."""

    def __init__(self, contract, *names, needs=frozenset()):
        self.contract = contract
        self.checks = tuple(
            Check(
                name,
                f"K{number}",
                f"Claim {number} holds.",
                contract,
                Severity.LEAK,
                needs if number == 2 else frozenset(),
            )
            for number, name in enumerate(names, start=1)
        )

    def run(self, implementation, *, profile, seed, selected, progress, settings=DEFAULTS):
        built = implementation.factories[self.contract](CacheConfig())
        capabilities = effective_capabilities(implementation, self.contract, built)
        chosen = [check for check in self.checks if check.id in selected]
        for number in range(RUNS):
            trace = Trace((New((number, seed)),), contract=self.contract)
            announce(trace)
            progress("traces", number, RUNS)
            built.append("sequence", (number,))
            for check in chosen:
                if (found := self._evidence(check, built, capabilities, to_data(trace))).message == HOSTILE:
                    announce_evidence(found)
        return [self._evidence(check, built, capabilities, to_data(trace)) for check in chosen]

    def _evidence(self, check, built, capabilities, data):
        if not check.needs <= capabilities:
            return Evidence(check, Verdict.NOT_SUPPORTED, message="needs fork")
        verdict = getattr(built, "verdicts", {}).get(check.id, Verdict.HOLDS)
        if verdict is Verdict.REFUTED:
            return Evidence(check, verdict, {"fork": 1}, RUNS, 0.5, HOSTILE, data)
        return Evidence(check, verdict, {"fork": 1}, RUNS, 0.25)

    def replay(self, implementation, counterexample, *, progress=ignore, settings=DEFAULTS):
        if counterexample["operations"] == []:
            raise TraceError("counterexample: it needs swap, which this target doesn't offer")
        built = implementation.factories[self.contract](CacheConfig())
        announce(counterexample)
        built.append("sequence", (1,))
        rows = [self._evidence(check, built, frozenset(), dict(counterexample)) for check in self.checks]
        return [*rows, Evidence(self.checks[0], Verdict.NOT_EXERCISED)]


class LawSuite:
    """Calls the verifier once and says what it was told to do."""

    contract = VERIFIER
    checks = (Check("law/fake", "L1", "The fake law holds.", VERIFIER, Severity.WRONG_LAW),)

    def run(self, implementation, *, profile, seed, selected, progress, settings=DEFAULTS):
        verifier = build_verifier(implementation)
        verifier.verify(None, seed=seed)
        log_e = 1.5 + (settings.continued or {}).get("law/fake", {}).get("log_e", 0.0)
        statistics = {
            "samples": settings.budget or profile.requests,
            "log_e": log_e,
            "power": {"tv": 0.0125, "probability": 0.999},
            "ledger": [{"kind": "gate", "share": 1.0, "alpha": settings.alpha, "observed": log_e}],
            "told": {
                "claims": settings.claims or claim_of(verifier, implementation.name),
                "device": settings.device,
                "tolerance": settings.tolerance,
            },
        }
        message = "Any law at TV >= 0.0125 would have been refuted."
        return [Evidence(self.checks[0], Verdict.HOLDS, message=message, statistics=statistics)]

    def replay(self, implementation, counterexample, *, progress=ignore, settings=DEFAULTS):
        message = f"on {settings.device}: {counterexample['words']}"
        return [Evidence(self.checks[0], Verdict.REFUTED, message=message)]


def laws():
    """A contract of caches and that of verifiers."""
    return {BLOCK_MANAGER: FakeSuite(BLOCK_MANAGER, "fake/content"), VERIFIER: LawSuite()}


def suites():
    """Two contracts."""
    manager = FakeSuite(BLOCK_MANAGER, "fake/content", "fake/forks", needs=frozenset({"fork"}))
    return {BLOCK_MANAGER: manager, KV_STORE: FakeSuite(KV_STORE, "store/content")}


class FaultySuite(FakeSuite):
    """Fails by itself."""

    def run(self, implementation, **options):
        raise RuntimeError("the suite is at fault")


def faulty():
    """One suite that fails by itself."""
    return {BLOCK_MANAGER: FaultySuite(BLOCK_MANAGER, "fake/content")}


class SlowSuite(FakeSuite):
    """Never ends, but always gives signs of life."""

    def run(self, implementation, *, progress, **options):
        while True:
            progress("waiting", 1, 2)
            time.sleep(0.01)


def slow():
    """One suite that never ends."""
    return {BLOCK_MANAGER: SlowSuite(BLOCK_MANAGER, "fake/content")}


class DeadlySuite(FakeSuite):
    """Ends the process when it is given a broken wrapper; stands for one of ours, so it has controls."""

    __module__ = "tokenlaw.fake"

    def run(self, implementation, *, selected, **options):
        built = implementation.factories[self.contract](CacheConfig())
        if isinstance(built, Wrapper):
            print("the wrapper was too much", flush=True)
            os._exit(7)
        return [Evidence(check, Verdict.HOLDS) for check in self.checks if check.id in selected]


def deadly():
    """One suite whose broken wrapper is deadly."""
    return {BLOCK_MANAGER: DeadlySuite(BLOCK_MANAGER, "kv/content")}
