"""Failing, releasing and taking back: kv/atomic (K12), kv/release (K13), kv/rollback (K15), kv/accept (K16),
kv/in-flight (K25).
"""

from tokenlaw.properties.rules.rule import Rule, block_manager_check
from tokenlaw.properties.step import Moment, Step, Tracked
from tokenlaw.properties.trace import FreeAgain, Rollback, Speculate, SpeculateBatch
from tokenlaw.properties.world import World
from tokenlaw.spec.verdicts import Check, Severity

ATOMIC = block_manager_check(
    "atomic",
    "K12",
    "A refused call leaves tables, lengths, reference counts, free blocks and cached keys as they were.",
    Severity.LEAK,
    "out of blocks",
)

RELEASE = block_manager_check(
    "release",
    "K13",
    "Releasing a sequence a second time raises or does nothing.",
    Severity.LEAK,
    "free again",
)

ROLLBACK = block_manager_check(
    "rollback",
    "K15",
    "A rollback removes exactly the last tokens and the blocks that only they needed; too many is an error.",
    Severity.WRONG_CONTENT,
    "rollback",
    "rollback into a full block",
    "bad rollback",
    needs=frozenset({"rollback"}),
)

ACCEPT = block_manager_check(
    "accept",
    "K16",
    "After a verification the sequence holds exactly the accepted drafts.",
    Severity.WRONG_CONTENT,
    "speculation",
    "rejection",
    "full acceptance",
    needs=frozenset({"speculate"}),
)

IN_FLIGHT = block_manager_check(
    "in-flight",
    "K25",
    "A block that a step in flight may still write is neither handed out nor reachable.",
    Severity.CROSS_SEQUENCE,
    "late write",
    needs=frozenset({"in-flight", "commit"}),
)


def refused(world: World, step: Step) -> None:
    """K12."""
    if step.refused:
        _judge_unchanged(world, step, ATOMIC, "the refused call")


def released_again(world: World, step: Step) -> None:
    """K13."""
    if isinstance(step.operation, FreeAgain):
        _judge_unchanged(world, step, RELEASE, "the second release")


def bad_rollback(world: World, step: Step) -> None:
    """K15: an impossible rollback raises and changes nothing."""
    if not isinstance(step.operation, Rollback) or step.acting is None:
        return
    if not step.raised:
        expected = f"an error: {step.operation.count} tokens can't be taken from {len(step.acting)}"
        world.report(ROLLBACK, expected, "the rollback returned", step.acting.number)
    _judge_unchanged(world, step, ROLLBACK, "the failed rollback")


def _judge_unchanged(world: World, step: Step, check: Check, what: str) -> None:
    """Compare the manager with the mirror of before the call: the acting sequence at least, all when due."""
    door, expected = world.door, f"the same after {what}: "
    if (free := door.num_free_blocks()) != step.free_before:
        world.report(check, f"{expected}number of free blocks {step.free_before}", f"{free}")
    acting = [step.acting] if step.acting else []
    for sequence in world.live if step.due else acting:
        table = door.block_table(sequence.handle)
        if table != sequence.table:
            world.report(check, f"{expected}table {sequence.table}", f"table {table}", sequence.number)
        if door.shows_lengths and (length := door.num_tokens(sequence.handle)) != len(sequence):
            world.report(check, f"{expected}length {len(sequence)}", f"length {length}", sequence.number)
    if step.due:
        _judge_blocks_unchanged(world, check, expected)


def _judge_blocks_unchanged(world: World, check: Check, expected: str) -> None:
    blocks = range(world.config.num_blocks)
    counts = world.door.ref_counts(blocks) if world.door.counts_references else world.holders
    for block, count in enumerate(counts):
        if count != world.holders[block]:
            before = f"reference count {world.holders[block]} of block {block}"
            world.report(check, expected + before, f"reference count {count}", block=block)
    for block, key in enumerate(world.door.cached_keys(blocks) if world.door.shows_keys else ()):
        entry = world.published.get(block)
        if key != (entry.key if entry else None):
            before = f"key {entry.key!r}" if entry else "no key"
            world.report(check, f"{expected}{before} of block {block}", f"key {key!r}", block=block)


def rolled_back(world: World, step: Step) -> None:
    """K15: length and table are those of before, cut."""
    if isinstance(step.operation, Rollback) and step.acting:
        _judge_cut(world, step, step.acting, ROLLBACK, "rollback")


def accepted(world: World, step: Step) -> None:
    """K16: length and table are those of before, cut behind the accepted drafts, which are in place."""
    sequence = step.acting
    if not isinstance(step.operation, Speculate | SpeculateBatch) or sequence is None:
        return
    _judge_cut(world, step, sequence, ACCEPT, "accept")
    for block, offset, position in world.slots(sequence, step.length_before):
        if world.device.nodes[block][offset] != sequence.nodes[position]:
            found = f"{world.content(block, offset)}, in slot {offset} of block {block}"
            world.report(ACCEPT, world.expected(sequence, position), found, sequence.number, position)
            break


def _judge_cut(world: World, step: Step, sequence: Tracked, check: Check, what: str) -> None:
    """The length is right; full blocks stay where they were (the partial tail may have been copied)."""
    length = len(sequence)
    if world.door.shows_lengths and (found := world.door.num_tokens(sequence.handle)) != length:
        world.report(check, f"{length} tokens after {what}", f"num_tokens says {found}", sequence.number)
    full = length // world.block_size
    if sequence.table[:full] != step.table_before[:full] and world.door.window is None:
        expected = f"the first {full} blocks of {step.table_before} kept by {what}"
        world.report(check, expected, f"table {sequence.table}", sequence.number)


def late(world: World, step: Step) -> None:
    """K25: nobody holds, and nobody can hit, what the step in flight is about to write."""
    for block in sorted({slot.block for slot in step.slots}):
        if world.holders[block]:
            expected = f"block {block} not to be handed out before the step that may write it has ended"
            found = f"held by sequences: {world.names_of_holders(block)}"
            world.report(IN_FLIGHT, expected, found, block=block)
        elif world.door.shows_keys and (key := world.door.cached_key(block)) is not None:
            expected = f"block {block} not to be reachable before the step that may write it has ended"
            world.report(IN_FLIGHT, expected, f"it can be hit under key {key!r}", block=block)


RULES = (
    Rule(ATOMIC, {Moment.UNCHANGED: refused}),
    Rule(RELEASE, {Moment.UNCHANGED: released_again}),
    Rule(ROLLBACK, {Moment.UNCHANGED: bad_rollback, Moment.CUT: rolled_back}),
    Rule(ACCEPT, {Moment.CUT: accepted}),
    Rule(IN_FLIGHT, {Moment.LATE: late}),
)
