"""The KV store harness is silent on an honest store and finds each planted fault under its own check."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from support.broken_stores import (
    FAULTS,
    ForgetsLastKey,
    NoLimit,
    OverwritesThenRaises,
    SharesLayers,
    WritesNeighbour,
)
from support.list_store import ALL, CONFIG, ListStore, append, audit, implementation, new, run
from tokenlaw.impl.faults.store_copies import WritesSharedBlocks
from tokenlaw.impl.faults.store_rewinding import AttendsInItsOwnOrder
from tokenlaw.impl.faults.store_sequences import StoreLeaksTail
from tokenlaw.impl.faults.store_writes import OneLengthForAllLayers
from tokenlaw.properties.full_pool import HINT
from tokenlaw.properties.kv_store_payload import Payload, scattered
from tokenlaw.properties.kv_store_run import needed_capabilities, run_trace
from tokenlaw.properties.kv_store_strategy import Sizes, kv_store_traces
from tokenlaw.properties.kv_store_suite import KVStoreSuite
from tokenlaw.properties.trace import (
    Append,
    Attend,
    Fork,
    Free,
    FreeAgain,
    New,
    Operation,
    Overflow,
    Reorder,
    Rollback,
    Trace,
    TraceError,
    to_data,
)
from tokenlaw.spec.contracts import KV_STORE, ContractError, Implementation, KVStore
from tokenlaw.spec.verdicts import Verdict


@pytest.mark.parametrize(
    ("store", "check", "operations"), FAULTS, ids=lambda value: getattr(value, "__name__", None)
)
def test_each_fault_breaks_its_check(
    store: type[KVStore], check: str, operations: tuple[Operation, ...]
) -> None:
    broken = run(store, *operations)
    assert broken.crash is None
    assert {violation.check for violation in broken.violations} == {check}
    assert broken.violations[0].operation == len(operations) - 1
    honest = run(ListStore, *operations)
    assert (honest.violations, honest.crash, honest.operations) == ([], None, len(operations))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_silent_on_the_honest_store_in_a_suite(dtype: str) -> None:
    evidence = audit(ListStore, dtype=dtype, seed=7, examples=30)
    quiet = (Verdict.HOLDS, Verdict.NOT_EXERCISED)
    assert {one.check.id: one.message for one in evidence if one.verdict not in quiet} == {}
    assert sum(one.verdict is Verdict.HOLDS for one in evidence) >= 6


@pytest.mark.parametrize(
    "store",
    [StoreLeaksTail, WritesSharedBlocks, AttendsInItsOwnOrder, OneLengthForAllLayers, SharesLayers],
    ids=lambda one: one.__name__,
)
def test_a_suite_finds_and_shrinks(store: type[KVStore]) -> None:
    check = next(check for known, check, _ in FAULTS if known is store)
    (found,) = audit(store, seed=3, selected=frozenset({check}))
    assert found.verdict is Verdict.REFUTED, found
    assert found.counterexample is not None
    assert len(found.counterexample["operations"]) <= 5
    replayed = KVStoreSuite().replay(implementation(store), found.counterexample)
    assert [one.check.id for one in replayed if one.verdict is Verdict.REFUTED] == [check]


def test_the_victim_of_an_overflow_and_the_source_are_named() -> None:
    (violation,) = run(OverwritesThenRaises, new(1), new(1), Overflow(0, 1)).violations
    assert (violation.sequence, violation.position) == (1, 0)
    assert "written for sequence 0, position 1, layer 0, key, head 0" in violation.found


def test_muted_faults_do_not_spread() -> None:
    overflow = (new(1), new(1), Overflow(0, 1), append(0), append(1))
    assert run(NoLimit, *overflow, muted=frozenset({"store/capacity"})).violations == []
    damaged = run(WritesNeighbour, new(1), new(1), append(1), muted=frozenset({"store/bystanders"}))
    assert damaged.violations == []
    assert run(ForgetsLastKey, new(2), muted=frozenset({"store/attention"})).violations == []
    wrong_both_ways = run(ForgetsLastKey, new(2), new(2), Attend((1,)), muted=frozenset({"store/attention"}))
    assert wrong_both_ways.violations == []


def test_a_true_refusal_is_no_leak() -> None:
    outcome = run(ListStore, new(8), new(1), Free(0), new(9), new(8), Free(0))
    assert outcome.violations == []
    assert outcome.exercised["out of blocks"] == 2


def test_operations_without_a_meaning_are_skipped() -> None:
    outcome = run_trace(
        ListStore,
        Trace((Append(0, (1,)), Free(3), FreeAgain(), Attend((0,)), Fork(0)), CONFIG, KV_STORE),
        ALL,
    )
    assert (outcome.violations, outcome.crash, +outcome.exercised) == ([], None, {})
    without = run_trace(
        ListStore, Trace((new(1), Fork(0), Rollback(0, 5)), CONFIG, KV_STORE), frozenset({"reserve"})
    )
    assert +without.exercised == {"new": 1}


def test_an_exception_that_the_contract_does_not_allow_is_a_crash() -> None:
    class Crashes(ListStore):
        def free(self, sequence: int) -> None:
            raise RuntimeError("on fire")

    outcome = run(Crashes, new(1), Free(0))
    assert outcome.crash is not None
    assert "on fire" in outcome.crash
    assert outcome.violations == []


@pytest.mark.parametrize("method", ["allocate", "append", "reserve", "fork", "free"])
def test_an_error_of_a_scheduling_call_gets_a_hint(method: str) -> None:
    def fail(self: ListStore, *_: object) -> None:
        raise RuntimeError("no room")

    outcome = run(type("Crashes", (ListStore,), {method: fail}), new(1), Fork(0), Free(0))
    assert outcome.crash is not None
    assert outcome.crash.rstrip().endswith("no room" if method == "free" else f"no room\n{HINT}")


class KeepsScoresInItsDtype(ListStore):
    """Attention of eager code: scores and probabilities are stored in the dtype of the query."""

    def row(self, sequence: int, query: Tensor, layer: int, scale: float) -> Tensor:
        keys, values = self.content[sequence][layer].repeat_interleave(2, dim=1)
        scores = torch.einsum("hd,hkd->hk", query, keys) * scale
        weights = torch.softmax(scores.float(), dim=-1).to(query.dtype)
        return torch.einsum("hk,hkd->hd", weights.float(), values.float())


class DeclaresIt(KeepsScoresInItsDtype):
    scores_in_input_dtype = True


class DeclaresItAsAWord(KeepsScoresInItsDtype):
    scores_in_input_dtype = "yes"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_store_may_declare_where_it_keeps_scores(dtype: str) -> None:
    config = replace(CONFIG, num_blocks=16, block_size=16, head_size=64, dtype=dtype)
    trace = Trace((new(64), *[append(0, 3)] * 20), config, KV_STORE)
    short = Trace((new(2),), config, KV_STORE)
    undeclared = run_trace(KeepsScoresInItsDtype, trace, ALL)
    assert {violation.check for violation in undeclared.violations} == {"store/attention"}
    assert undeclared.violations[0].found.endswith("(declare scores_in_input_dtype)")
    assert run_trace(DeclaresIt, trace, ALL).violations == []
    forgetful = type("AndForgets", (DeclaresIt,), {"row": ForgetsLastKey.row})
    (wrong,) = run_trace(forgetful, short, ALL).violations
    assert not wrong.found.endswith("(declare scores_in_input_dtype)")
    with pytest.raises(ContractError, match="must be True or False; it is 'yes'"):
        run_trace(DeclaresItAsAWord, trace, ALL)


def test_payload_numbers_are_distinct_exact_and_traceable() -> None:
    for dtype, period in ((torch.float16, 2**14), (torch.bfloat16, 2**11)):
        assert scattered(5, period, dtype).unique().numel() == period
    numbers = scattered(0, 200_000, torch.float32)
    assert numbers.unique().numel() == 200_000
    assert 2**-7 <= numbers.abs().min() < numbers.abs().max() < 2
    payload = Payload(CONFIG)
    payload.draw(0, {0: 0, 1: 0}, 3)
    second = payload.draw(4, {0: 5, 1: 7}, 2)
    number = second[1, 1, 0, 1, 2].item()
    assert payload.origin(number) == "which was written for sequence 4, position 8, layer 1, value, head 0"
    assert payload.origin(0.0) == "which was never written"


@given(st.data(), st.frozensets(st.sampled_from(sorted(ALL))))
@settings(max_examples=50)
def test_traces_need_no_more_than_there_is(data: st.DataObject, capabilities: frozenset[str]) -> None:
    trace = data.draw(kv_store_traces(capabilities, Sizes(dtype="float16", max_operations=5)))
    assert needed_capabilities(trace) <= capabilities
    assert (trace.contract, trace.config.dtype) == (KV_STORE, "float16")
    assert isinstance(trace.operations[0], New)
    assert 2 <= trace.config.num_blocks <= 8 or trace.config.num_blocks * trace.config.block_size == 320
    assert 2 <= trace.config.block_size <= 16


def test_replay_refuses_what_it_cannot_run() -> None:
    suite, store = KVStoreSuite(), implementation(ListStore, frozenset({"fork"}))
    with pytest.raises(TraceError, match="rollback, which list doesn't offer"):
        suite.replay(store, to_data(Trace((new(1), Rollback(0, 1)), CONFIG, KV_STORE)))
    with pytest.raises(TraceError, match="a trace of a block-manager"):
        suite.replay(store, to_data(Trace((new(1),), CONFIG)))
    with pytest.raises(TraceError, match="float8"):
        suite.replay(store, to_data(Trace((new(1),), replace(CONFIG, dtype="float8"), KV_STORE)))
    with pytest.raises(ContractError, match="offers no kv-store"):
        suite.replay(Implementation("none", "0", {}), to_data(Trace((new(1),), CONFIG, KV_STORE)))
    assert needed_capabilities(Trace((Attend((0,)), Reorder((0,))))) == {"attend", "any-batch", "reorder"}
