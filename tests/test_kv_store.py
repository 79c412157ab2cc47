"""The KV store harness is silent on an honest store and finds each planted fault under its own check."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tokenlaw.properties.kv_store_payload import Payload, scattered
from tokenlaw.properties.kv_store_run import KV_STORE_CHECKS, needed_capabilities, run_trace
from tokenlaw.properties.kv_store_strategy import kv_store_traces
from tokenlaw.properties.kv_store_suite import KVStoreSuite
from tokenlaw.properties.running import Outcome, Profile
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
from tokenlaw.spec.attention import attend
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import KV_STORE, CacheConfig, ContractError, Implementation, OutOfBlocks
from tokenlaw.spec.verdicts import Verdict

ALL = frozenset(CAPABILITY_MEMBERS[KV_STORE])
CONFIG = CacheConfig(num_blocks=4, block_size=2, num_layers=2, num_kv_heads=2, head_size=4, max_sequences=3)
IDS = frozenset(check.id for check in KV_STORE_CHECKS)


class ListStore:
    """Honest: one contiguous tensor ``[2, layers, heads, length, head_size]`` for each sequence."""

    checks_room = True

    def __init__(self, config: CacheConfig) -> None:
        self.config = config
        self.content: dict[int, Tensor] = {}
        self.room: dict[int, int] = {}
        self.made = 0

    def blocks(self, length: int) -> int:
        return -(-length // self.config.block_size)

    def used(self) -> int:
        return sum(map(self.blocks, self.room.values()))

    def allocate(self) -> int:
        config = self.config
        if len(self.content) == config.max_sequences:
            raise OutOfBlocks("no further sequence")
        self.made += 1
        shape = (2, config.num_layers, config.num_kv_heads, 0, config.head_size)
        self.content[self.made] = torch.empty(shape, dtype=getattr(torch, config.dtype))
        self.room[self.made] = 0
        return self.made

    def reserve(self, sequence: int, length: int) -> None:
        more = self.blocks(max(length, self.room[sequence])) - self.blocks(self.room[sequence])
        if self.used() + more > self.config.num_blocks:
            raise OutOfBlocks("pool is full")
        self.room[sequence] = max(length, self.room[sequence])

    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        content = torch.cat([self.content[sequence], torch.stack([keys, values])], dim=3)
        if self.checks_room and content.shape[3] > self.room[sequence]:
            raise OutOfBlocks("beyond the room")
        self.content[sequence] = content

    def read(self, sequence: int, layer: int) -> tuple[Tensor, Tensor]:
        keys, values = self.content[sequence][:, layer]
        return keys, values

    def free(self, sequence: int) -> None:
        del self.content[sequence], self.room[sequence]

    def fork(self, sequence: int) -> int:
        if self.used() + self.blocks(self.content[sequence].shape[3]) > self.config.num_blocks:
            raise OutOfBlocks("pool is full")
        child = self.allocate()
        self.content[child] = self.content[sequence].clone()
        self.room[child] = self.content[sequence].shape[3]
        return child

    def rollback(self, sequence: int, count: int) -> None:
        length = self.content[sequence].shape[3]
        if not 0 <= count <= length:
            raise ValueError("no such rollback")
        self.content[sequence] = self.content[sequence][:, :, :, : length - count]

    def reorder(self, sequences: Sequence[int], parents: Sequence[int]) -> None:
        before = [self.content[sequence] for sequence in sequences]
        for sequence, parent in zip(sequences, parents, strict=True):
            self.content[sequence] = before[parent].clone()

    def attend(self, sequences: Sequence[int], queries: Tensor, layer: int, scale: float) -> Tensor:
        rows = [
            self.row(sequence, query, layer, scale)
            for sequence, query in zip(sequences, queries, strict=True)
        ]
        return torch.stack(rows).to(queries.dtype)

    def row(self, sequence: int, query: Tensor, layer: int, scale: float) -> Tensor:
        keys, values = self.content[sequence][:, layer].double().transpose(1, 2)
        return attend(query.double()[None], keys, values, scale)[0][0]


class OneLayerOnly(ListStore):
    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        super().append(sequence, keys[:1].expand_as(keys), values)


class WritesNeighbour(ListStore):
    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        super().append(sequence, keys, values)
        for other in self.content.keys() - {sequence}:
            self.content[other][:, :, :, -1:] = self.content[sequence][:, :, :, -1:]


class SharesTail(ListStore):
    """No copy on write: a fork and its parent write the same slot after the common part."""

    def __init__(self, config: CacheConfig) -> None:
        super().__init__(config)
        self.shared: dict[int, int] = {}

    def fork(self, sequence: int) -> int:
        child = super().fork(sequence)
        self.shared[child] = sequence
        return child

    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        position = self.content[sequence].shape[3]
        super().append(sequence, keys, values)
        parent = self.content.get(self.shared.get(sequence, 0))
        if parent is not None and position % self.config.block_size and position < parent.shape[3]:
            parent[:, :, :, position] = self.content[sequence][:, :, :, position]


class NoLimit(ListStore):
    checks_room = False


class OverwritesThenRaises(ListStore):
    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        if self.content[sequence].shape[3] + keys.shape[2] > self.room[sequence]:
            victim = next(iter(self.content.keys() - {sequence}))
            self.content[victim][0, 0, 0, 0] = keys[0, 0, 0]
        super().append(sequence, keys, values)


class DropsOnRefusal(ListStore):
    def reserve(self, sequence: int, length: int) -> None:
        try:
            super().reserve(sequence, length)
        except OutOfBlocks:
            self.content[min(self.content)] = self.content[min(self.content)][:, :, :, 1:]
            raise


class Leaks(ListStore):
    leaked = 0

    def used(self) -> int:
        return super().used() + self.leaked

    def free(self, sequence: int) -> None:
        self.leaked += self.blocks(self.room[sequence]) // 2
        super().free(sequence)


class FreesTwice(ListStore):
    def free(self, sequence: int) -> None:
        if sequence in self.content:
            super().free(sequence)
        else:
            self.content[max(self.content)][0, 0, 0, 0] = 0


class RollsBackLess(ListStore):
    def rollback(self, sequence: int, count: int) -> None:
        super().rollback(sequence, max(0, count - 1))


class RollsBackAnything(ListStore):
    def rollback(self, sequence: int, count: int) -> None:
        super().rollback(sequence, min(count, self.content[sequence].shape[3]))


class ReordersInPlace(ListStore):
    def reorder(self, sequences: Sequence[int], parents: Sequence[int]) -> None:
        for sequence, parent in zip(sequences, parents, strict=True):
            self.content[sequence] = self.content[sequences[parent]]


class ForgetsLastKey(ListStore):
    def row(self, sequence: int, query: Tensor, layer: int, scale: float) -> Tensor:
        keys, values = self.content[sequence][:, layer, :, :-1].double().transpose(1, 2)
        return attend(query.double()[None], keys, values, scale)[0][0]


class OwnOrder(ListStore):
    """Rows in order of creation, whatever was asked for."""

    def attend(self, sequences: Sequence[int], queries: Tensor, layer: int, scale: float) -> Tensor:
        return super().attend(sorted(self.content)[: len(sequences)], queries, layer, scale)


def new(length: int) -> New:
    return New((0,) * length)


def append(sequence: int, length: int = 1) -> Append:
    return Append(sequence, (0,) * length)


FAULTS: list[tuple[type[ListStore], str, tuple[Operation, ...]]] = [
    (OneLayerOnly, "store/content", (new(1),)),
    (WritesNeighbour, "store/bystanders", (new(1), new(1))),
    (SharesTail, "store/bystanders", (new(1), Fork(0), append(0), append(1))),
    (NoLimit, "store/capacity", (new(1), new(1), Overflow(0, 1))),
    (OverwritesThenRaises, "store/capacity", (new(1), new(1), Overflow(0, 1))),
    (DropsOnRefusal, "store/atomic", (new(4), new(5))),
    (Leaks, "store/release", (new(8), Free(0), new(8))),
    (FreesTwice, "store/release", (new(1), new(1), Free(0), FreeAgain())),
    (RollsBackLess, "store/rollback", (new(2), Rollback(0, 1))),
    (RollsBackAnything, "store/rollback", (new(2), Rollback(0, 3))),
    (ReordersInPlace, "store/reorder", (new(1), new(1), Reorder((1, 0)))),
    (ForgetsLastKey, "store/attention", (new(2),)),
    (OwnOrder, "store/batch", (new(1), new(1), Attend((1,)))),
]


def run(store: type[ListStore], *operations: Operation, muted: frozenset[str] = frozenset()) -> Outcome:
    return run_trace(store, Trace(operations, CONFIG, KV_STORE), ALL, muted)


@pytest.mark.parametrize(
    ("store", "check", "operations"), FAULTS, ids=lambda value: getattr(value, "__name__", None)
)
def test_each_fault_breaks_its_check(
    store: type[ListStore], check: str, operations: tuple[Operation, ...]
) -> None:
    broken = run(store, *operations)
    assert broken.crash is None
    assert {violation.check for violation in broken.violations} == {check}
    assert broken.violations[0].operation == len(operations) - 1
    honest = run(ListStore, *operations)
    assert (honest.violations, honest.crash, honest.operations) == ([], None, len(operations))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_silent_on_the_honest_store_in_a_suite(dtype: str) -> None:
    evidence = audit(ListStore, dtype=dtype, seed=7)
    quiet = (Verdict.HOLDS, Verdict.NOT_EXERCISED)
    assert {one.check.id: one.message for one in evidence if one.verdict not in quiet} == {}
    assert sum(one.verdict is Verdict.HOLDS for one in evidence) >= 6


@pytest.mark.parametrize("store", [Leaks, SharesTail, OwnOrder], ids=lambda one: one.__name__)
def test_a_suite_finds_and_shrinks(store: type[ListStore]) -> None:
    check = next(check for known, check, _ in FAULTS if known is store)
    evidence = {one.check.id: one for one in audit(store, seed=3)}
    found = evidence[check]
    assert found.verdict is Verdict.REFUTED, found
    assert found.counterexample is not None
    assert len(found.counterexample["operations"]) <= 4
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


def test_payload_numbers_are_distinct_exact_and_traceable() -> None:
    for dtype, period in ((torch.float16, 2**14), (torch.bfloat16, 2**11)):
        assert scattered(5, period, dtype).unique().numel() == period
    numbers = scattered(0, 200_000, torch.float32)
    assert numbers.unique().numel() == 200_000
    assert 2**-7 <= numbers.abs().min() < numbers.abs().max() < 2
    payload = Payload(CONFIG)
    payload.draw(0, 0, 3)
    second = payload.draw(4, 7, 2)
    number = second[1, 1, 0, 1, 2].item()
    assert payload.origin(number) == "which was written for sequence 4, position 8, layer 1, value, head 0"
    assert payload.origin(0.0) == "which was never written"


@given(st.data(), st.frozensets(st.sampled_from(sorted(ALL))))
@settings(max_examples=50)
def test_traces_need_no_more_than_there_is(data: st.DataObject, capabilities: frozenset[str]) -> None:
    trace = data.draw(kv_store_traces(capabilities, dtype="float16", max_operations=5))
    assert needed_capabilities(trace) <= capabilities
    assert (trace.contract, trace.config.dtype) == (KV_STORE, "float16")
    assert isinstance(trace.operations[0], New)
    assert 2 <= trace.config.num_blocks <= 8
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


def implementation(store: type[ListStore], capabilities: frozenset[str] = ALL) -> Implementation:
    return Implementation("list", "0", {KV_STORE: store}, {KV_STORE: capabilities})


def audit(store: type[ListStore], *, seed: int, dtype: str = "float32") -> list[Any]:
    return KVStoreSuite(dtype=dtype).run(
        implementation(store),
        profile=Profile("test", examples=60, max_operations=12, seconds=60.0),
        seed=seed,
        selected=IDS,
        progress=lambda what, done, total: None,
    )
