"""Finding prefixes again: kv/cached-immutable (K7), kv/hit (K8), kv/publish (K9), kv/epoch (K10)."""

from itertools import pairwise

from tokenlaw.properties.rules.rule import Rule, block_manager_check
from tokenlaw.properties.step import Moment, Step, Tracked
from tokenlaw.properties.symbolic import NEVER_WRITTEN
from tokenlaw.properties.world import World
from tokenlaw.spec.contracts import NO_BLOCK
from tokenlaw.spec.verdicts import Severity

CACHED_IMMUTABLE = block_manager_check(
    "cached-immutable",
    "K7",
    "While a block can be hit under a key, its content stays what it was when it was published.",
    Severity.WRONG_CONTENT,
    "publish",
    needs=frozenset({"cached-keys"}),
    exercised_with=((frozenset({"evict"}), "eviction"),),
)

HIT = block_manager_check(
    "hit",
    "K8",
    "A hit covers whole blocks, leaves a token to compute, and holds the prompt's own prefix and namespace.",
    Severity.CROSS_SEQUENCE,
    "hit",
    needs=frozenset({"prefix-cache"}),
)

PUBLISH = block_manager_check(
    "publish",
    "K9",
    "A block can be hit only once it is full, written, and made of committed tokens.",
    Severity.WRONG_CONTENT,
    "publish",
    needs=frozenset({"cached-keys"}),
)

EPOCH = block_manager_check(
    "epoch",
    "K10",
    "After the weights changed, nothing written before is hit, or published again.",
    Severity.WRONG_CONTENT,
    "weights",
    "hit",
    needs=frozenset({"epochs", "prefix-cache"}),
)


def immutable_touched(world: World, step: Step) -> None:
    """K7 for the blocks that the operation touched."""
    if not step.due:
        for block in step.touched:
            _immutable(world, block)


def immutable_all(world: World, step: Step) -> None:
    """K7 for all cached blocks."""
    for block in world.published:
        _immutable(world, block)


def _immutable(world: World, block: int) -> None:
    entry = world.published.get(block)
    held = world.device.nodes[block]
    if entry is None or held == entry.nodes:
        return
    offset = next(o for o in range(world.block_size) if held[o] != entry.nodes[o])
    world.report(
        CACHED_IMMUTABLE,
        f"{world.fingerprints.words(entry.nodes[offset])} in slot {offset} of cached block {block}",
        world.content(block, offset),
        block=block,
    )


def length_of_hit(world: World, step: Step) -> None:
    """K8: a whole number of blocks, strictly shorter than the prompt, and all of them reachable."""
    sequence, hit = step.acting, step.hit
    if sequence is None or hit == 0:
        return
    if hit % world.block_size or not 0 <= hit < len(sequence):
        world.report(
            HIT,
            f"a multiple of {world.block_size} below {len(sequence)} cached tokens for a prompt of "
            f"{len(sequence)}: its last token must be computed for its logits",
            f"num_cached_tokens says {hit}",
            sequence.number,
        )
    for block in sequence.table[: hit // world.block_size]:
        if block in world.unreachable:
            expected = "no hit on a block that reset_cache() made unreachable"
            world.report(HIT, expected, f"block {block} was hit", sequence.number, block=block)


def content_of_hit(world: World, step: Step) -> None:
    """K8 and K10: the cached slots hold the prompt's own prefix, written under the present weights."""
    sequence = step.acting
    if sequence is None or step.hit <= 0:
        return
    size = world.block_size
    for i in range(min(step.hit // size, len(sequence.table))):
        block = sequence.table[i]
        if not world.in_pool(block):
            if block == NO_BLOCK and world.window_may_drop(sequence, i):
                continue
            break
        shadow = sequence.nodes[i * size : (i + 1) * size]
        if world.device.nodes[block][: len(shadow)] != shadow:
            _report_hit(world, sequence, i, block)
            break


def _report_hit(world: World, sequence: Tracked, i: int, block: int) -> None:
    size, held = world.block_size, world.device.nodes[block]
    offset = next(o for o in range(size) if held[o] != sequence.nodes[i * size + o])
    position = i * size + offset
    stale = world.fingerprints.differ_in_epoch_only(held[offset], sequence.nodes[position])
    world.report(
        EPOCH if stale else HIT,
        f"{world.expected(sequence, position)} in the cached prefix",
        f"{world.content(block, offset)}, in slot {offset} of block {block}",
        sequence.number,
        position,
    )


def published(world: World, step: Step) -> None:
    """K9 for blocks that have just become reachable."""
    for block in step.published:
        nodes, final = world.device.nodes[block], world.device.final[block]
        offset = next((o for o in range(world.block_size) if not final[o]), None)
        if offset is not None:
            world.report(
                PUBLISH,
                f"block {block} to be full of written, committed tokens when it becomes reachable",
                f"slot {offset} holds {world.content(block, offset)}"
                + (", which is a draft or left over from before" if nodes[offset] else ""),
                block=block,
            )
        elif not _is_chain(world, nodes):
            tokens = "; ".join(world.content(block, o) for o in range(world.block_size))
            expected = f"block {block} to hold consecutive positions when it becomes reachable"
            world.report(PUBLISH, expected, tokens, block=block)


def _is_chain(world: World, nodes: list[int]) -> bool:
    fingerprints = world.fingerprints
    return (
        NEVER_WRITTEN not in nodes
        and fingerprints.position(nodes[0]) % world.block_size == 0
        and all(fingerprints.parent(after) == before for before, after in pairwise(nodes))
    )


def published_epoch(world: World, step: Step) -> None:
    """K10: a block with positions from before the last change of weights isn't published after it."""
    for block in step.published:
        last = world.device.nodes[block][-1]
        oldest = world.fingerprints.oldest_epoch(last)
        if last != NEVER_WRITTEN and oldest < world.epoch and all(world.device.final[block]):
            world.report(
                EPOCH,
                f"block {block} to be published only with positions of epoch {world.epoch}",
                f"it holds {world.content(block, world.block_size - 1)}",
                block=block,
            )


RULES = (
    Rule(CACHED_IMMUTABLE, {Moment.FINISHED: immutable_touched, Moment.READ_BACK: immutable_all}),
    Rule(HIT, {Moment.SCHEDULED: length_of_hit, Moment.ADMITTED: content_of_hit}),
    Rule(PUBLISH, {Moment.PUBLISHED: published}),
    Rule(EPOCH, {Moment.PUBLISHED: published_epoch}),
)
