"""What KV stores are judged by, asked alone: what must be held, what had room, which row is the wrong one."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from support.list_store import CONFIG, ListStore, append, new, run
from support.pages import store_frames
from support.store_scene import Scene
from tokenlaw.properties import kv_store_frames
from tokenlaw.properties.kv_store_checks import BYSTANDERS, CONTENT
from tokenlaw.properties.trace import Fork, Free
from tokenlaw.spec.frames import Copy, Misread, Row, Wrong

THREE_HEADS = replace(CONFIG, num_kv_heads=3)
"""No two of its sizes are alike: 3 heads of 4 numbers, keys and values, 2 layers."""


def test_a_sequence_without_positions_has_no_room_and_needs_no_tokens() -> None:
    """Three tokens and one were held at one time; four and none are as many, and five aren't."""
    scene = Scene()
    first, second = scene.holds(3), scene.holds(1)
    scene.store.live.remove(second)
    scene.told.free(second.handle)
    empty = scene.holds(0)
    assert (empty.room, empty.peak, empty.length) == (0, 0, 0)
    assert scene.store.has_held(4, first)
    assert not scene.store.has_held(5, first)


def test_what_had_room_is_counted_in_blocks_in_tokens_and_in_sequences() -> None:
    scene = Scene()
    first = scene.holds(3)
    assert scene.store.has_held(3, first)
    assert not scene.store.has_held(4, first)  # as many blocks, one token too many
    scene.store.live.remove(first)
    assert scene.store.has_held(3)
    scene.holds(0)
    assert not scene.store.has_held(1)  # a second sequence
    assert not scene.store.has_held(5)


def test_an_empty_sequence_may_take_a_block() -> None:
    scene = Scene()
    first, _ = scene.holds(3), scene.holds(0)
    assert not scene.store.has_held(3, first)
    alone = Scene()
    empty = alone.holds(0)
    assert not alone.store.has_held(0, empty)
    assert not alone.store.has_held(1, empty)


def test_beams_and_all_that_may_share_with_them_become_one_family() -> None:
    scene = Scene()
    first, second, stranger = scene.holds(1), scene.holds(1), scene.holds(1)
    scene.told.config = replace(CONFIG, max_sequences=9, num_blocks=9)
    child = scene.holds(1, second)
    scene.store.continue_as([second, first], [0, 0])
    assert first.family == second.family == child.family != stranger.family
    scene.store.continue_as([stranger], [0])
    assert stranger.family not in {first.family, child.family}


def test_one_layer_gets_its_keys_and_its_values() -> None:
    scene = Scene()
    shadow = scene.holds(1)
    numbers = scene.store.payload.draw(shadow.number, {1: 1}, 2)
    scene.told.reserve(shadow.handle, 3)
    scene.store.write(shadow, numbers, 1)
    shadow.extend([1], numbers)
    assert (shadow.ends, shadow.length, shadow.shortest) == ({0: 1, 1: 3}, 3, 1)
    assert scene.store.difference(shadow) is None


def test_a_read_of_three_tensors_is_no_read_of_keys_and_values() -> None:
    class ReadsMore(ListStore):
        def read(self, sequence: int, layer: int) -> Any:
            keys, values = super().read(sequence, layer)
            return keys, values, values

    assert run(ReadsMore, new(1)).crash is not None


def test_of_several_differences_the_first_position_is_named_then_the_first_head() -> None:
    scene = Scene(config=THREE_HEADS)
    shadow = scene.holds(4)
    held = scene.told.content[shadow.handle][0]
    held[0, 0, 3, 0] = held[0, 1, 2, 3] = held[0, 2, 2, 1] = held[1, 0, 0, 0] = 9.0
    found = scene.store.difference(shadow)
    assert found is not None
    position, expected, said = found
    assert (position, expected.partition(":")[0]) == (2, "layer 0, key, head 1, dim 3")
    assert said == "layer 0, key, head 1, dim 3: 9, which was never written"


def test_a_muted_check_marks_its_sequence_which_is_not_looked_at_again() -> None:
    scene = Scene(muted=(CONTENT.id,))
    shadow, other = scene.holds(1), scene.holds(1)
    scene.reads(shadow, 0, torch.zeros(1))
    scene.store.verify({shadow.number: CONTENT}, BYSTANDERS)
    assert (shadow.damaged, other.damaged, scene.store.violations) == (True, False, [])
    assert not scene.store.has_held(1, other)
    scene.store.verify({}, BYSTANDERS)
    assert scene.store.violations == []


def test_all_rows_that_were_drawn_since_the_last_time_have_a_name() -> None:
    scene = Scene()
    payload = scene.store.payload
    first, second = payload.draw(0, {0: 0}, 1), payload.draw(1, {0: 0}, 1)
    scene.rows.learn(payload, 5)
    for number, drawn in enumerate((first, second)):
        shadow = scene.store.admit(number, scene.told.allocate())
        shadow.hold([drawn[:, 0], drawn[:, 0]])
        assert scene.rows.reading(scene.store, shadow, 0).expected == (Row(number, 0, 5),)


def test_a_row_of_a_sequence_that_lives_is_of_another_also_when_it_was_forgotten() -> None:
    scene = Scene()
    shadow, other = scene.holds(1), scene.holds(2)
    forgotten = other.content[0][:, :, 1]
    other.hold([held[:, :, :1] for held in other.content])
    scene.reads(shadow, 0, forgotten)
    assert scene.misread(shadow) == (Misread(0, Wrong.OTHER, Row(1, 1, 2)),)
    scene.store.live.remove(other)
    assert scene.misread(shadow) == (Misread(0, Wrong.STALE, Row(1, 1, 2)),)


def test_what_a_parent_wrote_at_that_position_before_is_stale() -> None:
    """The fork holds what its parent wrote there the second time, and reads what it wrote the first time."""
    scene = Scene()
    parent = scene.holds(1)
    first = parent.content[0][:, :, 0]
    parent.hold([held[:, :, :0] for held in parent.content])
    scene.told.content[parent.handle] = list(parent.content)
    scene.grows(parent, 1)
    child = scene.holds(1, parent)
    scene.reads(child, 0, first)
    assert scene.misread(child) == (Misread(0, Wrong.STALE, Row(0, 0, 1)),)


def test_a_read_that_raises_is_a_read_of_nothing() -> None:
    scene = Scene()
    shadow = scene.holds(2)
    del scene.told.content[shadow.handle]
    assert scene.misread(shadow) == (Misread(0, Wrong.MISSING), Misread(1, Wrong.MISSING))


def test_as_many_heads_as_the_store_has_are_read_and_fewer_are_nothing() -> None:
    for config in (CONFIG, THREE_HEADS):
        scene = Scene(config=config)
        shadow = scene.holds(1)
        assert scene.misread(shadow) == ()
        held = scene.told.content[shadow.handle]
        held[0] = 0 * held[0]
        assert scene.misread(shadow) == (Misread(0, Wrong.LOST),)
        held[0] = held[0][:, :1]
        assert scene.misread(shadow) == (Misread(0, Wrong.MISSING),)


class Tabled(ListStore):
    """Each sequence has two blocks of its own, and a fork copies at once."""

    def block_table(self, sequence: int, layer: int) -> list[int]:
        return [2 * (sequence - 1) + index for index in range(self.blocks(self.length(sequence)))]


class LeavesItsRows(Tabled):
    """Whoever is left reads what a sequence held that ended."""

    def free(self, sequence: int) -> None:
        held = self.content[sequence]
        super().free(sequence)
        self.content = dict.fromkeys(self.content, held)


def test_a_copy_of_rows_that_the_operation_before_wrote_is_a_copy() -> None:
    _, forked, grown = store_frames(Tabled, new(3), Fork(0), append(1))
    assert forked.copies == (Copy(0, 2), Copy(1, 3))
    assert [[slot.written for slot in block.slots] for block in forked.blocks[2:]] == [
        [True] * 2,
        [True, False],
    ]
    assert grown.copies == ()


def test_rows_that_are_read_in_the_wrong_place_were_neither_copied_nor_written_there() -> None:
    last = store_frames(LeavesItsRows, new(2), new(2), Free(0))[-1]
    stale = tuple(Misread(position, Wrong.STALE, Row(0, position, 1)) for position in (0, 1))
    assert [one.misread for one in last.sequences] == [stale]
    assert last.copies == ()
    assert [(slot.token, slot.written) for slot in last.blocks[2].slots] == [
        (Row(0, 0, 1), False),
        (Row(0, 1, 1), False),
    ]


def test_a_refusal_of_the_first_operation_is_told() -> None:
    assert [frame.refused for frame in store_frames(ListStore, new(9), new(1))] == [True, False]


@pytest.mark.parametrize(("most", "frames"), [(32, 2), (31, 0)])
def test_what_is_too_large_to_draw_has_no_frames(
    most: int, frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four blocks of two in two layers, after each of two operations."""
    monkeypatch.setattr(kv_store_frames, "MOST_SLOTS", most)
    assert len(store_frames(Tabled, new(1), append(0))) == frames
