"""What running a trace says: violations, muting, crashes, read-backs, messages."""

from collections.abc import Hashable, Sequence
from typing import Any

import pytest

from tokenlaw.impl.faults.kv_copies import LosesCopies
from tokenlaw.impl.faults.kv_innocents import BlockForTheNextToken, ForgetsEverything
from tokenlaw.impl.faults.kv_pool import FreeForgetsTail
from tokenlaw.impl.faults.kv_sharing import ForkWithoutReferences, ReversesNeighbour
from tokenlaw.impl.paged import REFERENCE, PagedBlockManager
from tokenlaw.properties.block_manager_run import needed_capabilities, run_trace
from tokenlaw.properties.full_pool import HINT
from tokenlaw.properties.running import Outcome
from tokenlaw.properties.trace import (
    Append,
    Batch,
    Evict,
    Fork,
    Free,
    LateWrite,
    New,
    Operation,
    Trace,
)
from tokenlaw.spec.contracts import BLOCK_MANAGER, BlockCopy, CacheConfig, OutOfBlocks

ALL = REFERENCE.capabilities[BLOCK_MANAGER]


def run(manager: type[PagedBlockManager], operations: tuple[Operation, ...], config: CacheConfig) -> Outcome:
    return run_trace(manager, Trace(operations, config), ALL)


def test_muted_violations_do_not_stop_the_run() -> None:
    trace = Trace((New((1, 2)), Free(0), New((3,))))
    stopped = run_trace(FreeForgetsTail, trace, ALL)
    assert {violation.operation for violation in stopped.violations} == {1}
    assert stopped.operations == 2
    muted = run_trace(FreeForgetsTail, trace, ALL, muted=frozenset({"kv/partition", "kv/refcount"}))
    assert (muted.violations, muted.operations) == ([], 3)


def test_checks_without_their_capability_are_silent() -> None:
    trace = Trace((New((1, 2)), Fork(0)))
    assert run_trace(ForkWithoutReferences, trace, ALL - {"ref-counts"}).violations == []


def test_a_block_that_is_taken_ahead_in_a_step_may_lose_its_key() -> None:
    """The second append of the step is refused, because the first one took a cached block ahead."""
    config = CacheConfig(num_blocks=5, block_size=2, window=2)
    operations = (New((0,)), Fork(0), New((0, 0, 0, 0)), Fork(0), Batch((0, 1), (0,)))
    outcome = run_trace(BlockForTheNextToken, Trace(operations, config), ALL)
    assert (outcome.violations, outcome.crash) == ([], None)
    assert outcome.exercised["eviction"] == 1


FORGOTTEN = Trace(
    (New((0,) * 9, "b"), New((0,) * 5), LateWrite(0, (0,) * 4, (0,))),
    CacheConfig(num_blocks=5, block_size=4, window=3),
)
"""The append of the step in flight takes a cached block, then the new prompt is refused."""


def test_keys_that_the_first_call_of_an_operation_dropped_are_not_held_against_a_refused_one() -> None:
    outcome = run_trace(ForgetsEverything, FORGOTTEN, ALL)
    assert (outcome.violations, outcome.crash) == ([], None)
    assert (outcome.exercised["late write"], outcome.exercised["out of blocks"]) == (1, 1)
    assert outcome.exercised["eviction"] == 1


def test_a_refused_call_of_a_step_in_flight_must_keep_keys_and_free_blocks() -> None:
    class Forgets(PagedBlockManager):
        def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
            try:
                return super().allocate(tokens, namespace)
            except OutOfBlocks:
                self.reset_cache()
                raise

    class Leaks(PagedBlockManager):
        lost = 0

        def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
            try:
                return super().allocate(tokens, namespace)
            except OutOfBlocks:
                self.lost = 1
                raise

        def num_free_blocks(self) -> int:
            return super().num_free_blocks() + self.lost

    for manager in (Forgets, Leaks):
        violations = run_trace(manager, FORGOTTEN, ALL).violations
        assert {(one.check, one.operation) for one in violations} >= {("kv/atomic", 2)}, manager


def test_message_names_tokens_and_writers() -> None:
    [violation] = run(LosesCopies, (New((1, 2)), Fork(0), Append(0, (9,))), CacheConfig()).violations
    assert violation.expected == "token 1 after [] (sequence 0)"
    assert violation.found == "nothing (the slot was never written), in slot 0 of block 1"
    assert (violation.sequence, violation.position, violation.operation) == (0, 0, 2)


def test_exception_of_a_legal_call_is_a_crash_with_its_traceback() -> None:
    class Fails(PagedBlockManager):
        def append(self, sequence: int, tokens: Sequence[int]) -> None:
            raise RuntimeError("the pool is on fire")

    outcome = run(Fails, (New((1,)), Append(0, (2,)), Free(0)), CacheConfig())
    assert outcome.violations == []
    assert outcome.crash is not None
    assert "in append" in outcome.crash
    assert outcome.crash.endswith(f"RuntimeError: the pool is on fire\n{HINT}")
    assert outcome.operations == 1


@pytest.mark.parametrize(
    ("member", "answer"),
    [("block_table", None), ("block_table", ["0"]), ("num_free_blocks", "3"), ("num_cached_tokens", None)],
)
def test_nonsense_from_an_observer_is_a_crash(member: str, answer: object) -> None:
    class Fails(PagedBlockManager):
        def __init__(self, config: CacheConfig) -> None:
            super().__init__(config)
            setattr(self, member, lambda *_: answer)

    outcome = run(Fails, (New((1,)),), CacheConfig())
    assert outcome.crash is not None
    assert "TypeError" in outcome.crash


def test_fault_that_only_a_read_back_sees_is_found_at_the_next_one() -> None:
    operations = (
        New((1,) * 5),
        New((2,)),
        Append(1, (3,)),
        Append(1, (3,)),
        Append(1, (3,)),
        Append(1, (3,)),
    )
    outcome = run_trace(ReversesNeighbour, Trace(operations), ALL, read_back_every=5)
    assert {violation.operation for violation in outcome.violations} == {4}


def test_needed_capabilities_of_a_trace() -> None:
    assert needed_capabilities(Trace((New((1,)), Append(0, (1,)), Free(0)))) == frozenset()
    operations = (New((1,), "a"), Fork(0), LateWrite(0, (1,), (2,)))
    assert needed_capabilities(Trace(operations)) == {"namespaces", "fork", "in-flight", "commit"}


def test_a_factory_that_refuses_a_configuration_is_a_crash() -> None:
    def refuses(config: CacheConfig) -> PagedBlockManager:
        raise ValueError(f"{config.num_blocks} blocks are too few")

    outcome = run_trace(refuses, Trace((New((1,)),)), ALL)
    assert outcome.crash is not None
    assert outcome.crash.endswith("ValueError: 16 blocks are too few")


@pytest.mark.parametrize(
    "junk", [None, 7, [None], ["0 -> 1"], [BlockCopy(0, 1, "tape")], [BlockCopy(0.5, 1)]], ids=repr
)
def test_junk_in_place_of_copies_is_a_crash(junk: Any) -> None:
    class Junk(PagedBlockManager):
        def pending_copies(self) -> Any:
            return junk

    outcome = run(Junk, (New((1,)), Append(0, (2,))), CacheConfig())
    assert outcome.crash is not None
    assert outcome.violations == []


class SaysThatItEvicts(PagedBlockManager):
    def evict(self, count: int) -> int:
        return count


def test_an_eviction_has_happened_when_a_key_is_gone() -> None:
    trace = Trace((New((0,) * 4), Free(0), Evict(1)))
    assert run_trace(PagedBlockManager, trace, ALL).exercised["eviction"] == 1
    assert run_trace(SaysThatItEvicts, trace, ALL).exercised["eviction"] == 0
    unseen = ALL - {"cached-keys"}
    assert run_trace(SaysThatItEvicts, trace, unseen).exercised["eviction"] == 1
