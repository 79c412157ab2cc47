"""Takes frames (`tokenlaw.spec.frames`) of a KV store: what each sequence reads back after each operation.

A store is seen through its contract only. Where it shows block tables, what is read at a position lies in the
slot that the table names, and a slot that nobody reads is taken to hold what was read there last. Where it
shows none, the rows that each sequence reads stand in place of its blocks.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tokenlaw.properties import words
from tokenlaw.properties.frames import MOST_SLOTS, Frames, broken_of, developed
from tokenlaw.properties.kv_store_operations import Operations
from tokenlaw.properties.kv_store_rows import Reading, Rows
from tokenlaw.properties.kv_store_run import run_trace
from tokenlaw.properties.kv_store_shadow import ShadowedStore
from tokenlaw.properties.kv_store_tables import Tables
from tokenlaw.properties.running import Outcome
from tokenlaw.properties.trace import Trace
from tokenlaw.spec.contracts import CacheConfig
from tokenlaw.spec.frames import BlockState, Copy, Frame, Row, SequenceState, SlotState, Wrong

Place = tuple[int, int]
"""A block, and the offset of a slot in it."""


def film(
    store_factory: Callable[[CacheConfig], Any],
    trace: Trace,
    capabilities: frozenset[str],
    check: str | None = None,
) -> tuple[Outcome, Frames]:
    """A `tokenlaw.properties.frames.Film` of a KV store, in which what breaks before ``check`` is muted.

    The frames are those of the first layer in which something reads back wrong at the end, if there is one
    then what no muted check broke before, or else of the first one.
    """
    config, muted = trace.config, frozenset[str]()
    slots = config.num_blocks * config.block_size * config.num_layers * len(trace.operations)
    while True:
        camera = _Camera(trace)
        watch = camera if slots <= MOST_SLOTS else _look_away
        outcome = run_trace(store_factory, trace, capabilities, muted, watch)
        broke = {violation.check for violation in outcome.violations}
        if check is None or check in broke or not broke:
            return outcome, developed(camera.frames, trace, outcome)
        muted |= broke


def _look_away(operations: Operations) -> None:
    """Take no frame."""


class _Camera:
    """Takes a frame of each layer after each operation."""

    def __init__(self, trace: Trace) -> None:
        self._told = words.lines(trace)
        self._rows = Rows()
        self._refusals = 0
        self._layers = [_Layer(number) for number in range(trace.config.num_layers)]
        self._taken: list[list[Frame]] = []
        self._damaged: frozenset[int] = frozenset()

    def __call__(self, operations: Operations) -> None:
        """Look at everything."""
        store, refusals = operations.store, operations.exercised["out of blocks"]
        refused, self._refusals = refusals > self._refusals, refusals
        self._rows.learn(store.payload, store.operation + 1)
        told = self._told[store.operation]
        self._taken.append([layer.frame(store, self._rows, told, refused) for layer in self._layers])
        self._damaged = frozenset(shadow.number for shadow in store.live if shadow.damaged)

    @property
    def frames(self) -> list[Frame]:
        """Those of the layer that shows most."""
        last = self._taken[-1] if self._taken else []
        wrong = [{one.number for one in frame.sequences if one.wrong} for frame in last]
        telling = [(bool(numbers - self._damaged), bool(numbers)) for numbers in wrong]
        shown = telling.index(max(telling)) if telling else 0
        return [frames[shown] for frames in self._taken]


class _Layer:
    """Looks at one layer, and remembers what was read in each slot last, and who held each block."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._tables = Tables(number)
        self._held: dict[int, tuple[int, ...]] = {}
        self._slots: dict[Place, Row | None] = {}

    def frame(self, store: ShadowedStore, rows: Rows, told: str, refused: bool) -> Frame:
        """The state of this layer, of which the last one was that before the operation."""
        readings = [rows.reading(store, shadow, self._number) for shadow in store.live]
        tables = self._tables.of(store)
        seen = _seen(readings, tables, store.config.block_size)
        foreign = _foreign(readings, tables, store.config.block_size)
        copies = self._copies({place: row for place, row in seen.items() if place not in foreign}, store)
        blocks = self._blocks(seen, tables, copies, store)
        self._slots |= seen
        return Frame(
            told,
            store.config.block_size,
            tuple(_sequence(one, tables[one.shadow.number]) for one in readings),
            tuple(blocks),
            copies,
            None,
            refused,
            broken_of(store.violations),
            layer=self._number,
        )

    def _copies(self, seen: dict[Place, Row | None], store: ShadowedStore) -> tuple[Copy, ...]:
        """Blocks in which rows turn up that were written before, and lay in another block until now."""
        if not self._tables.shown:
            return ()
        found = {}
        for (block, offset), row in seen.items():
            if row is None or row.operation == store.operation + 1 or self._slots.get((block, offset)) == row:
                continue
            sources = [place[0] for place, held in self._slots.items() if held == row and place[1] == offset]
            if sources:
                found[block] = Copy(max(sources, key=lambda source: len(self._held.get(source, ()))), block)
        return tuple(found.values())

    def _blocks(
        self,
        seen: dict[Place, Row | None],
        tables: dict[int, list[int]],
        copies: tuple[Copy, ...],
        store: ShadowedStore,
    ) -> list[BlockState]:
        blocks, copied = [], {copy.destination for copy in copies}
        for block in self._tables.pool(store):
            holders = tuple(number for number, table in tables.items() for held in table if held == block)
            released = bool(self._held.get(block)) and not holders
            self._held[block] = holders
            slots = tuple(
                self._slot((block, offset), seen, block in copied, store.operation + 1)
                for offset in range(store.config.block_size)
            )
            name = self._tables.name(block, store.config.block_size)
            blocks.append(BlockState(block, holders, None, None, slots, released, name))
        return blocks

    def _slot(self, place: Place, seen: dict[Place, Row | None], copied: bool, operation: int) -> SlotState:
        """A slot; erased if it was read before, and holds no row any more."""
        before, row = self._slots.get(place), seen.get(place, self._slots.get(place))
        if row is None:
            return SlotState(None, None, place in seen, before is not None)
        written = row != before and (copied or row.operation == operation)
        return SlotState(row, row.position, place in seen, written)


def _seen(readings: Sequence[Reading], tables: dict[int, list[int]], size: int) -> dict[Place, Row | None]:
    """What is read in each slot; where sequences that share it read different rows, the wrong one."""
    seen: dict[Place, Row | None] = {}
    for reading in readings:
        table, wrong = tables[reading.shadow.number], {one.position: one.wrong for one in reading.misread}
        for position, row in enumerate(reading.found[: len(table) * size]):
            place = table[position // size], position % size
            if wrong.get(position) != Wrong.MISSING and (place not in seen or position in wrong):
                seen[place] = row
    return seen


def _foreign(readings: Sequence[Reading], tables: dict[int, list[int]], size: int) -> set[Place]:
    """Slots in which some sequence finds a row that doesn't belong there."""
    found: set[Place] = set()
    for reading in readings:
        table = tables[reading.shadow.number]
        for one in reading.misread:
            if one.wrong not in (Wrong.KEYS, Wrong.VALUES) and one.position < len(table) * size:
                found.add((table[one.position // size], one.position % size))
    return found


def _sequence(reading: Reading, table: list[int]) -> SequenceState:
    wrong = tuple(one.position for one in reading.misread)
    return SequenceState(
        reading.shadow.number, reading.expected, tuple(table), wrong, misread=reading.misread
    )
