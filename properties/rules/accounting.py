"""Counting blocks: kv/refcount (K2), kv/partition (K3), kv/waste (K6)."""

from collections.abc import Collection

from tokenlaw.properties.rules.rule import Rule, block_manager_check
from tokenlaw.properties.step import Moment, Step, Tracked
from tokenlaw.properties.trace import Rollback, Speculate, SpeculateBatch, SwapOut
from tokenlaw.properties.world import World
from tokenlaw.spec.contracts import NO_BLOCK
from tokenlaw.spec.verdicts import Severity

REFCOUNT = block_manager_check(
    "refcount",
    "K2",
    "The reference count of a block is the number of live tables that hold it.",
    Severity.LEAK,
    "new",
    "free",
    needs=frozenset({"ref-counts"}),
    exercised_with=((frozenset({"fork"}), "fork"),),
)

PARTITION = block_manager_check(
    "partition",
    "K3",
    "Every block is either held by a table or free, and the free counter tells what can be taken.",
    Severity.LEAK,
    "new",
    "free",
)

WASTE = block_manager_check(
    "waste",
    "K6",
    "A table names distinct blocks of the pool, just enough for its length and the declared lookahead.",
    Severity.EFFICIENCY,
    "new",
    "append",
    exercised_with=((frozenset({"speculate", "lookahead"}), "slots kept ahead"),),
)


def refcount_of_touched(world: World, step: Step) -> None:
    """K2 for the blocks that the operation touched."""
    if world.door.counts_references and not step.due:
        _refcount(world, step.touched)


def refcount_of_all(world: World, step: Step) -> None:
    """K2 for the whole pool."""
    if world.door.counts_references:
        _refcount(world, range(world.config.num_blocks))


def _refcount(world: World, blocks: Collection[int]) -> None:
    for block, found in zip(blocks, world.door.ref_counts(blocks), strict=True):
        if found != world.holders[block]:
            holders = world.names_of_holders(block)
            world.report(
                REFCOUNT,
                f"reference count {world.holders[block]} of block {block}, held by sequences: {holders}",
                f"reference count {found}",
                block=block,
            )


def partition(world: World, step: Step) -> None:
    """K3: the free counter equals a walk over the tables (blocks may wait for the copies of a swap out)."""
    free, total = world.door.num_free_blocks(), world.config.num_blocks
    if free != total - world.held and not isinstance(step.operation, SwapOut):
        world.report(
            PARTITION,
            f"{total - world.held} of {total} blocks free, since live tables hold {world.held}",
            f"{free} free",
        )


def length_of_table(world: World, step: Step) -> None:
    """K6: neither too few blocks for the length, nor more than the lookahead explains."""
    sequence = step.acting
    if sequence is None:
        return
    least = world.blocks_for(len(sequence))
    most = world.blocks_for(len(sequence) + world.door.lookahead)
    if not least <= len(sequence.table) <= most:
        bounds = f"{least}" if least == most else f"{least} to {most}"
        world.report(
            WASTE,
            f"a table of length {bounds} for {len(sequence)} tokens (block size {world.block_size})",
            f"length {len(sequence.table)}: {sequence.table}",
            sequence.number,
        )


def entries_of_table(world: World, step: Step) -> None:
    """K6: ids are in the pool, none occurs twice, and the declared length is right."""
    sequence = step.acting
    if sequence is None:
        return
    length_of_table(world, step)
    if sequence.table != step.table_before:
        _entries(world, sequence)
    if world.door.shows_lengths and not isinstance(step.operation, Rollback | Speculate | SpeculateBatch):
        found = world.door.num_tokens(sequence.handle)
        if found != len(sequence):
            world.report(WASTE, f"length {len(sequence)}", f"num_tokens says {found}", sequence.number)


def _entries(world: World, sequence: Tracked) -> None:
    table = sequence.table
    dropped = table.count(NO_BLOCK) if world.door.window is not None else 0
    distinct = set(table)
    if len(distinct) != len(table) - max(0, dropped - 1):
        twice = sorted({block for block in distinct if block != NO_BLOCK and table.count(block) > 1})
        world.report(WASTE, "no block twice in one table", f"{twice} in {table}", sequence.number)
    allowed = {NO_BLOCK} if dropped else set()
    outside = sorted(block for block in distinct - allowed if not world.in_pool(block))
    if outside:
        pool = f"block ids 0 to {world.config.num_blocks - 1}"
        world.report(WASTE, pool, f"{outside} in {table}", sequence.number)


RULES = (
    Rule(REFCOUNT, {Moment.FINISHED: refcount_of_touched, Moment.READ_BACK: refcount_of_all}),
    Rule(PARTITION, {Moment.FINISHED: partition}),
    Rule(WASTE, {Moment.SCHEDULED: length_of_table, Moment.FINISHED: entries_of_table}),
)
