"""The calls that operations on a block manager are made of: admit, extend, write, settle, release.

A refusal (`OutOfBlocks`) ends the operation: `RefusedError` unwinds to the runner, after the rules have
judged that the pool was really too small and that nothing changed.
"""

from typing import Any

from tokenlaw.properties.rules.accounting import PARTITION
from tokenlaw.properties.step import Moment, Step, Tracked
from tokenlaw.properties.trace import Tokens
from tokenlaw.properties.world import World
from tokenlaw.spec.contracts import OutOfBlocks


class RefusedError(Exception):
    """The manager refused a scheduling call; the refusal has been judged."""


def schedule(world: World, step: Step, needed: int, method: str, *arguments: Any, **keywords: Any) -> Any:
    """Call a scheduling method; ``needed`` is the most blocks that it can have to take.

    Raises
    ------
    RefusedError
        The manager raised `OutOfBlocks`.
    """
    world.look(step)
    try:
        return world.door.schedule(method, *arguments, **keywords)
    except OutOfBlocks:
        step.refused = True
        free = step.free_before
        world.exercised["out of blocks"] += needed > free
        if needed <= free:
            world.report(
                PARTITION,
                f"{method} to find the {needed} blocks that it needs at most, since {free} are free",
                "OutOfBlocks",
            )
        world.judge(Moment.UNCHANGED, step)
        raise RefusedError from None


def fails(world: World, step: Step, method: str, *arguments: Any) -> bool:
    """Call a method that is illegal here, or optional; whether it raised."""
    world.look(step)
    step.raised = world.door.raises(method, *arguments)
    return step.raised


def admit(world: World, step: Step, tokens: Tokens, namespace: str) -> Tracked:
    """Allocate a sequence; its cached prefix is settled, the rest is to be written."""
    step.acting = None
    needed = world.blocks_for(len(tokens) + world.door.lookahead)
    keywords = {"namespace": namespace} if "namespaces" in world.door.capabilities else {}
    handle = schedule(world, step, needed, "allocate", list(tokens), **keywords)
    root = world.fingerprints.root(namespace)
    sequence = world.add(handle, namespace, [])
    step.act_on(sequence, 0)
    sequence.nodes = world.fingerprints.extend(root, tokens, world.epoch)
    step.hit = world.door.num_cached_tokens(handle)
    sequence.settled = min(max(step.hit, 0), len(tokens))
    world.exercised["hit"] += step.hit > 0
    _observe_scheduled(world, step, sequence)
    world.judge(Moment.ADMITTED, step)
    return sequence


def extend(world: World, step: Step, sequence: Tracked, tokens: Tokens, method: str = "append") -> None:
    """Schedule further tokens of a live sequence, committed ones or drafts."""
    size, length = world.block_size, len(sequence)
    step.act_on(sequence, length // size)
    tail = sequence.table[length // size] if length % size and length <= len(sequence.table) * size else None
    shared = tail is not None and world.in_pool(tail) and world.holders[tail] > 1
    copied = tail is not None and (shared or tail in world.published or not world.door.shows_keys)
    # Blocks that wait for lookahead tokens may be shared by a fork, too.
    waiting = sequence.table[world.blocks_for(length) :]
    replaced = copied + sum(world.in_pool(block) and world.holders[block] > 1 for block in waiting)
    needed = world.blocks_for(length + len(tokens) + world.door.lookahead) - len(sequence.table) + replaced
    schedule(world, step, needed, method, sequence.handle, list(tokens))
    world.exercised["divergence"] += shared
    last = sequence.nodes[-1] if sequence.nodes else world.fingerprints.root(sequence.namespace)
    sequence.nodes.extend(world.fingerprints.extend(last, tokens, world.epoch))
    _observe_scheduled(world, step, sequence)


def _observe_scheduled(world: World, step: Step, sequence: Tracked) -> None:
    written_from = sequence.settled
    world.observe_table(step, sequence, fresh_from=written_from // world.block_size)
    world.judge(Moment.SCHEDULED, step)
    if world.door.commits:
        world.observe_keys(step, {slot.block for slot in world.slots(sequence, written_from)})
    if not step.batching:
        world.apply_copies(step)


def settle(world: World, step: Step, sequence: Tracked, length: int | None = None) -> None:
    """Write what is scheduled, up to ``length`` if that is given, and tell the manager that it is final."""
    slots = world.slots(sequence, sequence.settled)
    if length is not None:
        slots = [slot for slot in slots if slot.position < length]
    world.write(step, slots, sequence, final=True)
    commit(world, step, sequence, length)


def commit(world: World, step: Step, sequence: Tracked, length: int | None = None) -> None:
    """Tell the manager that everything up to the length, or to ``length``, is written and final."""
    sequence.settled = len(sequence) if length is None else length
    if world.door.commits:
        world.door.call("commit", sequence.handle, sequence.settled)
        world.observe_table(step, sequence)


def release(world: World, step: Step, sequence: Tracked) -> None:
    """Free a sequence."""
    world.door.call("free", sequence.handle)
    world.release(step, sequence)
    world.last_freed = [sequence.handle]
    step.acting = None
