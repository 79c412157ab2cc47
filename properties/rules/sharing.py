"""Blocks with several holders: kv/write-shared (K4), kv/copy-budget (K5), kv/copy-order (K25) and
kv/bystanders (K11).
"""

from collections import Counter

from tokenlaw.properties.rules.rule import Rule, block_manager_check
from tokenlaw.properties.step import Moment, Step
from tokenlaw.properties.trace import Batch, FreeSwapped, SpeculateBatch, SwapIn
from tokenlaw.properties.world import World
from tokenlaw.spec.contracts import DEVICE, BlockCopy
from tokenlaw.spec.verdicts import Severity

WRITE_SHARED = block_manager_check(
    "write-shared",
    "K4",
    "A block is written only while one table holds it and it can't be hit.",
    Severity.CROSS_SEQUENCE,
    "append",
    exercised_with=((frozenset({"fork"}), "divergence"),),
)

COPY_BUDGET = block_manager_check(
    "copy-budget",
    "K5",
    "A divergence copies at most one block, and none at a block boundary.",
    Severity.EFFICIENCY,
    "divergence",
    "copy",
    needs=frozenset({"fork", "copies"}),
)

COPY_ORDER = block_manager_check(
    "copy-order",
    "K25",
    "A list of copies gives the same result in every order, unless copies_in_order is declared.",
    Severity.WRONG_CONTENT,
    "copy",
    needs=frozenset({"copies"}),
    exercised_with=((frozenset({"commit", "fork"}), "several copies"),),
)

BYSTANDERS = block_manager_check(
    "bystanders",
    "K11",
    "An operation changes neither table nor length of a sequence that it doesn't act on.",
    Severity.CROSS_SEQUENCE,
    "read back",
)


def write_shared(world: World, step: Step) -> None:
    """K4 for the slots about to be written, whatever their content."""
    filled = {slot.block for slot in step.slots if slot.offset == world.block_size - 1}
    for block in {slot.block for slot in step.slots}:
        _judge_holders(world, step, block, "written")
        # Without ``commit``, scheduling the last slot of a block may rightly publish it again.
        if world.door.commits or block not in filled:
            _judge_reachable(world, step, block, "written")


def copy_onto_shared(world: World, step: Step) -> None:
    """K4 for copies: a copy writes its destination."""
    for copy in step.copies:
        if copy.destination_tier == DEVICE and world.in_pool(copy.destination):
            _judge_holders(world, step, copy.destination, "overwritten by a copy")
            _judge_reachable(world, step, copy.destination, "overwritten by a copy")


def _judge_holders(world: World, step: Step, block: int, how: str) -> None:
    acting = step.acting.number if step.acting else None
    holders = world.holders[block]
    if holders != 1:
        owner = "one sequence" if acting is None else f"sequence {acting}"
        expected = f"block {block} to be held by {owner} alone when it is {how}"
        found = f"held by sequences: {world.names_of_holders(block)}"
        world.report(WRITE_SHARED, expected, found, acting, block=block)


def _judge_reachable(world: World, step: Step, block: int, how: str) -> None:
    acting = step.acting.number if step.acting else None
    entry = world.published.get(block)
    if entry and world.door.cached_key(block) == entry.key:
        expected = f"block {block} not to be reachable through the cache when it is {how}"
        world.report(WRITE_SHARED, expected, f"it can be hit under key {entry.key!r}", acting, block=block)


def copy_budget(world: World, step: Step) -> None:
    """K5: one copy where the tail of the acting sequence is partial, none elsewhere.

    What a swap out has only decided yet may be swapped in by copies from block to block, and a batch may
    copy for each of its sequences.
    """
    if isinstance(step.operation, SwapIn | FreeSwapped | Batch | SpeculateBatch):
        return
    copies = [copy for copy in step.copies if copy.source_tier == copy.destination_tier == DEVICE]
    length = min(step.length_before, len(step.acting)) if step.acting else 0
    allowed = int(length % world.block_size != 0)
    if len(copies) > allowed:
        world.report(
            COPY_BUDGET,
            f"at most {allowed} copied block, since {length} tokens end "
            + ("inside a block" if allowed else "at a block boundary"),
            f"{len(copies)} copies: {_words(copies)}",
            step.acting.number if step.acting else None,
        )


def copy_order(world: World, step: Step) -> None:
    """K25: no block is the destination of two copies, or destination of one and source of another."""
    if world.door.copies_in_order:
        return
    destinations = Counter((copy.destination_tier, copy.destination) for copy in step.copies)
    sources = {(copy.source_tier, copy.source) for copy in step.copies}
    clashes = [place for place, count in destinations.items() if count > 1 or place in sources]
    if clashes:
        world.report(
            COPY_ORDER,
            "copies that don't depend on their order",
            f"{_words(step.copies)}: block {clashes[0][1]} is written and also read or written by another",
            block=clashes[0][1],
        )


def _words(copies: list[BlockCopy]) -> str:
    return ", ".join(
        f"{copy.source} ({copy.source_tier}) -> {copy.destination} ({copy.destination_tier})"
        for copy in copies
    )


def bystanders(world: World, step: Step) -> None:
    """K11: the tables and lengths of all live sequences are as they were seen last."""
    for sequence in world.live:
        if sequence is step.acting:
            continue
        table = world.door.block_table(sequence.handle)
        if table != sequence.table:
            expected = f"table {sequence.table} of sequence {sequence.number}, which didn't act"
            world.report(BYSTANDERS, expected, f"table {table}", sequence.number)
            world.observe_table(step, sequence)
        if world.door.shows_lengths and world.door.num_tokens(sequence.handle) != len(sequence):
            found = f"num_tokens says {world.door.num_tokens(sequence.handle)}"
            expected = f"length {len(sequence)} of sequence {sequence.number}, which didn't act"
            world.report(BYSTANDERS, expected, found, sequence.number)


RULES = (
    Rule(WRITE_SHARED, {Moment.WRITING: write_shared, Moment.COPYING: copy_onto_shared}),
    Rule(COPY_BUDGET, {Moment.COPYING: copy_budget}),
    Rule(COPY_ORDER, {Moment.COPYING: copy_order}),
    Rule(BYSTANDERS, {Moment.READ_BACK: bystanders}),
)
