"""Faults of caches that a hunt found unseen: a phrase shows each now, and so does a whole run."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from support.hunted_host import (
    EvictTakesWaiting,
    HostReleasedTwice,
    RefusedSwapOutKeepsTheHost,
    ResetSkipsWaiting,
    SecondSwapOutForgetsTheFirst,
    SharedHostBlocksUncounted,
)
from support.hunted_keys import (
    ForkRenewsTheEpoch,
    KeepsKeysOfNothing,
    KeyOfDigits,
    KeyOfEighteenBits,
    KeyOfOneAncestor,
    KeyOfSixteenAncestors,
    NamespaceOfEightCharacters,
)
from support.hunted_steps import (
    CopiesKeyedBySource,
    DraftsOfTheLast,
    FreeWithDraftsLeaks,
    HandlesOfARing,
    LongDivergenceInPlace,
    ReferencesInFourBits,
    ReleasedDivergenceStillCopies,
    ReleasedOnceMore,
    StepFreesWhatWasHit,
)
from support.hunted_stores import HUNTED as STORES
from tokenlaw.impl.paged import REFERENCE, PagedBlockManager
from tokenlaw.properties.block_manager_run import run_trace
from tokenlaw.properties.block_manager_suite import BlockManagerSuite
from tokenlaw.properties.history import History
from tokenlaw.properties.kv_store_suite import KVStoreSuite
from tokenlaw.properties.phrases import PHRASES
from tokenlaw.properties.scene import Scene
from tokenlaw.properties.simpler import with_tokens
from tokenlaw.properties.strategies import VOCABULARIES, perform
from tokenlaw.properties.trace import Append, Fork, Free, New, Operation, Rollback, SwapIn, SwapOut, Trace
from tokenlaw.spec.announcing import listening
from tokenlaw.spec.contracts import BLOCK_MANAGER, KV_STORE, CacheConfig, Implementation
from tokenlaw.spec.suites import PROFILES
from tokenlaw.spec.verdicts import Evidence

ALL = REFERENCE.capabilities[BLOCK_MANAGER]
MANAGERS = [
    ("speculate in a batch", FreeWithDraftsLeaks, "kv/partition"),
    ("speculate in a batch", DraftsOfTheLast, "kv/accept"),
    ("batch of sharers", ReleasedDivergenceStillCopies, "kv/write-shared"),
    ("churn", KeyOfDigits, "kv/hit"),
    ("cross two prefixes", KeyOfEighteenBits, "kv/hit"),
    ("two namespaces", NamespaceOfEightCharacters, "kv/hit"),
    ("begin differently", KeyOfOneAncestor, "kv/hit"),
    ("preempt several", SecondSwapOutForgetsTheFirst, "kv/content"),
    ("preempt several", SharedHostBlocksUncounted, "kv/content"),
    ("host too small", RefusedSwapOutKeepsTheHost, "kv/partition"),
    ("preempt several", HostReleasedTwice, "kv/content"),
    ("reset", ResetSkipsWaiting, "kv/hit"),
    ("evict", EvictTakesWaiting, "kv/partition"),
    ("abort", ReleasedOnceMore, "kv/release"),
    ("batch of sharers", CopiesKeyedBySource, "kv/content"),
    ("fork and diverge", LongDivergenceInPlace, "kv/write-shared"),
    ("fork many", ReferencesInFourBits, "kv/refcount"),
    ("fork many", HandlesOfARing, "kv/bystanders"),
    ("write late", StepFreesWhatWasHit, "kv/partition"),
    ("replace a cached block", KeepsKeysOfNothing, "kv/hit"),
    ("change weights", ForkRenewsTheEpoch, "kv/epoch"),
]
"""The phrase that was made for a fault, the fault, and a check that it breaks."""

BY_NAME = {phrase.name: phrase for phrase in PHRASES}


def traces_of(phrase: str, runs: int) -> list[Trace]:
    """Traces of one phrase, twice in a row, with every vocabulary."""
    made = []
    for seed in range(runs):
        config = CacheConfig(num_blocks=8, block_size=2)
        scene = Scene(config, ALL, History(), random.Random(seed))
        operations = perform(BY_NAME[phrase], scene) + perform(BY_NAME[phrase], scene)
        ids = VOCABULARIES[seed % len(VOCABULARIES)]
        trace = Trace(tuple(operations), config)
        made.append(with_tokens(trace, lambda tokens, ids=ids: tuple(ids[token] for token in tokens)))
    return made


@pytest.mark.parametrize(("phrase", "fault", "check"), MANAGERS)
def test_a_phrase_shows_the_fault_that_it_is_for(phrase: str, fault: Any, check: str) -> None:
    traces = traces_of(phrase, 300)
    outcomes = (run_trace(fault, trace, ALL) for trace in traces)
    assert any(check == violation.check for outcome in outcomes for violation in outcome.violations)
    for trace in traces[:60]:
        outcome = run_trace(PagedBlockManager, trace, ALL)
        assert (outcome.violations, outcome.crash) == ([], None)


class _FoundError(BaseException):
    """Ends a run at the first refutation."""


def refuted(suite: Any, contract: str, factory: Callable[[CacheConfig], Any], seed: int) -> bool:
    """Whether a whole run of the default profile refutes anything."""

    def keep(found: Evidence) -> None:
        raise _FoundError

    try:
        with listening(lambda _: None, keep):
            suite.run(
                Implementation("hunted", "0", {contract: factory}),
                profile=PROFILES["dev"],
                seed=seed,
                selected=frozenset(check.id for check in suite.checks),
                progress=lambda *_: None,
            )
    except _FoundError:
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fault", [*(fault for _, fault, _ in MANAGERS), KeyOfSixteenAncestors])
def test_a_whole_run_shows_each_fault_of_a_manager(fault: Any, seed: int) -> None:
    assert refuted(BlockManagerSuite(), BLOCK_MANAGER, fault, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fault", [fault for fault, _ in STORES])
def test_a_whole_run_shows_each_fault_of_a_store(fault: Any, seed: int) -> None:
    assert refuted(KVStoreSuite(), KV_STORE, fault, seed)


def run(factory: Any, *operations: Operation, **config: int) -> Any:
    return run_trace(factory, Trace(operations, CacheConfig(**config)), ALL)


class RaisesForNothing(PagedBlockManager):
    def free(self, sequence: int) -> None:
        if not self._record(sequence).tokens:
            raise ZeroDivisionError("no tokens")
        super().free(sequence)


def test_a_sequence_that_was_rolled_back_to_nothing_is_one_still() -> None:
    freed = run(RaisesForNothing, New((0, 1)), Rollback(0, 2), Free(0))
    assert "no tokens" in (freed.crash or "")
    again = (New((0,) * 4), Rollback(0, 4), Append(0, (1,) * 4 + (2,) * 4), New((0,) * 4 + (2,) * 4 + (3,)))
    assert run(PagedBlockManager, *again).violations == []
    assert run(KeepsKeysOfNothing, *again).violations[0].check == "kv/hit"


class CopiesAtRollback(PagedBlockManager):
    """Correct: a tail that may not be written is copied when it becomes one."""

    def rollback(self, sequence: int, count: int) -> None:
        super().rollback(sequence, count)
        table, length = self._record(sequence).table, self.num_tokens(sequence)
        if length % self._block_size and self._blocks.is_shared(table[-1]):
            table[-1] = self._blocks.copy_on_write(table[-1])


def test_a_block_that_a_rollback_frees_and_copies_into_holds_what_was_copied() -> None:
    operations = (New((0, 0)), Fork(0), Append(1, (0,)), Rollback(1, 2), Append(1, (1,)))
    outcome = run(CopiesAtRollback, *operations, num_blocks=2, block_size=2)
    assert (outcome.violations, outcome.crash, outcome.exercised["copy"]) == ([], None, 1)


def test_what_waits_to_be_copied_to_the_host_is_final_whatever_its_other_holder_forgets() -> None:
    operations = (New((0, 0, 0)), Fork(0), SwapOut(0), Rollback(0, 1), SwapIn(0), Append(0, (0,)))
    assert run(PagedBlockManager, *operations, num_blocks=2).violations == []
