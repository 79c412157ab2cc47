"""The suite for block managers at its own door: the reference holds, breakage is refuted, replay agrees."""

from collections import Counter

import msgspec
import pytest

from tokenlaw.impl.paged import REFERENCE, PagedBlockManager
from tokenlaw.properties.block_manager_run import run_trace
from tokenlaw.properties.block_manager_suite import BlockManagerSuite
from tokenlaw.properties.full_pool import HINT
from tokenlaw.properties.trace import Append, Fork, Free, New, Trace, TraceError, to_data
from tokenlaw.spec.announcing import listening
from tokenlaw.spec.contracts import BLOCK_MANAGER, CONTRACTS, KV_STORE, ContractError, Implementation
from tokenlaw.spec.suites import PROFILES, Profile
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.suites import suites

SUITE = BlockManagerSuite()
EVENTS = (
    "new",
    "append",
    "fork",
    "divergence",
    "copy",
    "hit",
    "publish",
    "eviction",
    "rollback",
    "rollback into a full block",
    "speculation",
    "rejection",
    "full acceptance",
    "out of blocks",
    "free",
    "free again",
    "abort",
    "weights",
    "reset",
    "swap",
    "late write",
    "window drop",
    "bad rollback",
    "read back",
)
FORKED = Trace((New((1,)), Fork(0), Free(0)))


class ForgetsReferences(PagedBlockManager):
    """A fork whose blocks nobody counts."""

    def fork(self, sequence):
        child = super().fork(sequence)
        self._blocks.release_all(self._sequences[sequence].blocks)
        return child


class Raises(PagedBlockManager):
    """A fork that crashes."""

    def fork(self, sequence):
        raise KeyError(sequence)


def implementation(manager, capabilities=None):
    everything = REFERENCE.capabilities[BLOCK_MANAGER] - {"lookahead"}  # which the plain class has not
    declared = everything if capabilities is None else frozenset(capabilities)
    return Implementation("target", "0", {BLOCK_MANAGER: manager}, {BLOCK_MANAGER: declared})


def audited(target, profile, selected=None):
    everything = frozenset(check.id for check in SUITE.checks)
    return SUITE.run(
        target,
        profile=profile,
        seed=1,
        selected=selected or everything,
        progress=lambda what, done, total: None,
    )


def replayed(target, trace):
    return {one.check.id: one for one in SUITE.replay(target, to_data(trace))}


def test_the_reference_holds_and_everything_happens():
    """The quick profile exercises every event that any check asks for, and some that none asks for."""
    dev = PROFILES["dev"]
    traces = []
    with listening(traces.append):
        evidence = audited(REFERENCE, Profile("half", dev.examples // 2, dev.max_operations, 60.0))
    assert {one.check.id: str(one.verdict) for one in evidence} == {
        check.id: "holds" for check in SUITE.checks
    }
    happened = Counter()
    for trace in traces:
        outcome = run_trace(
            REFERENCE.factories[BLOCK_MANAGER],
            trace,
            REFERENCE.capabilities[BLOCK_MANAGER],
            read_back_every=100,
        )
        happened.update(outcome.exercised)
    assert [event for event in EVENTS if not happened[event]] == []


def test_a_broken_manager_is_refuted_and_its_counterexample_replays():
    target = implementation(ForgetsReferences)
    evidence = {one.check.id: one for one in audited(target, Profile("short", 60, 40, 60.0))}
    found = evidence["kv/refcount"]
    assert found.verdict is Verdict.REFUTED
    assert [operation["op"] for operation in found.counterexample["operations"]] == ["new", "fork"]
    stored = msgspec.json.decode(msgspec.json.encode(found.counterexample))
    again = {one.check.id: one for one in SUITE.replay(target, stored)}
    assert again["kv/refcount"].verdict is Verdict.REFUTED
    assert again["kv/refcount"].message == found.message
    assert all(one.verdict is not Verdict.REFUTED for one in SUITE.replay(REFERENCE, stored))


def test_replay_tells_what_the_trace_reached():
    evidence = replayed(REFERENCE, FORKED)
    assert evidence["kv/refcount"].verdict is Verdict.HOLDS
    assert evidence["kv/in-flight"].verdict is Verdict.NOT_EXERCISED


def test_replay_announces_its_trace():
    heard = []
    with listening(heard.append):
        replayed(REFERENCE, FORKED)
    assert heard == [FORKED]


def test_replay_names_the_missing_capability():
    with pytest.raises(TraceError, match="it needs fork, which target doesn't offer"):
        SUITE.replay(implementation(PagedBlockManager, {"rollback"}), to_data(FORKED))


def test_replay_refuses_what_is_no_trace_of_this_contract():
    with pytest.raises(TraceError, match=f"it is a trace of a {KV_STORE}"):
        SUITE.replay(REFERENCE, to_data(Trace((New((0,)),), contract=KV_STORE)))
    with pytest.raises(TraceError, match="schema"):
        SUITE.replay(REFERENCE, {"operations": []})


def test_replay_of_a_crash_is_unknown():
    evidence = replayed(implementation(Raises), FORKED)
    assert evidence["kv/content"].verdict is Verdict.UNKNOWN
    assert "KeyError" in evidence["kv/content"].message
    assert evidence["kv/content"].counterexample == to_data(FORKED)


def test_an_error_of_its_own_for_a_full_pool_gets_a_hint():
    class PoolFullError(Exception):
        """What this engine raises."""

    class RefusesInItsOwnWay(PagedBlockManager):
        def append(self, sequence, tokens):
            raise PoolFullError("no block left")

    trace = Trace((New((1,)), Append(0, (2,))))
    first, second = list(replayed(implementation(RefusesInItsOwnWay), trace).values())[:2]
    assert "no block left\nif this means that the pool is full, raise tokenlaw.OutOfBlocks\n" in first.message
    assert second.message.startswith("the target crashed: ")
    assert second.message.endswith("PoolFullError: no block left")
    assert HINT not in replayed(implementation(Raises), Trace((New((1,)), Free(0))))["kv/content"].message


def test_what_needs_an_absent_capability_is_not_supported():
    evidence = audited(implementation(PagedBlockManager, ()), Profile("short", 20, 20, 60.0))
    verdicts = {one.check.id: one for one in evidence}
    assert verdicts["kv/rollback"].verdict is Verdict.NOT_SUPPORTED
    assert verdicts["kv/rollback"].message == "needs rollback (method rollback)"


def test_an_implementation_without_block_manager_is_refused():
    with pytest.raises(ContractError, match="offers no block-manager"):
        audited(Implementation("target", "0", {}), Profile("short", 20, 20, 60.0))


def test_each_contract_has_its_suite():
    assert set(suites()) == set(CONTRACTS)
    for contract in CONTRACTS:
        assert suites()[contract].contract == contract
