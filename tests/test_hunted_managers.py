"""Faults of managers that only a deliberate phrase or a waiting copy shows; correct designs that differ."""

import random
from collections.abc import Callable, Sequence

import pytest

from tokenlaw.impl.faults.kv_publishing import CommitIgnoresLength, CommitSurvivesRollback
from tokenlaw.impl.faults.kv_sharing import ForkSharesLookahead
from tokenlaw.impl.faults.store_moves import OrderedQueue
from tokenlaw.impl.paged import REFERENCE, PagedBlockManager
from tokenlaw.impl.paged.sequence import SequenceRecord
from tokenlaw.properties.block_manager_run import run_trace
from tokenlaw.properties.history import History
from tokenlaw.properties.phrases import PHRASES
from tokenlaw.properties.running import Outcome
from tokenlaw.properties.scene import Scene
from tokenlaw.properties.strategies import perform
from tokenlaw.properties.trace import (
    Append,
    Chunked,
    Fork,
    Free,
    FreeAgain,
    New,
    Operation,
    Rollback,
    SwapIn,
    SwapOut,
    Trace,
)
from tokenlaw.spec.contracts import BLOCK_MANAGER, BlockCopy, CacheConfig, OutOfBlocks

ALL = REFERENCE.capabilities[BLOCK_MANAGER]


class KeepsTheChainOfKeys(PagedBlockManager):
    """After a rollback later blocks are published behind the keys of the blocks that are gone."""

    def _truncate(self, record: SequenceRecord, length: int, blocks: int) -> None:
        keys = list(record.keys)
        super()._truncate(record, length, blocks)
        record.keys = keys


class ForksIntoTheDefaultNamespace(PagedBlockManager):
    def fork(self, sequence: int) -> int:
        child = super().fork(sequence)
        record = self._record(child)
        record.root, record.keys = self._blocks.cache.root("", record.epoch), []
        return child


class SwapsIntoTheNewEpoch(PagedBlockManager):
    def swap_in(self, sequence: int) -> None:
        super().swap_in(sequence)
        record = self._record(sequence)
        record.epoch = self._epoch
        record.root, record.keys = self._blocks.cache.root("", self._epoch), []


class LeaksOnTheHost(PagedBlockManager):
    def free_host(self) -> None:
        if self._blocks.host.available():
            self._blocks.host.take()

    def pending_copies(self) -> list[BlockCopy]:
        copies = super().pending_copies()
        if any(copy.source_tier == "host" for copy in copies):
            self.free_host()
        return copies


class LendsSourcesOfCopies(PagedBlockManager):
    """A block is handed out while the copy of what it holds still waits."""

    def __init__(self, config: CacheConfig) -> None:
        super().__init__(config)
        self._blocks.copies.__class__ = OrderedQueue


MISSED = [
    ("replace a cached block", KeepsTheChainOfKeys, "kv/hit"),
    ("fork in a namespace", ForksIntoTheDefaultNamespace, "kv/hit"),
    ("change weights", SwapsIntoTheNewEpoch, "kv/epoch"),
    ("swap all again", LeaksOnTheHost, "kv/partition"),
    ("swap", LendsSourcesOfCopies, "kv/content"),
    ("write in chunks", CommitIgnoresLength, "kv/publish"),
    ("write in chunks", CommitSurvivesRollback, "kv/publish"),
    ("fork behind a rejection", ForkSharesLookahead, "kv/write-shared"),
]


def found_by(
    phrase_name: str, factory: Callable[[CacheConfig], PagedBlockManager], runs: int = 200
) -> set[str]:
    """Checks that break in runs of one phrase, twice in a row."""
    phrase = next(phrase for phrase in PHRASES if phrase.name == phrase_name)
    checks: set[str] = set()
    for seed in range(runs):
        config = CacheConfig(num_blocks=8, block_size=2)
        scene = Scene(config, ALL, History(), random.Random(seed))
        operations = perform(phrase, scene) + perform(phrase, scene)
        outcome = run_trace(factory, Trace(tuple(operations), config), ALL)
        assert outcome.crash is None
        checks |= {violation.check for violation in outcome.violations}
    return checks


@pytest.mark.parametrize(("phrase", "factory", "check"), MISSED)
def test_phrase_reaches_the_fault_that_it_is_for(
    phrase: str, factory: type[PagedBlockManager], check: str
) -> None:
    assert check in found_by(phrase, factory)
    assert found_by(phrase, PagedBlockManager, runs=50) == set()


def run(factory: Callable[[CacheConfig], object], *operations: Operation, **config: int) -> Outcome:
    return run_trace(factory, Trace(operations, CacheConfig(**config)), ALL)


def test_copies_of_a_swap_out_wait_for_those_of_the_next_operation() -> None:
    operations = (New((1, 2)), New((3,)), SwapOut(1), SwapOut(0), SwapIn(1), SwapIn(0))
    assert run(PagedBlockManager, *operations, num_blocks=2, block_size=2).violations == []
    broken = run(LendsSourcesOfCopies, *operations, num_blocks=2, block_size=2)
    assert {violation.check for violation in broken.violations} & {"kv/copy-order", "kv/content"}


def test_a_full_host_may_refuse() -> None:
    class HasASmallHost(PagedBlockManager):
        def swap_out(self, sequence: int) -> None:
            if len(self._record(sequence).table) > 1:
                raise OutOfBlocks("the host has one block")
            super().swap_out(sequence)

    outcome = run(
        HasASmallHost, New((1, 2)), SwapOut(0), SwapIn(0), Append(0, (3,)), SwapOut(0), block_size=2
    )
    assert outcome.violations == []


class TakesTwoAhead(PagedBlockManager):
    """Keeps blocks for two further tokens, which a fork shares and an append replaces."""

    def __init__(self, config: CacheConfig) -> None:
        super().__init__(config, lookahead=2)

    def _blocks_for(self, length: int) -> int:
        return super()._blocks_for(length + self.lookahead)

    def append(self, sequence: int, tokens: Sequence[int]) -> None:
        if self.num_free_blocks() < 2:
            raise OutOfBlocks("a copy of the tail, and a block in the place of the shared one")
        super().append(sequence, tokens)


def test_shared_lookahead_blocks_may_have_to_be_replaced() -> None:
    outcome = run(TakesTwoAhead, New((1,)), Fork(0), Append(0, (2,)), num_blocks=3, block_size=2)
    assert outcome.violations == []
    assert outcome.exercised["divergence"] == 0


class RefusesRollbacks(PagedBlockManager):
    def rollback(self, sequence: int, count: int) -> None:
        if self.window is not None and count:
            raise RuntimeError("a ring forgets")
        super().rollback(sequence, count)


def test_any_rollback_may_be_refused_under_a_window() -> None:
    phrase = next(phrase for phrase in PHRASES if phrase.name == "cross the window")
    for seed in range(50):
        config = CacheConfig(window=5)
        operations = perform(phrase, Scene(config, ALL, History(), random.Random(seed)))
        outcome = run_trace(RefusesRollbacks, Trace(tuple(operations), config), ALL)
        assert (outcome.violations, outcome.crash) == ([], None)


class Incomparable:
    """A handle that can't be compared, like an array."""

    __hash__ = object.__hash__

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")


class GivesOddHandles:
    def __init__(self, config: CacheConfig) -> None:
        self.manager = PagedBlockManager(config)
        self.num_free_blocks = self.manager.num_free_blocks

    def allocate(self, tokens: Sequence[int]) -> Incomparable:
        return Incomparable(self.manager.allocate(tokens))

    def block_table(self, handle: Incomparable) -> list[int]:
        return self.manager.block_table(handle.number)

    def free(self, handle: Incomparable) -> None:
        self.manager.free(handle.number)


def test_handles_that_cannot_be_compared_are_the_managers_fault() -> None:
    trace = Trace((New((1,)), New((2,)), Free(0), FreeAgain()))
    outcome = run_trace(GivesOddHandles, trace, frozenset())
    assert outcome.violations == []
    assert outcome.crash is not None
    assert "ambiguous" in outcome.crash


def test_what_the_window_drops_is_judged_when_a_part_is_committed() -> None:
    """With a window of 2, the second chunk of [0, 0, 0, 0] still needs the position before it."""
    for aborted in (False, True):
        operation = Chunked((0,) * 4, 2, aborted=aborted)
        trace = Trace((operation,), CacheConfig(num_blocks=4, block_size=1, window=2))
        assert run_trace(PagedBlockManager, trace, ALL).violations == []
        broken = run_trace(CommitIgnoresLength, trace, ALL).violations
        assert ("kv/window", 1) in {(violation.check, violation.position) for violation in broken}


def test_slots_that_a_rollback_left_count_as_unwritten_until_their_chunk_is_written() -> None:
    operations = (New((0, 1)), Rollback(0, 2), Chunked((1, 0), 1, 0))
    outcome = run(CommitSurvivesRollback, *operations, num_blocks=1, block_size=2)
    [publish] = [violation for violation in outcome.violations if violation.check == "kv/publish"]
    assert publish.found == (
        "slot 1 holds token 1 after [0] (written for sequence 0), which is a draft or left over from before"
    )
    assert run(PagedBlockManager, *operations, num_blocks=1, block_size=2).violations == []
    assert outcome.exercised["partial commit"] == 1
