"""What mutation testing of the rules of shared and cached blocks found untested, asked of each rule alone."""

import pytest

from support.rule_scene import Scene
from tokenlaw.properties.rules import prefix, sharing
from tokenlaw.properties.step import Slot
from tokenlaw.properties.trace import Batch
from tokenlaw.spec.contracts import HOST, NO_BLOCK, BlockCopy

EIGHT = (1, 2, 3, 4, 5, 6, 7, 8)
NO_COMMIT = frozenset({"commit"})


def test_cached_blocks_between_two_readings_are_judged_if_touched() -> None:
    scene = Scene(due=False)
    scene.holds(EIGHT, [0, 1])
    for block in (0, 1):
        scene.publishes(block, block)
        scene.tear(block, 2)
    scene.step.touched = {1}
    (violation,) = scene.ask(prefix.immutable_touched)
    assert (violation.block, violation.found) == (1, "token 77 after [] in namespace 'gone'")
    assert violation.expected == "token 7 after [1, 2, 3, 4, 5, 6] in slot 2 of cached block 1"
    scene.step.due = True  # all are read in a moment
    assert scene.ask(prefix.immutable_touched) == []
    assert [one.block for one in scene.ask(prefix.immutable_all)] == [0, 1]


@pytest.mark.parametrize(
    ("hit", "block_size", "found"),
    [(0, 4, 0), (4, 4, 0), (7, 1, 0), (8, 4, 1), (12, 4, 1), (3, 4, 1), (1, 4, 1), (-1, 1, 1), (-1, 4, 1)],
)
def test_a_hit_is_whole_blocks_of_the_prompt_but_not_all_of_it(hit: int, block_size: int, found: int) -> None:
    scene = Scene(block_size=block_size)
    scene.acts(scene.holds(EIGHT, list(range(8 // block_size))))
    scene.step.hit = hit
    assert len(scene.ask(prefix.length_of_hit)) == found


def test_without_a_sequence_there_is_no_hit_to_judge() -> None:
    scene = Scene()
    scene.step.hit = 4
    assert scene.ask(prefix.length_of_hit) == scene.ask(prefix.content_of_hit) == []


def test_of_the_unreachable_blocks_only_those_that_were_hit_are_judged() -> None:
    scene = Scene()
    scene.acts(scene.holds(EIGHT, [0, 1]))
    scene.step.hit = 4
    scene.world.unreachable = {1: None}
    assert scene.ask(prefix.length_of_hit) == []
    scene.world.unreachable = {0: None}
    assert [one.block for one in scene.ask(prefix.length_of_hit)] == [0]


@pytest.mark.parametrize(
    ("torn", "hit", "position"),
    [({0: 3}, 4, 3), ({1: 2}, 8, 6), ({1: 0, 0: 1}, 8, 1), ({1: 0}, 4, None), ({0: 0}, 0, None)],
)
def test_the_first_wrong_position_of_a_hit_is_named(
    torn: dict[int, int], hit: int, position: int | None
) -> None:
    scene = Scene()
    scene.acts(scene.holds((*EIGHT, 9, 10), [0, 1, 2]))
    scene.step.hit = hit
    for block, offset in torn.items():
        scene.tear(block, offset)
    assert [one.position for one in scene.ask(prefix.content_of_hit)] == [
        one for one in [position] if one is not None
    ]


def test_a_torn_hit_is_told_in_words() -> None:
    scene = Scene(block_size=1)
    scene.acts(scene.holds((5, 6), [3, 4]))
    scene.step.hit = 1
    scene.tear(3, 0)
    (violation,) = scene.ask(prefix.content_of_hit)
    assert violation.expected == "token 5 after [] (sequence 0) in the cached prefix"
    assert violation.found == "token 77 after [] in namespace 'gone', in slot 0 of block 3"


def test_a_hit_may_leave_out_what_is_below_the_window_and_nothing_else() -> None:
    twelve = (*EIGHT, 9, 10, 11, 12)
    below = Scene(window=3)
    below.acts(below.holds(twelve, [NO_BLOCK, 1, 2]))
    below.step.hit = 8
    assert below.ask(prefix.content_of_hit) == []
    below.tear(1, 0)  # the block behind the gap is judged still
    assert [one.position for one in below.ask(prefix.content_of_hit)] == [4]
    wrong_below = Scene(window=3)
    wrong_below.acts(wrong_below.holds(twelve, [0, 1, 2]))
    wrong_below.step.hit = 8
    wrong_below.tear(0, 2)
    assert [one.position for one in wrong_below.ask(prefix.content_of_hit)] == [2]


@pytest.mark.parametrize("entry", [NO_BLOCK, 9])
def test_a_hit_with_an_entry_outside_the_pool_is_left_to_other_rules(entry: int) -> None:
    """Nothing behind the entry is a prefix: kv/content and kv/waste name the entry itself."""
    scene = Scene()
    scene.acts(scene.holds((*EIGHT, 9), [entry, 1, 2]))
    scene.step.hit = 8
    scene.tear(1, 0)
    assert scene.ask(prefix.content_of_hit) == []


def published(scene: Scene, block: int) -> list[str]:
    """What K9 finds when this block becomes reachable."""
    scene.step.published = [block]
    return [one.found for one in scene.ask(prefix.published)]


def test_a_block_with_an_unwritten_slot_is_not_published() -> None:
    scene = Scene()
    scene.holds(EIGHT[:3], [0])
    assert published(scene, 0) == ["slot 3 holds nothing (the slot was never written)"]
    scene.world.device.final[0] = [True, False, False, True]
    assert published(scene, 0) == [
        "slot 1 holds token 2 after [1] (written for sequence 0), which is a draft or left over from before"
    ]


def test_a_published_block_holds_consecutive_positions_from_its_boundary() -> None:
    scene = Scene()
    nodes = scene.holds(EIGHT, [0, 1]).nodes
    assert published(scene, 0) == published(scene, 1) == []
    for wrong in (nodes[1:5], [*nodes[:3], nodes[4]], nodes[4:6] * 2):
        for offset, node in enumerate(wrong):
            scene.world.device.write(2, offset, node, 0, True)
        (found,) = published(scene, 2)
        assert found.count("; ") == 3


def test_the_epoch_of_a_published_block_is_that_of_its_last_position() -> None:
    """A position knows the oldest weights of all before it."""
    scene = Scene()
    prints, device = scene.world.fingerprints, scene.world.device
    old = prints.extend(prints.root(""), EIGHT[:4], 0)
    new = prints.extend(prints.root(""), EIGHT[:4], 1)
    scene.world.epoch, scene.step.published = 1, [0]
    for last, found in ((new[3], []), (old[3], [f"it holds {prints.words(old[3])}"])):
        for offset, node in enumerate([*new[:3], last]):
            device.write(0, offset, node, -1, True)
        assert [one.found for one in scene.ask(prefix.published_epoch)] == found
    device.final[0][1] = False  # not full: kv/publish refutes it
    assert scene.ask(prefix.published_epoch) == []


@pytest.mark.parametrize(
    ("lacks", "offsets", "found"),
    [
        (frozenset(), (0,), 1),
        (frozenset(), (3,), 1),
        (NO_COMMIT, (0,), 1),
        (NO_COMMIT, (1, 2), 1),
        (NO_COMMIT, (2, 3), 0),
    ],
)
def test_only_a_manager_without_commit_may_publish_what_is_filled_now(
    lacks: frozenset[str], offsets: tuple[int, ...], found: int
) -> None:
    scene = Scene(lacks=lacks)
    scene.acts(scene.holds(EIGHT[:4], [0]))
    scene.publishes(0, "a key")
    scene.step.slots = [Slot(0, offset, offset) for offset in offsets]
    assert len(scene.ask(sharing.write_shared)) == found


@pytest.mark.parametrize(("alone", "owner"), [(False, "sequence 1"), (True, "one sequence")])
def test_a_copy_onto_a_shared_or_reachable_block_is_refuted(alone: bool, owner: str) -> None:
    scene = Scene()
    scene.holds(EIGHT[:4], [0])
    second = scene.holds(EIGHT[:5], [0, 1], "other")
    if not alone:
        scene.acts(second)
    scene.publishes(1, "a key")
    scene.step.copies = [BlockCopy(2, 0), BlockCopy(2, 1), BlockCopy(2, 0, destination_tier=HOST)]
    found = [(one.expected, one.found, one.sequence) for one in scene.ask(sharing.copy_onto_shared)]
    number = None if alone else 1
    assert found == [
        (
            f"block 0 to be held by {owner} alone when it is overwritten by a copy",
            "held by sequences: 0, 1",
            number,
        ),
        (
            "block 1 not to be reachable through the cache when it is overwritten by a copy",
            "it can be hit under key 'a key'",
            number,
        ),
    ]


@pytest.mark.parametrize(
    ("length", "copies", "limit"),
    [
        (6, 1, None),
        (6, 2, "at most 1 copied block, since 6 tokens end inside a block"),
        (8, 1, "at most 0 copied block, since 8 tokens end at a block boundary"),
        (None, 1, "at most 0 copied block, since 0 tokens end at a block boundary"),
    ],
)
def test_only_a_partial_block_is_copied(length: int | None, copies: int, limit: str | None) -> None:
    scene = Scene()
    if length:
        scene.acts(scene.holds(EIGHT[:length], [0, 1]))
    scene.step.copies = [BlockCopy(0, 2 + i) for i in range(copies)]
    found = [(one.expected, one.sequence) for one in scene.ask(sharing.copy_budget)]
    assert found == ([] if limit is None else [(limit, 0 if length else None)])
    scene.step.operation = Batch((0,), (1,))  # may copy for each of its sequences
    assert scene.ask(sharing.copy_budget) == []


def test_the_first_block_of_copies_that_depend_on_their_order_is_named() -> None:
    scene = Scene()
    scene.step.copies = [BlockCopy(0, 5), BlockCopy(1, 6), BlockCopy(2, 6), BlockCopy(3, 5)]
    (violation,) = scene.ask(sharing.copy_order)
    assert violation.block == 5
    assert violation.found.startswith("0 (device) -> 5 (device), 1 (device) -> 6 (device)")
    assert violation.found.endswith(": block 5 is written and also read or written by another")


def test_copies_between_tiers_depend_on_their_order_only_within_a_tier() -> None:
    scene = Scene()
    scene.step.copies = [BlockCopy(0, 5, destination_tier=HOST), BlockCopy(5, 0)]
    assert [one.block for one in scene.ask(sharing.copy_order)] == [0]
    scene.step.copies = [BlockCopy(0, 5, destination_tier=HOST), BlockCopy(5, 6)]
    assert scene.ask(sharing.copy_order) == []


def test_bystanders_on_both_sides_of_the_acting_sequence_are_compared() -> None:
    scene = Scene()
    sequences = [scene.holds(EIGHT, [2 * i, 2 * i + 1], str(i)) for i in range(3)]
    scene.acts(sequences[1])
    for sequence in sequences:
        scene.manager.lengths[sequence.handle] = 7
    assert [one.sequence for one in scene.ask(sharing.bystanders)] == [0, 2]
    scene.manager.tables[2] = [5, 4]
    assert [one.found for one in scene.ask(sharing.bystanders)][-2:] == ["table [5, 4]", "num_tokens says 7"]
