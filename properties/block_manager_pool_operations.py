"""How operations on the pool are carried out on a block manager: its cache, its tiers, steps in flight."""

from tokenlaw.properties import trace
from tokenlaw.properties.block_manager_calls import RefusedError, admit, extend, release, schedule, settle
from tokenlaw.properties.block_manager_operations import pick
from tokenlaw.properties.rules.accounting import PARTITION
from tokenlaw.properties.step import Moment, Step
from tokenlaw.properties.world import World


def evict(world: World, step: Step, operation: trace.Evict) -> None:
    """Drop cached blocks that nobody holds; what was dropped is seen by the keys, if they are shown."""
    before = set(world.published)
    said = world.door.evict(max(0, operation.count))
    world.observe_all_keys(step)
    world.exercised["eviction"] += len(before.difference(world.published)) if world.door.shows_keys else said


def reset(world: World, step: Step, operation: trace.Reset) -> None:
    """Make cached blocks unreachable; what keeps its key though nobody held it, or though it was published
    before, must not be hit until it is written or published again.
    """
    keys_before = {block: entry.key for block, entry in world.published.items()}
    world.door.call("reset_cache")
    world.observe_all_keys(step)
    for block, holders in enumerate(world.holders):
        entry = world.published.get(block)
        if not holders or (entry and keys_before.get(block) == entry.key):
            world.unreachable[block] = entry.key if entry else None
    world.exercised["reset"] += 1


def weights(world: World, step: Step, operation: trace.Weights) -> None:
    """A new epoch."""
    world.door.call("new_epoch")
    world.epoch += 1
    world.observe_all_keys(step)
    world.exercised["weights"] += 1


def swap_out(world: World, step: Step, operation: trace.SwapOut) -> None:
    """Move a sequence to the host, whose size is unknown: a refusal is legal, unless the host is empty and
    has held as many blocks before. Its copies wait for the next operation, which may add others to them.
    """
    sequence = pick(world.live, operation.sequence)
    if sequence is None:
        return
    step.act_on(sequence, 0)
    blocks = sum(map(world.in_pool, sequence.table))
    try:
        schedule(world, step, world.config.num_blocks + 1, "swap_out", sequence.handle)
    except RefusedError:
        if not world.swapped and blocks <= world.host_blocks:
            expected = f"room for {blocks} blocks: the host is empty and has held {world.host_blocks}"
            world.report(PARTITION, expected, "OutOfBlocks", sequence.number)
        raise
    world.host_blocks = max(world.host_blocks, blocks)
    world.release(step, sequence)
    step.acting = None
    world.swapped.append(sequence)
    world.swapped.sort(key=lambda tracked: tracked.number)


def swap_in(world: World, step: Step, operation: trace.SwapIn) -> None:
    """Bring a sequence back; live sequences stay in order of creation."""
    sequence = pick(world.swapped, operation.sequence)
    if sequence is None:
        return
    step.acting = None
    needed = world.blocks_for(len(sequence) + world.door.lookahead)
    schedule(world, step, needed, "swap_in", sequence.handle)
    world.swapped.remove(sequence)
    world.live.append(sequence)
    world.live.sort(key=lambda tracked: tracked.number)
    step.act_on(sequence, 0)
    world.observe_table(step, sequence)
    world.exercised["swap"] += 1


def free_swapped(world: World, step: Step, operation: trace.FreeSwapped) -> None:
    """Release a sequence that is out, as an abort of a preempted request does."""
    sequence = pick(world.swapped, operation.sequence)
    if sequence is None:
        return
    step.acting = None
    world.door.call("free", sequence.handle)
    world.swapped.remove(sequence)
    world.last_freed = [sequence.handle]
    world.exercised["free swapped"] += 1


def late_write(world: World, step: Step, operation: trace.LateWrite) -> None:
    """Schedule for one sequence, release it, admit and write another; then the first write lands."""
    sequence = pick(world.live, operation.sequence)
    if sequence is None or not operation.tokens or not operation.prompt:
        return
    world.door.call("begin_step")
    try:
        length = len(sequence)
        extend(world, step, sequence, operation.tokens)
        slots = step.slots = world.slots(sequence, length)
        world.judge(Moment.WRITING, step)
        release(world, step, sequence)
        try:
            settle(world, step, admit(world, step, operation.prompt, ""))
        finally:
            step.slots = slots
            world.judge(Moment.LATE, step)
            world.land(step, slots, sequence, final=False)
            world.exercised["late write"] += 1
    finally:
        world.door.call("end_step")
