"""Steps in which several requests are verified, and in which a request leaves before its copies are made."""

import msgspec
import pytest

from support.hunted_steps import DraftsOfTheLast, FreeWithDraftsLeaks, ReleasedDivergenceStillCopies
from tokenlaw.impl.paged import REFERENCE, PagedBlockManager
from tokenlaw.properties.block_manager_run import run_trace
from tokenlaw.properties.history import History
from tokenlaw.properties.running import Outcome
from tokenlaw.properties.shrink import shrink
from tokenlaw.properties.trace import (
    Append,
    Batch,
    Fork,
    New,
    Operation,
    Speculate,
    SpeculateBatch,
    Trace,
    decode,
)
from tokenlaw.properties.words import lines
from tokenlaw.spec.contracts import BLOCK_MANAGER, CacheConfig

ALL = REFERENCE.capabilities[BLOCK_MANAGER]
VERIFIED = SpeculateBatch((0, 1, 2), (5, 6, 7), (2, 3, 1), (1, 3, -1))
THREE: tuple[Operation, ...] = (New((0,)), New((1, 1)), Fork(0))


def run(factory: type[PagedBlockManager], *operations: Operation, **config: int) -> Outcome:
    return run_trace(factory, Trace(operations, CacheConfig(**config)), ALL)


def broken(factory: type[PagedBlockManager], *operations: Operation, **config: int) -> set[str]:
    right = run(PagedBlockManager, *operations, **config)
    assert (right.violations, right.crash) == ([], None)
    return {violation.check for violation in run(factory, *operations, **config).violations}


def test_each_keeps_its_own_drafts_or_leaves() -> None:
    outcome = run(PagedBlockManager, *THREE, VERIFIED, Append(0, (8,)))
    assert outcome.violations == []
    assert outcome.exercised["batch of drafts"] == 1
    assert (outcome.exercised["rejection"], outcome.exercised["full acceptance"]) == (1, 1)
    history = History()
    for operation in (*THREE, VERIFIED, Append(0, (8,))):
        history.apply(operation)
    assert [sequence.tokens for sequence in history.live] == [(0, 5, 8), (1, 1, 5, 6, 7)]
    assert [sequence.number for sequence in history.freed] == [2]


def test_drafts_that_are_mixed_up_or_leak_are_seen() -> None:
    assert "kv/accept" in broken(DraftsOfTheLast, *THREE, SpeculateBatch((0, 1), (5, 6), (1, 2), (1, 0)))
    leaving = SpeculateBatch((0,), (5, 6), (2,), (-1,))
    assert "kv/partition" in broken(FreeWithDraftsLeaks, *THREE, leaving, block_size=1)


class AcceptsOneMore(PagedBlockManager):
    def accept(self, sequence: int, count: int) -> None:
        super().accept(sequence, count + 1)


def test_a_wrong_length_behind_a_verification_is_the_affair_of_one_check() -> None:
    for verified in (Speculate(0, (1, 2), 1), SpeculateBatch((0,), (1, 2), (2,), (1,))):
        found = broken(AcceptsOneMore, New((0,)), verified)
        assert "kv/accept" in found
        assert "kv/waste" not in found


class LosesWhatItAccepts(PagedBlockManager):
    def accept(self, sequence: int, count: int) -> None:
        super().accept(sequence, count)
        table = self._record(sequence).table
        table[-1] = self._blocks.take(1)[0]


def test_accepted_drafts_are_looked_for_where_they_were_written() -> None:
    found = run(LosesWhatItAccepts, New((0,)), Speculate(0, (1, 2), 2)).violations
    assert ("kv/accept", 1) in {(violation.check, violation.position) for violation in found}


def test_a_copy_of_who_left_is_made_into_nobodys_block() -> None:
    operations = (New((0,)), Fork(0), New((1,)), Batch((0, 2), (1, 2), released=0))
    assert "kv/write-shared" in broken(ReleasedDivergenceStillCopies, *operations)


def test_what_does_not_fit_is_left_as_it_was() -> None:
    two = (New((0,)), New((1,)), SpeculateBatch((0, 1), (5,), (1,), (1,)))
    outcome = run(PagedBlockManager, *two, num_blocks=3, block_size=1)
    assert outcome.violations == []
    assert (outcome.exercised["out of blocks"], outcome.exercised["batch of drafts"]) == (1, 0)


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        (
            VERIFIED,
            "one step: draft tokens 5 6 for sequence 0; draft tokens 5 6 7 for sequence 1; draft token 5 for "
            "sequence 2; keep 1 of 0; keep 3 of 1; free sequence 2",
        ),
        (SpeculateBatch((), (5,), (1,), (1,)), "one step: nothing to speculate on"),
        (SpeculateBatch((0,), (), (1,), (1,)), "one step: nothing to speculate on"),
    ],
)
def test_in_words_and_in_json(operation: SpeculateBatch, told: str) -> None:
    trace = Trace((*THREE, operation))
    assert lines(trace)[-1] == told
    assert decode(msgspec.json.encode(trace), "here") == trace
    assert run(PagedBlockManager, *trace.operations).violations == []


def test_it_shrinks_to_one_request_where_one_is_enough() -> None:
    def fails(trace: Trace) -> bool:
        return any(isinstance(one, Speculate | SpeculateBatch) for one in trace.operations)

    assert shrink(Trace((*THREE, VERIFIED)), fails).operations == (Speculate(0, (0,), 0),)
