"""Frames of KV stores: which row lies in which slot, what reads back wrong there, and why."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from torch import Tensor

from support.broken_stores import NoLimit, WritesNeighbour
from support.list_store import CONFIG, ListStore, append, audit, implementation, new
from support.pages import store_frames
from tokenlaw.diagram_words import erased, name_of
from tokenlaw.impl.faults import STORE_FAULTS
from tokenlaw.impl.faults.wrappers import StaleRow
from tokenlaw.impl.paged.store import PagedKVStore
from tokenlaw.impl.reference import REFERENCE
from tokenlaw.properties.kv_store_frames import film
from tokenlaw.properties.kv_store_suite import KVStoreSuite
from tokenlaw.properties.trace import Fork, Free, Operation, Overflow, Reorder, Rollback, Trace, to_data
from tokenlaw.spec.capabilities import probe_capabilities
from tokenlaw.spec.contracts import KV_STORE
from tokenlaw.spec.frames import Copy, Frame, Misread, Row, Wrong
from tokenlaw.spec.verdicts import Verdict

DIVERGENCE = (new(3), Fork(0), append(1), Free(0))


def fault(name: str) -> Any:
    return STORE_FAULTS[name].make


def rows(frame: Frame) -> list[list[str]]:
    """What stands in the slots of each block."""
    return [
        ["." if slot.token is None else name_of(slot.token) for slot in one.slots] for one in frame.blocks
    ]


def stale_row(config: Any) -> Any:
    return StaleRow(PagedKVStore(config), config)


class KeepsOldRows(ListStore):
    """What was rolled back is still there when a sequence grows again."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.old: list[Tensor] = []

    def rollback(self, sequence: int, count: int) -> None:
        self.old = self.content[sequence]
        super().rollback(sequence, count)

    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        super().append(sequence, keys, values)
        if self.old:
            self.content[sequence] = self.old


class ReadsFirstLayer(ListStore):
    def read(self, sequence: int, layer: int) -> tuple[Tensor, Tensor]:
        return super().read(sequence, 0)


def test_each_slot_holds_the_row_that_its_table_expects() -> None:
    """Block size 2: the third row is shared with the fork until that writes, which takes a copy of it."""
    _, forked, diverged, freed = store_frames(PagedKVStore, *DIVERGENCE)
    assert [one.table for one in forked.sequences] == [(0, 1), (0, 1)]
    assert rows(forked) == [["0:0", "0:1"], ["0:2", "."], [".", "."], [".", "."]]
    assert [one.table for one in diverged.sequences] == [(0, 1), (0, 2)]
    assert rows(diverged) == [["0:0", "0:1"], ["0:2", "."], ["0:2", "1:3"], [".", "."]]
    assert diverged.sequences[1].tokens == (Row(0, 0, 1), Row(0, 1, 1), Row(0, 2, 1), Row(1, 3, 3))
    assert diverged.copies == (Copy(1, 2),)
    written = [[slot.written for slot in block.slots] for block in diverged.blocks]
    assert written == [[False, False], [False, False], [True, True], [False, False]]
    assert [block.released for block in freed.blocks] == [False, True, False, False]
    assert [slot.final for slot in freed.blocks[1].slots] == [False, False]
    assert not any(sequence.wrong for sequence in freed.sequences)


@pytest.mark.parametrize(
    ("make", "operations", "sequence", "misread", "slot"),
    [
        (fault("keyed_by_position"), (new(1), new(1)), 0, Misread(0, Wrong.OTHER, Row(1, 0, 2)), (0, 0)),
        (fault("clears_shared_blocks"), (new(3), Fork(0), Free(0)), 1, Misread(0, Wrong.LOST), (0, 0)),
        (fault("copies_keys_only"), DIVERGENCE, 1, Misread(2, Wrong.VALUES, Row(0, 2, 1)), (2, 0)),
        (fault("layers_share_memory"), (new(1),), 0, Misread(0, Wrong.KEYS, Row(0, 0, 1)), (0, 0)),
        (stale_row, (new(2), Fork(0), append(1)), 1, Misread(2, Wrong.MOVED, Row(0, 1, 1)), (1, 0)),
        (
            fault("rolls_back_one_less"),
            (new(3), Rollback(0, 1)),
            0,
            Misread(2, Wrong.BEYOND, Row(0, 2, 1)),
            (1, 0),
        ),
        (fault("rolls_back_one_more"), (new(3), Rollback(0, 1)), 0, Misread(1, Wrong.MISSING), (0, 1)),
        (
            KeepsOldRows,
            (new(2), Rollback(0, 1), append(0)),
            0,
            Misread(1, Wrong.STALE, Row(0, 1, 1)),
            (0, 1),
        ),
        (ReadsFirstLayer, (new(1),), 0, Misread(0, Wrong.LAYER, Row(0, 0, 1)), (0, 0)),
    ],
    ids=["other", "lost", "values", "keys", "moved", "beyond", "missing", "stale", "layer"],
)
def test_a_fault_names_the_wrong_slot(
    make: Any, operations: tuple[Operation, ...], sequence: int, misread: Misread, slot: tuple[int, int]
) -> None:
    last = store_frames(make, *operations)[-1]
    found = next(one for one in last.sequences if one.number == sequence)
    assert misread in found.misread
    assert misread.position in found.wrong
    block, offset = slot
    assert found.table[misread.position // 2] == last.blocks[block].block
    held = last.blocks[block].slots[offset].token
    # Nothing is read from the slot of a row that is missing: what lay there last is shown.
    assert held == (Row(0, 1, 1) if misread.wrong is Wrong.MISSING else misread.found)
    assert last.broken


def test_a_slot_shows_what_the_wrong_one_of_its_sharers_reads() -> None:
    class ParentLosesRows(PagedKVStore):
        forked = False

        def fork(self, sequence: int) -> int:
            self.forked = True
            return super().fork(sequence)

        def read(self, sequence: int, layer: int) -> tuple[Tensor, Tensor]:
            keys, values = super().read(sequence, layer)
            return (keys, values) if sequence or not self.forked else (keys * 0, values * 0)

    last = store_frames(ParentLosesRows, new(1), Fork(0))[-1]
    assert [one.wrong for one in last.sequences] == [(0,), ()]
    assert rows(last)[0] == [".", "."]


@pytest.mark.parametrize(
    "change",
    [lambda held: held[0], lambda held: held[..., :1], lambda held: held.double()],
    ids=["dimensions", "head size", "dtype"],
)
def test_numbers_of_another_shape_or_dtype_are_read_as_nothing(change: Callable[[Tensor], Tensor]) -> None:
    class Changes(PagedKVStore):
        def read(self, sequence: int, layer: int) -> tuple[Tensor, Tensor]:
            keys, values = super().read(sequence, layer)
            return change(keys), change(values)

    last = store_frames(Changes, new(1))[-1]
    assert last.broken
    assert last.sequences[0].misread == (Misread(0, Wrong.MISSING),)


def test_erased_blocks_are_named() -> None:
    _, forked, freed = store_frames(fault("clears_shared_blocks"), new(3), Fork(0), Free(0))
    assert erased(forked) == []
    assert erased(freed) == ["block 0", "block 1"]
    assert [block.released for block in freed.blocks] == [False] * 4


def test_the_layer_that_is_wrong_is_the_one_that_is_drawn() -> None:
    assert [frame.layer for frame in store_frames(PagedKVStore, new(1))] == [0]
    frames = store_frames(fault("fork_leaves_layers_empty"), new(3), Fork(0))
    assert [frame.layer for frame in frames] == [1, 1]
    assert frames[-1].sequences[1].wrong == (0, 1, 2)


def test_beams_read_what_their_parents_held() -> None:
    last = store_frames(fault("reorders_in_place"), new(1), new(1), Reorder((1, 0)))[-1]
    assert [one.tokens for one in last.sequences] == [(Row(1, 0, 2),), (Row(0, 0, 1),)]
    assert [one.wrong for one in last.sequences] == [(), (0,)]
    assert last.sequences[1].misread == (Misread(0, Wrong.OTHER, Row(1, 0, 2)),)


def test_without_tables_what_sequences_read_stands_in_place_of_blocks() -> None:
    _, forked, diverged, freed = store_frames(ListStore, *DIVERGENCE)
    names = ["seq 0: 0 to 1", "seq 0: 2 to 3", "seq 1: 0 to 1", "seq 1: 2 to 3"]
    assert [block.name for block in forked.blocks] == names
    assert rows(diverged) == [["0:0", "0:1"], ["0:2", "."], ["0:0", "0:1"], ["0:2", "1:3"]]
    assert forked.copies == diverged.copies == ()
    assert [slot.written for block in diverged.blocks for slot in block.slots].count(True) == 1
    assert [block.name for block in freed.blocks] == names[2:]


def test_a_refusal_is_told() -> None:
    assert [frame.refused for frame in store_frames(PagedKVStore, new(8), new(1), Free(0))] == [
        False,
        True,
        False,
    ]


def test_a_table_decides_nothing() -> None:
    class Lies(PagedKVStore):
        def block_table(self, sequence: int, layer: int) -> list[int]:
            if sequence:
                raise RuntimeError("no table today")
            return [99, -1]

    frames = store_frames(Lies, new(3), Fork(0))
    assert [one.table for one in frames[-1].sequences] == [(99, -1), ()]
    assert not frames[-1].broken
    assert not frames[-1].crash


def test_a_crash_is_a_last_frame_with_the_state_before() -> None:
    class Crashing(PagedKVStore):
        def fork(self, sequence: int) -> int:
            raise RuntimeError("no forks today")

    first, last = store_frames(Crashing, new(1), Fork(0), Free(0))
    assert "no forks today" in last.crash
    assert last.blocks == first.blocks
    assert last.told == "fork sequence 0 -> sequence 1"


def test_what_breaks_before_the_check_in_question_is_muted() -> None:
    class Both(WritesNeighbour, NoLimit):
        """Two faults."""

    operations = (new(1), new(1), Overflow(0, 1))
    assert [one.check for one in store_frames(Both, *operations)[-1].broken] == ["store/bystanders"]
    frames = store_frames(Both, *operations, check="store/capacity")
    assert len(frames) == 3
    assert [one.check for one in frames[-1].broken] == ["store/capacity"]


def test_what_a_muted_check_broke_is_drawn_as_it_reads_back() -> None:
    operations = (new(1), Fork(0), append(0), append(1), Reorder((0, 0)))
    frames = store_frames(fault("copies_keys_only"), *operations, check="store/reorder")
    assert [[sequence.wrong for sequence in frame.sequences] for frame in frames] == [
        [()],
        [(), ()],
        [(0,), ()],
        [(0,), ()],
        [(0,), (0,)],
    ]
    assert frames[2].sequences[0].misread == (Misread(0, Wrong.VALUES, Row(0, 0, 1)),)
    assert [bool(frame.broken) for frame in frames] == [False] * 4 + [True]


def test_the_layer_of_the_check_is_drawn_and_not_one_that_was_broken_before() -> None:
    class Both(WritesNeighbour):
        """Writes into its neighbour; a sequence that was rolled back reads other keys in layer 1."""

        def rollback(self, sequence: int, count: int) -> None:
            super().rollback(sequence, count)
            self.rolled_back = sequence

        def read(self, sequence: int, layer: int) -> tuple[Tensor, Tensor]:
            keys, values = super().read(sequence, layer)
            wrong = layer == 1 and getattr(self, "rolled_back", None) == sequence
            return (keys + 1, values) if wrong else (keys, values)

    operations = (new(2), new(2), append(1), Rollback(1, 1))
    muted = store_frames(Both, *operations, check="store/rollback")
    assert [one.check for one in muted[-1].broken] == ["store/rollback"]
    assert {frame.layer for frame in muted} == {1}


def test_what_is_too_large_to_be_drawn_has_no_frames() -> None:
    trace = Trace((new(1),), replace(CONFIG, num_blocks=10_000), KV_STORE)
    capabilities = probe_capabilities(KV_STORE, PagedKVStore(trace.config))
    outcome, frames = film(PagedKVStore, trace, capabilities)
    assert outcome.operations == 1
    assert frames == []


def test_a_suite_gives_frames_to_what_it_refutes() -> None:
    refuted = [
        row
        for row in audit(NoLimit, seed=0, selected=frozenset({"store/capacity"}))
        if row.verdict is Verdict.REFUTED
    ]
    assert [row.check.id for row in refuted] == ["store/capacity"]
    frames = msgspec.convert(refuted[0].frames, tuple[Frame, ...])
    assert [one.check for one in frames[-1].broken] == ["store/capacity"]
    counterexample = refuted[0].counterexample
    assert counterexample is not None
    replayed = KVStoreSuite().replay(implementation(NoLimit), counterexample)
    assert [row.check.id for row in replayed if row.frames] == ["store/capacity"]


def test_a_replay_that_holds_has_frames_once() -> None:
    rows_of_replay = KVStoreSuite().replay(REFERENCE, to_data(Trace(DIVERGENCE, CONFIG, KV_STORE)))
    assert sum(bool(row.frames) for row in rows_of_replay) == 1


def test_a_row_that_is_in_the_wrong_place_is_no_copy() -> None:
    """All sequences share their slots: what one writes turns up in the block of the other."""
    *_, last = store_frames(
        fault("keyed_by_position"), new(1), Fork(0), append(1), append(0), Fork(1), check="store/content"
    )
    assert {one.wrong for sequence in last.sequences for one in sequence.misread} == {Wrong.OTHER}
    assert last.copies == ()
