"""How operations on sequences are carried out on a block manager.

Where an operation has nothing to do (no live sequence, no tokens), it does nothing: every sub-list of a trace
is a legal trace.
"""

from collections.abc import Sequence

from tokenlaw.properties import trace
from tokenlaw.properties.block_manager_calls import (
    admit,
    extend,
    fails,
    release,
    schedule,
    settle,
)
from tokenlaw.properties.step import Moment, Slot, Step, Tracked
from tokenlaw.properties.world import World
from tokenlaw.spec.contracts import DEVICE


def pick(sequences: Sequence[Tracked], number: int) -> Tracked | None:
    """The sequence that an operation names, if there is any."""
    return sequences[number % len(sequences)] if sequences else None


def new(world: World, step: Step, operation: trace.New) -> None:
    """Admit, write, commit."""
    if operation.tokens:
        settle(world, step, admit(world, step, operation.tokens, operation.namespace))
        world.exercised["new"] += 1


def append(world: World, step: Step, operation: trace.Append) -> None:
    """Schedule, write, commit."""
    sequence = pick(world.live, operation.sequence)
    if sequence and operation.tokens:
        extend(world, step, sequence, operation.tokens)
        settle(world, step, sequence)
        world.exercised["append"] += 1


def chunked(world: World, step: Step, operation: trace.Chunked) -> None:
    """Schedule, write and commit a part, then the rest, or abort.

    Needs ``commit``: a manager without it takes what it schedules as written.
    """
    sequence = _schedule(world, step, operation.tokens, operation.sequence, operation.namespace)
    if sequence is None:
        return
    count = len(operation.tokens)
    length = len(sequence) - count + min(max(operation.written, 0), count)
    for block, offset, _ in world.slots(sequence, sequence.settled):
        # What a rollback left there was final once.
        world.device.final[block][offset] = False
    if length > sequence.settled:
        settle(world, step, sequence, length)
        world.observe_keys(step, step.touched)
        world.judge(Moment.COMMITTED, step)
        world.exercised["partial commit"] += length < len(sequence)
    if operation.aborted:
        release(world, step, sequence)
    else:
        settle(world, step, sequence)


def _schedule(
    world: World, step: Step, tokens: trace.Tokens, index: int | None, namespace: str
) -> Tracked | None:
    """Admit a sequence, or extend the one with this index; None if there is nothing to do."""
    if not tokens:
        return None
    if index is None:
        return admit(world, step, tokens, namespace)
    sequence = pick(world.live, index)
    if sequence is not None:
        extend(world, step, sequence, tokens)
    return sequence


def fork(world: World, step: Step, operation: trace.Fork) -> None:
    """Fork; a manager may copy the partial tail at once."""
    parent = pick(world.live, operation.sequence)
    if parent is None:
        return
    step.act_on(parent, 0)
    needed = bool(len(parent) % world.block_size)
    handle = schedule(world, step, needed, "fork", parent.handle)
    world.observe_table(step, parent)
    child = world.add(handle, parent.namespace, list(parent.nodes))
    child.settled = parent.settled
    step.act_on(child, 0)
    world.observe_table(step, child)
    world.exercised["fork"] += 1


def rollback(world: World, step: Step, operation: trace.Rollback) -> None:
    """Forget the last tokens; too many, or a negative number, must raise and change nothing.

    With a window a manager may refuse any rollback, since it may hold no more than the window.
    """
    sequence = pick(world.live, operation.sequence)
    if sequence is None:
        return
    count, kept = operation.count, len(sequence) - operation.count
    step.act_on(sequence, 0)
    if not 0 <= count <= len(sequence):
        fails(world, step, "rollback", sequence.handle, count)
        world.exercised["bad rollback"] += 1
        world.judge(Moment.UNCHANGED, step)
        return
    if count and world.door.window is not None:
        if fails(world, step, "rollback", sequence.handle, count):
            world.judge(Moment.UNCHANGED, step)
            return
    else:
        world.door.call("rollback", sequence.handle, count)
    forgotten = _forget(world, sequence, kept)
    observe_cut(world, step, sequence, forgotten)
    world.exercised["rollback"] += count > 0
    size = world.block_size
    opened = kept % size and kept // size < step.length_before // size
    world.exercised["rollback into a full block"] += bool(opened)


def observe_cut(world: World, step: Step, sequence: Tracked, forgotten: Sequence[Slot] = ()) -> None:
    """Forgotten slots count as unwritten, but not for copies that waited, nor where one was copied to."""
    world.observe_table(step, sequence)
    world.apply_copies(step)
    copied = {copy.destination for copy in step.copies if copy.destination_tier == DEVICE}
    for block, offset, _ in forgotten:
        if block not in copied:
            world.device.final[block][offset] = False
    world.judge(Moment.CUT, step)


def _forget(world: World, sequence: Tracked, kept: int) -> list[Slot]:
    """Forget positions from ``kept`` on; the private slots of them, which count as unwritten from now on."""
    slots = world.slots(sequence, kept)
    del sequence.nodes[kept:]
    sequence.settled = kept
    return [one for one in slots if world.holders[one.block] == 1 and one.block not in world.published]


def free(world: World, step: Step, operation: trace.Free) -> None:
    """Release a sequence."""
    sequence = pick(world.live, operation.sequence)
    if sequence:
        release(world, step, sequence)
        world.exercised["free"] += 1


def free_again(world: World, step: Step, operation: trace.FreeAgain) -> None:
    """Release the last released handle again, unless the manager has given it to another sequence."""
    handles = [sequence.handle for sequence in world.live + world.swapped]
    if world.last_freed and not world.door.is_among(world.last_freed[0], handles):
        fails(world, step, "free", world.last_freed[0])
        world.exercised["free again"] += 1
        world.judge(Moment.UNCHANGED, step)


def abort(world: World, step: Step, operation: trace.Abort) -> None:
    """Schedule, then release; a manager without ``commit`` takes tokens as written, so they are."""
    sequence = _schedule(world, step, operation.tokens, operation.sequence, operation.namespace)
    if sequence is None:
        return
    if not world.door.commits:
        settle(world, step, sequence)
    release(world, step, sequence)
    world.exercised["abort"] += 1
