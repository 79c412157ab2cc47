"""What mutation testing of the rules of content, counts and failures found untested, asked of each alone."""

import pytest

from support.rule_scene import Scene
from tokenlaw.properties.rules import accounting, content, lifecycle
from tokenlaw.properties.step import Slot
from tokenlaw.properties.trace import Append, Operation, Rollback, Speculate
from tokenlaw.spec.contracts import NO_BLOCK

EIGHT = (1, 2, 3, 4, 5, 6, 7, 8)
TWELVE = (*EIGHT, 9, 10, 11, 12)


def test_reference_counts_between_two_readings_are_judged_for_touched_blocks_only() -> None:
    scene = Scene(due=False)
    scene.holds(EIGHT, [0, 1])
    scene.manager.counts |= {0: 5, 1: 5}
    scene.step.touched = {1}
    assert [violation.block for violation in scene.ask(accounting.refcount_of_touched)] == [1]
    scene.step.due = True  # all counts are read in a moment
    assert scene.ask(accounting.refcount_of_touched) == []
    assert [violation.block for violation in scene.ask(accounting.refcount_of_all)] == [0, 1]


def test_a_manager_that_counts_no_references_is_not_asked_for_them() -> None:
    scene = Scene(lacks=frozenset({"ref-counts"}), due=False)
    scene.step.touched = {1}
    del scene.manager.counts[1]  # an answer would be a crash
    assert scene.ask(accounting.refcount_of_touched) == []


def test_free_blocks_are_what_no_table_holds() -> None:
    scene = Scene()
    scene.holds(EIGHT, [0, 1])
    assert scene.ask(accounting.partition) == []
    scene.manager.free = 7
    (violation,) = scene.ask(accounting.partition)
    assert violation.expected == "6 of 8 blocks free, since live tables hold 2"


@pytest.mark.parametrize(
    ("lookahead", "bounds"), [(0, "length 2 for"), (3, "length 2 to 3 for"), (4, "length 2 to 3 for")]
)
def test_the_message_about_a_table_names_the_bounds_of_its_length(lookahead: int, bounds: str) -> None:
    scene = Scene(lookahead=lookahead)
    scene.acts(scene.holds(EIGHT, [0, 1, 2, 3]))
    (violation,) = scene.ask(accounting.length_of_table)
    assert violation.expected == f"a table of {bounds} 8 tokens (block size 4)"
    assert violation.found == "length 4: [0, 1, 2, 3]"


def test_a_wrong_length_is_waste_unless_a_rule_of_its_own_judges_the_operation() -> None:
    for operation, found in ((Append(0, (1,)), 1), (Rollback(0, 1), 0), (Speculate(0, (1,), 1), 0)):
        scene = Scene(operation=operation)
        sequence = scene.holds(EIGHT, [0, 1])
        scene.acts(sequence)
        scene.manager.lengths[sequence.handle] = 9
        assert len(scene.ask(accounting.entries_of_table)) == found


def entries(table: list[int], window: int | None = None) -> list[tuple[str, str]]:
    """Expected and found of K6 for a table of twelve tokens that has just come."""
    scene = Scene(window=window)
    scene.acts(scene.holds(TWELVE, table))
    scene.step.table_before = []
    return [(one.expected, one.found) for one in scene.ask(accounting.entries_of_table)]


def test_blocks_below_the_window_may_all_be_given_back() -> None:
    assert entries([NO_BLOCK, NO_BLOCK, 2], window=2) == []
    assert entries([NO_BLOCK, 1, 2], window=5) == []
    assert entries([NO_BLOCK, 1, 1], window=5) == [("no block twice in one table", "[1] in [-1, 1, 1]")]


def test_without_a_window_every_entry_is_a_block_of_the_pool() -> None:
    assert entries([NO_BLOCK, 1, 2]) == [("block ids 0 to 7", "[-1] in [-1, 1, 2]")]
    assert entries([0, 8, 1]) == [("block ids 0 to 7", "[8] in [0, 8, 1]")]
    assert entries([0, 0, 7]) == [("no block twice in one table", "[0] in [0, 0, 7]")]


def test_bystanders_are_read_back_and_of_the_acting_sequence_what_was_not_read_yet() -> None:
    scene = Scene()
    acting, other = scene.holds(EIGHT, [0, 1]), scene.holds(EIGHT, [2, 3], "other")
    scene.acts(acting)
    scene.tear(0, 0)
    scene.tear(2, 0)
    assert [one.sequence for one in scene.ask(content.content_of_all)] == [other.number]
    scene.step.first_block = 1
    assert [one.sequence for one in scene.ask(content.content_of_all)] == [acting.number, other.number]


def test_a_sequence_without_tokens_has_nothing_to_read_back() -> None:
    """Nor need it have a block."""
    scene = Scene()
    scene.holds((), [])
    assert scene.ask(content.content_of_all) == []


def test_a_torn_slot_is_named_by_its_position_and_place() -> None:
    scene = Scene()
    scene.acts(scene.holds(EIGHT, [4, 5]))
    scene.tear(5, 2, 3)
    (violation,) = scene.ask(content.content_of_acting)
    assert (violation.position, violation.expected[:7]) == (6, "token 7")
    assert violation.found == "token 77 after [] in namespace 'gone', in slot 2 of block 5"


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ([0], "no slot: logical block 1 is missing"),
        ([0, 9], "no slot: logical block 1 is block 9, outside the pool"),
        ([0, NO_BLOCK], "no slot: logical block 1 is block -1, outside the pool"),
    ],
)
def test_positions_without_a_slot_are_told_apart(table: list[int], found: str) -> None:
    scene = Scene()
    scene.acts(scene.holds(EIGHT, table))
    (violation,) = scene.ask(content.content_of_acting)
    assert (violation.found, violation.position) == (found, 4)


def test_below_the_window_a_block_is_given_back_or_right() -> None:
    given_back = Scene(window=2)
    given_back.acts(given_back.holds(EIGHT, [NO_BLOCK, 1]))
    assert given_back.ask(content.content_of_acting) == []
    kept = Scene(window=2)
    kept.acts(kept.holds(EIGHT, [0, 1]))
    kept.tear(0, 1)
    assert [one.position for one in kept.ask(content.content_of_acting)] == [1]


def test_a_block_that_the_window_still_needs_is_named() -> None:
    scene = Scene(window=4)
    sequence = scene.holds(TWELVE, [NO_BLOCK, 1, NO_BLOCK])
    scene.acts(sequence)
    sequence.settled = 8  # a query at position 8 sees 5 and later
    (violation,) = scene.ask(content.window)
    assert violation.position == 8
    assert violation.found == "logical block 2 (positions 8 and later) was given back"
    scene.manager.tables[sequence.handle] = [NO_BLOCK, NO_BLOCK, 2]
    scene.world.observe_table(scene.step, sequence)
    (violation,) = scene.ask(content.window)
    assert violation.position == 5
    assert violation.found == "logical block 1 (positions 4 and later) was given back"


@pytest.mark.parametrize(("due", "judged"), [(False, [1]), (True, [0, 1])])
def test_a_refused_call_must_leave_the_acting_sequence_and_when_due_all(due: bool, judged: list[int]) -> None:
    scene = Scene(due=due)
    first, second = scene.holds(EIGHT, [0, 1]), scene.holds(EIGHT, [2, 3], "other")
    scene.acts(second)
    scene.step.refused = True
    assert scene.ask(lifecycle.refused) == []
    for sequence in (first, second):
        scene.manager.tables[sequence.handle] = sequence.table[::-1]
        scene.manager.lengths[sequence.handle] = 7
    found = scene.ask(lifecycle.refused)
    assert [one.sequence for one in found] == [number for number in judged for _ in range(2)]
    assert [one.found for one in found][-2:] == ["table [3, 2]", "length 7"]


def test_a_refused_call_must_leave_counts_and_keys() -> None:
    scene = Scene()
    scene.acts(scene.holds(EIGHT, [0, 1]))
    scene.publishes(0, "a key")
    scene.step.refused = True
    assert scene.ask(lifecycle.refused) == []
    scene.manager.counts[1] = 2
    scene.manager.keys = {1: "another"}
    found = [(one.expected.partition(": ")[2], one.found, one.block) for one in scene.ask(lifecycle.refused)]
    assert found == [
        ("reference count 1 of block 1", "reference count 2", 1),
        ("key 'a key' of block 0", "key None", 0),
        ("no key of block 1", "key 'another'", 1),
    ]


@pytest.mark.parametrize("lacks", ["ref-counts", "cached-keys", "lengths"])
def test_after_a_refused_call_only_what_the_manager_tells_is_compared(lacks: str) -> None:
    scene = Scene(lacks=frozenset({lacks}))
    sequence = scene.holds(EIGHT, [0, 1])
    scene.acts(sequence)
    scene.step.refused = True
    answers = {"ref-counts": scene.manager.counts, "cached-keys": scene.manager.keys}
    answers.get(lacks, scene.manager.lengths)[0] = 9  # what it would say if it were asked
    assert scene.ask(lifecycle.refused) == []


@pytest.mark.parametrize(
    ("operation", "length", "cut"),
    [(Append(0, (1,)), 8, 0), (Rollback(0, 4), 4, 1), (Speculate(0, (1, 2), 0), 4, 0)],
)
def test_only_a_rollback_is_judged_as_one(operation: Operation, length: int, cut: int) -> None:
    scene = Scene(operation=operation)
    sequence = scene.holds(EIGHT[:length], [0, 1][: length // 4])
    scene.acts(sequence)
    scene.manager.lengths[sequence.handle] = 2
    assert len(scene.ask(lifecycle.rolled_back)) == cut


def test_full_blocks_stay_where_they_were_unless_a_window_lets_them_go() -> None:
    for window, found in ((None, 1), (3, 0)):
        scene = Scene(operation=Rollback(0, 2), window=window)
        sequence = scene.holds(EIGHT[:6], [0, 1])
        scene.acts(sequence)
        scene.step.table_before = [2, 1]
        assert len(scene.ask(lifecycle.rolled_back)) == found


def test_accepted_drafts_must_be_in_place_and_the_first_that_is_not_is_named() -> None:
    scene = Scene(operation=Speculate(0, (5, 6, 7), 3))
    scene.acts(scene.holds(EIGHT, [0, 1]))
    scene.step.length_before = 5
    assert scene.ask(lifecycle.accepted) == []
    scene.tear(1, 2, 3)
    assert [one.position for one in scene.ask(lifecycle.accepted)] == [6]
    scene.step.operation = Append(0, (1,))
    assert scene.ask(lifecycle.accepted) == []


def test_what_a_step_in_flight_may_write_is_neither_held_nor_reachable() -> None:
    scene = Scene()
    scene.holds(EIGHT[:4], [0])
    scene.publishes(1, "a key")
    scene.step.slots = [Slot(0, 0, 0), Slot(1, 0, 0), Slot(2, 0, 0)]
    found = [one.found for one in scene.ask(lifecycle.late)]
    assert found == ["held by sequences: 0", "it can be hit under key 'a key'"]
