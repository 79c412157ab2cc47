"""Frames: what a block manager says of itself after each operation of a trace, as plain data to be drawn.

`tokenlaw.properties.frames` takes them. A frame holds what was really seen through the contract, and what
the harness's own memory holds by then; nothing in it is what the trace intended, but the tokens that each
sequence should read back.
"""

from typing import Annotated

import msgspec


class SlotState(msgspec.Struct, frozen=True):
    """What a physical slot holds: ``token`` of ``position``, both None before the first write.

    ``final`` is false for drafts, and for what an earlier owner of the block left behind; ``written`` if the
    operation, or a copy of it, changed the slot.
    """

    token: int | None
    position: int | None
    final: bool
    written: bool


class BlockState(msgspec.Struct, frozen=True):
    """A physical block: the sequences whose tables hold it, what the manager counts, and its slots.

    ``references`` is None without capability ``ref-counts``, ``cached`` without ``cached-keys``.
    """

    block: int
    holders: tuple[int, ...]
    references: int | None
    cached: bool | None
    slots: tuple[SlotState, ...]


class SequenceState(msgspec.Struct, frozen=True):
    """A sequence: its tokens, its block table, and the positions that don't read back as they should.

    A block that was given back below a sliding window is None in the table.
    """

    number: int
    tokens: tuple[int, ...]
    table: tuple[int | None, ...]
    wrong: tuple[int, ...]
    swapped: bool = False


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
    free : what ``num_free_blocks`` says.
    refused : whether the manager raised `OutOfBlocks`.
    broken : the violations that ended the run here.
    crash : the traceback that ended it; then the state is that before the operation.
    """

    told: str
    block_size: Annotated[int, msgspec.Meta(ge=1)]
    sequences: tuple[SequenceState, ...]
    blocks: tuple[BlockState, ...]
    copies: tuple[Copy, ...]
    free: int
    refused: bool = False
    broken: tuple[Broken, ...] = ()
    crash: str = ""
