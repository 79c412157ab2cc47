"""Frames show what really happened to a block manager: who shares, what is copied, what reads back wrong."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.broken_managers import NoCopyOnWrite
from support.pages import CAPABILITIES, TORN, torn_frames
from tokenlaw.impl.paged.manager import PagedBlockManager
from tokenlaw.impl.reference import REFERENCE
from tokenlaw.properties.block_manager_suite import BlockManagerSuite
from tokenlaw.properties.frames import film
from tokenlaw.properties.trace import Evict, Fork, Free, New, SwapOut, Trace, load, to_data
from tokenlaw.spec.contracts import BLOCK_MANAGER, CacheConfig, Implementation
from tokenlaw.spec.frames import Copy, Frame
from tokenlaw.spec.suites import PROFILES
from tokenlaw.spec.verdicts import Verdict

EXAMPLE = Path(__file__).parents[1] / "examples" / "shared_prefix.json"
MAKE = REFERENCE.factories[BLOCK_MANAGER]


def frames_of(trace: Trace, make: Any = MAKE) -> list[Frame]:
    return msgspec.convert(film(make, trace, CAPABILITIES)[1], list[Frame])


def held(frame: Frame) -> dict[int, tuple[int, ...]]:
    return {block.block: block.holders for block in frame.blocks if block.holders}


def test_the_textbook_example_shares_a_prefix_and_copies_one_block() -> None:
    """Eight shared tokens are two blocks; the divergence copies the third, and only that."""
    trace = load(EXAMPLE)
    assert trace.config.block_size == 4
    frames = frames_of(trace)
    assert len(frames) == len(trace.operations)
    _, forked, diverged, appended, freed, over = frames
    assert held(forked) == {0: (0, 1), 1: (0, 1), 2: (0, 1)}
    assert held(diverged) == {0: (0, 1), 1: (0, 1), 2: (0,), 3: (1,)}
    assert [copy for frame in frames for copy in frame.copies] == [Copy(2, 3)]
    assert diverged.copies == (Copy(2, 3),)
    first, second = appended.sequences
    assert first.tokens[:8] == second.tokens[:8] == tuple(range(11, 19))
    assert first.table[:2] == second.table[:2] == (0, 1)
    assert first.tokens[8:] != second.tokens[8:]
    counts = [[block.references for block in frame.blocks] for frame in frames]
    assert counts[2] == [2, 2, 1, 1, 0, 0]
    assert counts[4] == [1, 1, 0, 1, 0, 0]
    assert [block.cached for block in over.blocks] == [True, True, False, False, False, False]
    assert [frame.free for frame in frames] == [3, 3, 2, 2, 3, 6]
    assert not any(frame.broken for frame in frames)
    assert not any(sequence.wrong for frame in frames for sequence in frame.sequences)
    assert freed.sequences[0].number == 1


def test_what_an_operation_wrote_is_marked_and_a_rejected_draft_is_not_final() -> None:
    diverged = frames_of(load(EXAMPLE))[2]
    written = {
        (block.block, offset)
        for block in diverged.blocks
        for offset, slot in enumerate(block.slots)
        if slot.written
    }
    assert written == {(3, 0), (3, 1), (3, 2)}  # the copied token, the accepted draft, the rejected one
    assert [slot.final for slot in diverged.blocks[3].slots] == [True, True, False, False]


def test_a_torn_block_is_where_it_reads_back_wrong() -> None:
    last = torn_frames()[-1]
    assert [sequence.wrong for sequence in last.sequences] == [(), (3,)]
    assert last.blocks[last.sequences[1].table[0] or 0].slots[3].token == 6
    assert [one.check for one in last.broken] == ["kv/content"]
    assert len(torn_frames()) == len(TORN.operations)


def test_without_a_check_the_first_violation_ends_the_film() -> None:
    frames = frames_of(TORN, NoCopyOnWrite)
    assert len(frames) == 3
    assert frames[-1].broken[0].check == "kv/write-shared"


def test_a_crash_is_a_last_frame_with_the_state_before() -> None:
    class Crashing(PagedBlockManager):
        def fork(self, sequence: Any) -> Any:
            raise RuntimeError("no forks today")

    first, last = frames_of(Trace((New((1,)), Fork(0), Free(0))), Crashing)
    assert "no forks today" in last.crash
    assert last.blocks == first.blocks
    assert last.told == "fork sequence 0 -> sequence 1"


def test_a_sequence_that_is_swapped_out_has_no_table() -> None:
    frames = frames_of(Trace((New((1, 2)), SwapOut(0), Evict(1))))
    assert [one.swapped for one in frames[1].sequences] == [True]
    assert frames[1].sequences[0].table == ()


def test_what_is_too_large_to_be_drawn_has_no_frames() -> None:
    assert frames_of(Trace((New((1,)),), CacheConfig(num_blocks=10_000))) == []


@pytest.mark.parametrize("name", ["replay", "run"])
def test_a_suite_gives_frames_to_what_it_refutes(name: str) -> None:
    torn = Implementation("torn", "1", {BLOCK_MANAGER: NoCopyOnWrite})
    suite = BlockManagerSuite()
    if name == "replay":
        rows = suite.replay(torn, to_data(TORN))
    else:
        rows = suite.run(
            torn,
            profile=replace(PROFILES["dev"], examples=60),
            seed=0,
            selected=frozenset({"kv/write-shared", "kv/refcount"}),
            progress=lambda *_: None,
        )
    refuted = [row for row in rows if row.verdict is Verdict.REFUTED]
    assert [row.check.id for row in refuted] == ["kv/write-shared"]
    assert refuted[0].frames[-1]["broken"][0]["check"] == "kv/write-shared"
    # What crashes has a trace as well, and its frames.
    assert all(bool(row.frames) == (row.counterexample is not None) for row in rows)


def test_a_replay_that_holds_has_frames_once() -> None:
    rows = BlockManagerSuite().replay(REFERENCE, to_data(TORN))
    assert sum(bool(row.frames) for row in rows) == 1
