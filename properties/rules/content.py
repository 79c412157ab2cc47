"""What positions read back as: kv/content (K1) and kv/window (K17)."""

from tokenlaw.properties.rules.rule import Rule, block_manager_check
from tokenlaw.properties.step import Moment, Step, Tracked
from tokenlaw.properties.world import World
from tokenlaw.spec.contracts import NO_BLOCK
from tokenlaw.spec.verdicts import Severity

CONTENT = block_manager_check(
    "content",
    "K1",
    "Every live position reads back, through the block table, exactly what was written for it.",
    Severity.WRONG_CONTENT,
    "read back",
    exercised_with=(
        (frozenset({"fork"}), "fork"),
        (frozenset({"rollback"}), "rollback into a full block"),
        (frozenset({"prefix-cache"}), "hit"),
    ),
)

WINDOW = block_manager_check(
    "window",
    "K17",
    "A block is given back only when no query of the sliding window can see it any more.",
    Severity.WRONG_CONTENT,
    "window drop",
    needs=frozenset({"window"}),
)


def content_of_acting(world: World, step: Step) -> None:
    """K1 for what the operation may have changed in its sequence."""
    if step.acting:
        _content(world, step.acting, step.first_block)


def content_of_all(world: World, step: Step) -> None:
    """K1 for every live sequence."""
    world.exercised["read back"] += bool(world.live)
    for sequence in world.live:
        if sequence is not step.acting or step.first_block:
            _content(world, sequence, 0)


def _content(world: World, sequence: Tracked, first_block: int) -> None:
    size, memory = world.block_size, world.device.nodes
    nodes, table, length = sequence.nodes, sequence.table, len(sequence)
    for i in range(first_block, world.blocks_for(length)):
        shadow = nodes[i * size : (i + 1) * size]
        block = table[i] if i < len(table) else NO_BLOCK
        held = memory[block][: len(shadow)] if world.in_pool(block) else []
        if held != shadow and not (block == NO_BLOCK and world.window_may_drop(sequence, i)):
            _report(world, sequence, i, block)
            return


def _report(world: World, sequence: Tracked, i: int, block: int) -> None:
    size = world.block_size
    position = i * size
    if not world.in_pool(block):
        what = "missing" if i >= len(sequence.table) else f"block {block}, outside the pool"
        found = f"no slot: logical block {i} is {what}"
    else:
        held = world.device.nodes[block]
        position += next(o for o in range(size) if held[o] != sequence.nodes[position + o])
        found = f"{world.content(block, position % size)}, in slot {position % size} of block {block}"
    world.report(CONTENT, world.expected(sequence, position), found, sequence.number, position)


def window(world: World, step: Step) -> None:
    """K17: what a query at a position >= ``settled`` sees is in the table."""
    sequence = step.acting
    if sequence is None or world.door.window is None:
        return
    size, needed = world.block_size, world.first_needed(sequence.settled)
    blocks = sequence.table[needed // size : world.blocks_for(len(sequence))]
    if NO_BLOCK in blocks:
        missing = needed // size + blocks.index(NO_BLOCK)
        world.report(
            WINDOW,
            f"positions {needed} and later to be readable ({sequence.settled} of {len(sequence)} tokens are "
            f"written, window {world.door.window})",
            f"logical block {missing} (positions {missing * size} and later) was given back",
            sequence.number,
            max(needed, missing * size),
        )


RULES = (
    Rule(CONTENT, {Moment.FINISHED: content_of_acting, Moment.READ_BACK: content_of_all}),
    Rule(WINDOW, {Moment.SCHEDULED: window, Moment.COMMITTED: window, Moment.FINISHED: window}),
)
