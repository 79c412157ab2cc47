"""Takes frames (`tokenlaw.spec.frames`): what a block manager says of itself after each operation."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import msgspec

from tokenlaw.properties import words
from tokenlaw.properties.block_manager_run import run_trace
from tokenlaw.properties.replaying import trace_of
from tokenlaw.properties.rules import BLOCK_MANAGER_CHECKS
from tokenlaw.properties.running import Outcome, Violation
from tokenlaw.properties.step import Step, Tracked
from tokenlaw.properties.symbolic import NEVER_WRITTEN, Fingerprints
from tokenlaw.properties.trace import Trace
from tokenlaw.properties.world import World
from tokenlaw.spec.announcing import announce
from tokenlaw.spec.contracts import HOST, NO_BLOCK, BlockCopy, CacheConfig
from tokenlaw.spec.frames import BlockState, Broken, Copy, Frame, SequenceState, SlotState
from tokenlaw.spec.verdicts import Evidence, Verdict

MOST_SLOTS = 20_000
"""Slots of all frames together; longer traces, and larger pools, have no frames: nobody could read them."""

Frames = list[dict[str, Any]]
"""Each a `tokenlaw.spec.frames.Frame` as plain data."""


class Film(Protocol):
    """Runs a trace on a fresh target and looks at it after each operation."""

    def __call__(
        self,
        factory: Callable[[CacheConfig], Any],
        trace: Trace,
        capabilities: frozenset[str],
        check: str | None = None,
        /,
    ) -> tuple[Outcome, Frames]:
        """Run and look.

        Parameters
        ----------
        factory, trace, capabilities : as in ``run_trace`` of the contract.
        check : what breaks before this check doesn't end the run; everything does without it.

        Returns
        -------
        outcome
            Of the run, everything having been read back after every operation.
        frames
            One for each operation until the run ended; none for what is too large to draw.
        """


def film(
    manager_factory: Callable[[CacheConfig], Any],
    trace: Trace,
    capabilities: frozenset[str],
    check: str | None = None,
) -> tuple[Outcome, Frames]:
    """A `Film` of a block manager, in which all other checks than ``check`` are muted."""
    muted = frozenset(one.id for one in BLOCK_MANAGER_CHECKS if check not in (None, one.id))
    slots = trace.config.num_blocks * trace.config.block_size * len(trace.operations)
    if slots > MOST_SLOTS:
        return run_trace(manager_factory, trace, capabilities, muted), []
    camera = _Camera(trace)
    outcome = run_trace(manager_factory, trace, capabilities, muted, watch=camera)
    return outcome, developed(camera.frames, trace, outcome)


def developed(frames: list[Frame], trace: Trace, outcome: Outcome) -> Frames:
    """The frames of a run as plain data; after a crash with one more, of the state before it."""
    if outcome.crash is not None and frames and len(frames) < len(trace.operations):
        told = words.lines(trace)[len(frames)]
        last = msgspec.structs.replace(frames[-1], told=told, copies=(), crash=outcome.crash)
        frames = [*frames, last]
    plain: Frames = msgspec.json.decode(msgspec.json.encode(frames))
    return plain


def broken_of(violations: list[Violation]) -> tuple[Broken, ...]:
    """The violations that end a run, as frames hold them."""
    return tuple(
        Broken(one.check, one.expected, one.found, one.sequence, one.position, one.block)
        for one in violations
    )


def filmed(
    rows: list[Evidence],
    contract: str,
    take: Film,
    factory: Callable[[CacheConfig], Any],
    capabilities: frozenset[str],
) -> list[Evidence]:
    """The evidence of an exploration, with the frames that ``take`` takes of each counterexample."""

    def one(row: Evidence) -> Evidence:
        if row.counterexample is None:
            return row
        trace = trace_of(row.counterexample, contract)
        announce(trace)
        _, frames = take(factory, trace, capabilities, row.check.id)
        return replace(row, frames=frames)

    return [one(row) for row in rows]


def with_frames(rows: list[Evidence], frames: Frames) -> list[Evidence]:
    """The evidence of one replay, its frames with what is refuted, or else with the first that was tried."""
    refuted = [row for row in rows if row.verdict is Verdict.REFUTED]
    tried = [row for row in rows if row.verdict in (Verdict.UNKNOWN, Verdict.HOLDS)]
    shown = {row.check.id for row in refuted or tried[:1]}
    return [replace(row, frames=frames) if row.check.id in shown else row for row in rows]


class _Camera:
    """Takes a frame after each operation."""

    def __init__(self, trace: Trace) -> None:
        self._told = words.lines(trace)
        self._before: dict[int, list[tuple[int, int]]] = {}
        self._held: dict[int, tuple[int, ...]] = {}
        self.frames: list[Frame] = []

    def __call__(self, world: World, step: Step) -> None:
        """Look at everything."""
        numbers = range(world.config.num_blocks)
        door = world.door
        references = door.ref_counts(numbers) if door.counts_references else [None] * len(numbers)
        keys = door.cached_keys(numbers) if door.shows_keys else None
        blocks = []
        for number, count in zip(numbers, references, strict=True):
            cached = None if keys is None else keys[number] is not None
            holders = _holders(world, number)
            released = bool(self._held.get(number)) and not holders
            self._held[number] = holders
            blocks.append(BlockState(number, holders, count, cached, self._slots(world, number), released))
        self.frames.append(
            Frame(
                self._told[step.number],
                world.block_size,
                tuple(_sequence(world, one) for one in sorted([*world.live, *world.swapped], key=_number)),
                tuple(blocks),
                tuple(map(_copy, step.applied)),
                door.num_free_blocks(),
                step.refused,
                broken_of(world.violations),
            )
        )

    def _slots(self, world: World, block: int) -> tuple[SlotState, ...]:
        nodes = world.device.nodes.get(block) or [NEVER_WRITTEN] * world.block_size
        writers = world.device.writers.get(block) or [-1] * world.block_size
        final = world.device.final.get(block) or [False] * world.block_size
        now = list(zip(nodes, writers, strict=True))
        before, self._before[block] = self._before.get(block, [(NEVER_WRITTEN, -1)] * len(now)), now
        return tuple(
            _slot(world.fingerprints, node, done, written=old != new)
            for node, done, old, new in zip(nodes, final, before, now, strict=True)
        )


def _number(sequence: Tracked) -> int:
    return sequence.number


def _slot(fingerprints: Fingerprints, node: int, final: bool, *, written: bool) -> SlotState:
    if node == NEVER_WRITTEN:
        return SlotState(None, None, False, written)
    return SlotState(fingerprints.tokens(node)[-1], fingerprints.position(node), final, written)


def _holders(world: World, block: int) -> tuple[int, ...]:
    return tuple(one.number for one in world.live for held in one.table if held == block)


def _copy(copy: BlockCopy) -> Copy:
    return Copy(copy.source, copy.destination, copy.source_tier == HOST, copy.destination_tier == HOST)


def _sequence(world: World, tracked: Tracked) -> SequenceState:
    tokens = world.fingerprints.tokens(tracked.nodes[-1]) if tracked.nodes else []
    swapped = tracked in world.swapped
    table = [] if swapped else tracked.table
    shown = tuple(None if block == NO_BLOCK else block for block in table)
    return SequenceState(tracked.number, tuple(tokens), shown, _wrong(world, tracked, table), swapped)


def _wrong(world: World, tracked: Tracked, table: list[int]) -> tuple[int, ...]:
    """Positions, as far as they are written, whose slot holds something else."""
    size, found = world.block_size, []
    for position in range(min(tracked.settled, len(tracked), len(table) * size)):
        block = table[position // size]
        if block == NO_BLOCK:
            continue
        if not world.in_pool(block) or world.device.nodes[block][position % size] != tracked.nodes[position]:
            found.append(position)
    return tuple(found)
