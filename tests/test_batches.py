"""Batches: several calls of one step before its copies are applied, as schedulers make them."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import pytest

import tokenlaw
from tokenlaw.impl.paged import REFERENCE, PagedBlockManager
from tokenlaw.impl.paged.copies import CopyQueue
from tokenlaw.impl.paged.pool import BlockPool
from tokenlaw.properties.block_manager_run import run_trace
from tokenlaw.properties.history import History
from tokenlaw.properties.trace import Append, Batch, Fork, Free, New, Operation, Trace, decode
from tokenlaw.properties.words import lines
from tokenlaw.spec.contracts import BLOCK_MANAGER, CacheConfig
from tokenlaw.spec.suites import PROFILES

ALL = REFERENCE.capabilities[BLOCK_MANAGER]
PAIRS: tuple[Operation, ...] = (New((0,)), Fork(0), New((1,)), Fork(2))
"""Sequences 0 and 1 share a partial block, and 2 and 3 another."""


class FreeSources(CopyQueue):
    """The fault: the source of a waiting copy may be handed out again before the copy is made."""

    def __init__(self, pools: dict[str, BlockPool]) -> None:
        super().__init__(pools)
        for pool in pools.values():
            pool.hold = pool.unhold = lambda block: None


def free_sources(config: CacheConfig) -> PagedBlockManager:
    manager = PagedBlockManager(config)
    blocks = manager._blocks
    blocks.copies = FreeSources({"device": blocks.device, "host": blocks.host})
    return manager


def test_copies_of_a_step_may_share_nothing_when_a_source_is_released_in_it() -> None:
    trace = Trace((*PAIRS, Batch((0, 2), (2,), released=1)), CacheConfig(num_blocks=3, block_size=2))
    assert run_trace(PagedBlockManager, trace, ALL).violations == []
    broken = {violation.check for violation in run_trace(free_sources, trace, ALL).violations}
    assert "kv/copy-order" in broken


def test_an_audit_finds_sources_that_are_not_held() -> None:
    report = tokenlaw.check_block_manager(
        free_sources, capabilities=ALL - {"swap", "lookahead"}, only="kv/copy-order", raises=False
    )
    (row,) = report.evidence
    assert row.verdict is tokenlaw.Verdict.REFUTED
    assert row.counterexample is not None
    assert len(row.counterexample["operations"]) <= 6


def test_a_batch_writes_what_it_says() -> None:
    trace = Trace((*PAIRS, Batch((0, 1, 2, 4), (5, 6)), Append(0, (7,)), Free(1)))
    outcome = run_trace(PagedBlockManager, trace, ALL)
    assert outcome.violations == []
    assert (outcome.exercised["batch"], outcome.exercised["several copies"]) == (1, 1)
    history = History()
    for operation in trace.operations:
        history.apply(operation)
    assert [sequence.tokens for sequence in history.live] == [(0, 5, 7), (1, 5), (1,)]


def test_a_batch_that_fits_in_part_goes_on_with_that_part() -> None:
    full = (New((0, 1)), New((1, 0)), Batch((0, 1), (2,)), Free(0), Batch((0,), (2,)))
    outcome = run_trace(PagedBlockManager, Trace(full, CacheConfig(num_blocks=3, block_size=2)), ALL)
    assert outcome.violations == []
    assert outcome.exercised["out of blocks"] == 1


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        (
            Batch((0, 2), (8, 9), released=1),
            "one step: append token 8 to sequence 0; free sequence 1; append token 9 to sequence 2; "
            "then copy and write",
        ),
        (
            Batch((2, 0), (8, 9), released=0),
            "one step: append token 8 to sequence 2; append token 9 to sequence 0; free sequence 0; "
            "then copy and write",
        ),
        (Batch((), (8,), released=1), "one step: nothing to append to"),
    ],
)
def test_a_batch_in_words_and_in_json(operation: Batch, told: str) -> None:
    trace = Trace((*PAIRS, operation))
    assert lines(trace)[-1] == told
    import msgspec

    assert decode(msgspec.json.encode(trace), "here") == trace


class Republishing(PagedBlockManager):
    """Correct: sources of waiting copies may be written anew in the same step, after the copies are made."""

    copies_in_order = True


def test_a_source_that_is_handed_out_again_is_copied_as_it_was() -> None:
    def in_order(config: CacheConfig) -> PagedBlockManager:
        manager = Republishing(config)
        blocks = manager._blocks
        blocks.copies = FreeSources({"device": blocks.device, "host": blocks.host})
        return manager

    grown = (New((0, 0)), New((0, 0, 0)), Fork(1), Batch((1, 0), (0,), released=2))
    outcome = run_trace(in_order, Trace(grown, CacheConfig(num_blocks=4, block_size=2)), ALL)
    assert outcome.violations == []
    assert outcome.exercised["copy"] == 1


class PublishesAtScheduling(PagedBlockManager):
    """Correct without ``commit``: tokens count as written when they are scheduled."""

    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        handle = super().allocate(tokens, namespace)
        super().commit(handle, len(tokens))
        return handle

    def append(self, sequence: int, tokens: Sequence[int]) -> None:
        super().append(sequence, tokens)
        super().commit(sequence, self.num_tokens(sequence))

    def accept(self, sequence: int, count: int) -> None:
        super().accept(sequence, count)
        super().commit(sequence, self.num_tokens(sequence))


@pytest.mark.parametrize(
    ("seed", "examples"), [(0, 60), pytest.param(1, PROFILES["dev"].examples, marks=pytest.mark.slow)]
)
def test_a_manager_without_commit_is_not_asked_for_batches(
    seed: int, examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROFILES, "dev", replace(PROFILES["dev"], examples=examples))
    capabilities = ALL - {"commit", "in-flight", "window", "lookahead"}
    report = tokenlaw.check_block_manager(
        PublishesAtScheduling, capabilities=capabilities, seed=seed, controls=False
    )
    assert {row.check.id for row in report.with_verdict(tokenlaw.Verdict.NOT_SUPPORTED)} == {
        "kv/in-flight",
        "kv/window",
    }
