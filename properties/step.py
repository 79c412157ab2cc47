"""Pieces of a run on a block manager: moments, tracked sequences, slots, and the operation under way."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

from tokenlaw.properties.trace import Operation
from tokenlaw.spec.contracts import BlockCopy


class Moment(Enum):
    """When a rule is asked."""

    SCHEDULED = auto()  # slots for further tokens exist, nothing is copied or written yet
    COPYING = auto()  # copies were drained and are about to be applied
    ADMITTED = auto()  # a new sequence's cached prefix is readable
    WRITING = auto()  # the acting sequence's slots are about to be written
    PUBLISHED = auto()  # blocks that can be hit from now on were found
    LATE = auto()  # a step in flight is about to write for a released sequence
    COMMITTED = auto()  # a part of what is scheduled was written and committed
    UNCHANGED = auto()  # a call failed, or had to fail: everything must be as before it
    CUT = auto()  # a rollback or a verification took tokens away, nothing is committed since
    FINISHED = auto()  # after every operation, for what it touched
    READ_BACK = auto()  # now and then, for everything


@dataclass(slots=True, eq=False)
class Tracked:
    """A live sequence. ``nodes`` holds its fingerprints, ``table`` its block table as seen last.

    ``settled`` counts the tokens whose KV is written and final; ``number`` is its rank of creation.
    """

    number: int
    handle: Any
    namespace: str
    nodes: list[int]
    settled: int = 0
    table: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.nodes)

    def __bool__(self) -> bool:
        """True: rolled back to nothing it is a sequence all the same."""
        return True


class Slot(NamedTuple):
    """A physical slot and the position that it is for."""

    block: int
    offset: int
    position: int


class Published(NamedTuple):
    """A block that can be hit under ``key``, and the fingerprints that it held when that was first seen."""

    key: Hashable
    nodes: list[int]


@dataclass(slots=True, eq=False)
class Step:
    """One operation while it runs; the fields from ``free_before`` on concern its latest call, but `applied`.

    Attributes
    ----------
    due : whether everything is read back after this operation.
    touched : blocks that entered or left a table, or were written or copied.
    fresh : blocks that the pool handed out, not found in the cache and not shared.
    free_before : free blocks before the latest call that may fail.
    length_before, table_before : of the acting sequence before the call.
    first_block : logical block of the acting sequence from which on its content may have changed.
    hit : tokens of the prompt that the manager says were cached.
    copies, applied : those that were drained last, and all that were applied.
    refused : whether a scheduling call raised `OutOfBlocks`.
    raised : whether a call that had to fail, or was allowed to, raised.
    batching : whether copies and writes wait for further calls of the operation.
    """

    number: int
    operation: Operation
    due: bool
    touched: set[int] = field(default_factory=set)
    fresh: set[int] = field(default_factory=set)
    free_before: int = 0
    acting: Tracked | None = None
    length_before: int = 0
    table_before: list[int] = field(default_factory=list)
    first_block: int = 0
    hit: int = 0
    copies: list[BlockCopy] = field(default_factory=list)
    applied: list[BlockCopy] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    published: list[int] = field(default_factory=list)
    refused: bool = False
    raised: bool = False
    batching: bool = False

    def act_on(self, sequence: Tracked, first_block: int) -> None:
        """Make ``sequence`` the acting one, as it stands now."""
        self.acting = sequence
        self.length_before = len(sequence)
        self.table_before = sequence.table
        self.first_block = first_block
