"""How steps of an engine are carried out on a block manager: batches, and drafts that are verified."""

from collections.abc import Iterator
from contextlib import contextmanager

from tokenlaw.properties import trace
from tokenlaw.properties.block_manager_calls import RefusedError, commit, extend, release, settle
from tokenlaw.properties.block_manager_operations import observe_cut, pick
from tokenlaw.properties.history import batch_of, verified
from tokenlaw.properties.step import Step, Tracked
from tokenlaw.properties.world import World


@contextmanager
def _one_step(world: World, step: Step) -> Iterator[None]:
    """Copies and writes wait for all that is scheduled within the block."""
    step.batching = True
    yield
    step.batching = False
    world.apply_copies(step)


def _scheduled(world: World, step: Step, sequence: Tracked, tokens: trace.Tokens, method: str) -> bool:
    """Whether the tokens fit; a refused sequence stays as it was."""
    try:
        extend(world, step, sequence, tokens, method)
    except RefusedError:
        if world.violations:
            raise
        return False
    return True


def batch(world: World, step: Step, operation: trace.Batch) -> None:
    """Schedule for several sequences before anything is copied or written.

    Needs ``commit``: a manager without it may publish what it schedules, which then isn't written yet.
    """
    appended, released = batch_of(operation, world.live)
    leaves_after = next((one for one, _ in appended if one is released), appended[0][0] if appended else None)
    scheduled = []
    with _one_step(world, step):
        for sequence, token in appended:
            if _scheduled(world, step, sequence, (token,), "append") and sequence is not released:
                scheduled.append(sequence)
            if released is not None and sequence is leaves_after:
                release(world, step, released)
    for sequence in scheduled:
        step.act_on(sequence, sequence.settled // world.block_size)
        settle(world, step, sequence)
    world.exercised["batch"] += len(scheduled) > 1


def speculate(world: World, step: Step, operation: trace.Speculate) -> None:
    """Schedule and write drafts, then accept some of them."""
    sequence = pick(world.live, operation.sequence)
    if sequence is None or not operation.drafts:
        return
    extend(world, step, sequence, operation.drafts, "speculate")
    _write_drafts(world, step, sequence, len(operation.drafts))
    accepted = min(max(operation.accepted, 0), len(operation.drafts))
    _verify(world, step, sequence, len(operation.drafts), accepted)


def speculate_batch(world: World, step: Step, operation: trace.SpeculateBatch) -> None:
    """Schedule drafts for several sequences, write all, then accept or release one after the other."""
    scheduled = []
    with _one_step(world, step):
        for sequence, drafts, kept in verified(operation, world.live):
            if _scheduled(world, step, sequence, drafts, "speculate"):
                scheduled.append((sequence, len(drafts), kept))
    for sequence, count, _ in scheduled:
        step.act_on(sequence, sequence.settled // world.block_size)
        _write_drafts(world, step, sequence, count)
    for sequence, count, kept in scheduled:
        if kept < 0:
            release(world, step, sequence)
        else:
            _verify(world, step, sequence, count, kept)
    world.exercised["batch of drafts"] += len(scheduled) > 1


def _write_drafts(world: World, step: Step, sequence: Tracked, count: int) -> None:
    slots = world.slots(sequence, len(sequence) - count)
    world.write(step, slots, sequence, final=False)
    world.observe_keys(step, {slot.block for slot in slots})


def _verify(world: World, step: Step, sequence: Tracked, count: int, accepted: int) -> None:
    """Accept so many of the ``count`` drafts at the end of the sequence."""
    length = len(sequence) - count
    kept = length + accepted
    step.act_on(sequence, length // world.block_size)
    step.length_before = length
    slots = world.slots(sequence, length)
    world.land(step, [slot for slot in slots if slot.position < kept], sequence, final=True)
    del sequence.nodes[kept:]
    world.door.call("accept", sequence.handle, accepted)
    observe_cut(world, step, sequence)
    world.exercised["slots kept ahead"] += len(sequence.table) > world.blocks_for(kept)
    commit(world, step, sequence)
    world.exercised["speculation"] += 1
    world.exercised["full acceptance" if accepted == count else "rejection"] += 1
