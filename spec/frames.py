"""Frames: what a block manager, or a KV store, shows after each operation of a trace, as data to be drawn.

`tokenlaw.properties.frames` takes those of managers, `tokenlaw.properties.kv_store_frames` those of stores. A
frame holds what was really seen through the contract, and what the harness's own memory holds by then;
nothing in it is what the trace intended, but what each sequence should read back.
"""

from enum import StrEnum
from typing import Annotated

import msgspec


class Row(msgspec.Struct, frozen=True):
    """Keys and values of one position in one layer of a store, by where they were written first.

    Forks read rows that were written for their parent. ``operation`` is the one that wrote, from 1 on.
    """

    sequence: int
    position: int
    operation: int


class Wrong(StrEnum):
    """What a position of a store reads in place of its own row."""

    OTHER = "another sequence's row"
    STALE = "a stale row"
    MOVED = "its own row of another position"
    LAYER = "the row of another layer"
    KEYS = "other keys, its own values"
    VALUES = "its own keys, other values"
    LOST = "numbers of no row"
    MISSING = "nothing"
    BEYOND = "on beyond its end"


class Misread(msgspec.Struct, frozen=True):
    """A position that reads back wrong, and the row that was found there, if it was one."""

    position: int
    wrong: Wrong
    found: Row | None = None


class SlotState(msgspec.Struct, frozen=True):
    """What a physical slot holds: ``token`` of ``position``, both None before the first write.

    Of a store, which knows no tokens, the row that was read there last. ``final`` is false for drafts, and
    for what an earlier owner of the block left behind; ``written`` if the operation, or a copy of it, changed
    the slot.
    """

    token: int | Row | None
    position: int | None
    final: bool
    written: bool


class BlockState(msgspec.Struct, frozen=True):
    """A physical block: the sequences whose tables hold it, what the manager counts, and its slots.

    ``references`` is None without capability ``ref-counts``, ``cached`` without ``cached-keys``. ``released``
    if the operation took it out of the last table. ``name`` is that of a block that isn't one: where a store
    shows no tables, the rows that a sequence reads back stand in place of its blocks.
    """

    block: int
    holders: tuple[int, ...]
    references: int | None
    cached: bool | None
    slots: tuple[SlotState, ...]
    released: bool = False
    name: str = ""


class SequenceState(msgspec.Struct, frozen=True):
    """A sequence: its tokens, its block table, and the positions that don't read back as they should.

    Of a store its rows, and of each wrong position what was read. A block that was given back below a sliding
    window is None in the table.
    """

    number: int
    tokens: tuple[int | Row, ...]
    table: tuple[int | None, ...]
    wrong: tuple[int, ...]
    swapped: bool = False
    misread: tuple[Misread, ...] = ()


class Copy(msgspec.Struct, frozen=True):
    """A copy of a block that was applied; from, or to, the host tier where it says so."""

    source: int
    destination: int
    from_host: bool = False
    to_host: bool = False


class Broken(msgspec.Struct, frozen=True):
    """The violation of a check; fields as in `tokenlaw.properties.running.Violation`."""

    check: str
    expected: str
    found: str
    sequence: int | None
    position: int | None
    block: int | None


class Frame(msgspec.Struct, frozen=True):
    """The state after one operation.

    Attributes
    ----------
    told : the operation in words.
    free : what ``num_free_blocks`` says; a store says nothing.
    refused : whether the manager, or the store, raised `OutOfBlocks`.
    broken : the violations that ended the run here.
    crash : the traceback that ended it; then the state is that before the operation.
    layer : the layer of a store that is shown.
    """

    told: str
    block_size: Annotated[int, msgspec.Meta(ge=1)]
    sequences: tuple[SequenceState, ...]
    blocks: tuple[BlockState, ...]
    copies: tuple[Copy, ...]
    free: int | None
    refused: bool = False
    broken: tuple[Broken, ...] = ()
    crash: str = ""
    layer: int | None = None
