"""Blocks of a KV store that move, as defragmentation moves them: who is told, and what is copied first."""

from collections.abc import Sequence

from tokenlaw.impl.faults.kv_base import FaultyManager
from tokenlaw.impl.faults.kv_copies import UnheldQueue
from tokenlaw.impl.faults.store_base import FaultyLayer, FaultyStore
from tokenlaw.impl.paged.copies import Place
from tokenlaw.impl.paged.layer import LayerSequence
from tokenlaw.impl.paged.sequence import SequenceRecord
from tokenlaw.spec.contracts import DEVICE, BlockCopy


class MovingManager(FaultyManager):
    """Moves the last live block into an idle one whenever a sequence goes, and tells all who hold it.

    No block manager that is audited may do that, since tables of other sequences change; a store may.

    Attributes
    ----------
    at_a_time : how many blocks move.
    """

    at_a_time = 1

    def free(self, sequence: int) -> None:
        """Release, then move."""
        super().free(sequence)
        blocks = self._blocks
        live = [block for block in range(blocks.num_blocks) if blocks.references(block)]
        if blocks.device.available():
            for block in reversed(live[-self.at_a_time :]):
                self._move(block)

    def told(self, holders: Sequence[SequenceRecord]) -> Sequence[SequenceRecord]:
        """Those whose tables name the new block afterwards."""
        return holders

    def _move(self, old: int) -> None:
        holders = [record for record in self._sequences.values() if old in record.table]
        (new,) = self._blocks.take(1)
        self._blocks.copies.add((DEVICE, old), (DEVICE, new))
        for record in self.told(holders):
            record.table[record.table.index(old)] = new
        for _ in holders[1:]:
            self._blocks.device.share(new)
        for _ in holders:
            self._blocks.release(old)


class MovingLayer(FaultyLayer):
    """A layer of which a block moves whenever a sequence goes."""

    manager = MovingManager

    def free(self, sequence: LayerSequence) -> None:
        """Release, and copy what moves."""
        super().free(sequence)
        for copy in self._manager.pending_copies():
            self._copy(copy.source, copy.destination)


class OrderedQueue(UnheldQueue):
    """Copies that must be made in the order in which they were decided: no source is held."""

    def add(self, source: Place, destination: Place) -> None:
        """Decide a copy, also out of a place that itself waits for its content."""
        self._source_of[destination] = source


class MovesTwo(MovingManager):
    """Moves the last two live blocks, the second one into the place that the first one has just left."""

    queue, at_a_time = OrderedQueue, 2


class MovingTwoLayer(MovingLayer):
    """A layer of which two blocks move whenever a sequence goes."""

    manager = MovesTwo


class _CopiesLastFirst(MovesTwo):
    def pending_copies(self) -> list[BlockCopy]:
        """The other way round."""
        return super().pending_copies()[::-1]


class _CopyingLastFirst(MovingLayer):
    manager = _CopiesLastFirst


class MovesOverWaitingBlocks(FaultyStore):
    """Two blocks move one after the other; the second is copied over the first before that one is copied.

    Classes: C22.
    Report: ggml-org/llama.cpp 5735, 12253 (cells are mixed up).
    Effect: two blocks hold the content of one of them.
    Weakest check: store/bystanders.
    """

    first = others = _CopyingLastFirst


class _TellsOne(MovingManager):
    def told(self, holders: Sequence[SequenceRecord]) -> Sequence[SequenceRecord]:
        """The first."""
        return holders[:1]


class _TellingOne(MovingLayer):
    manager = _TellsOne


class MoveTellsOneSharer(FaultyStore):
    """When a shared block moves, one of the tables that name it is updated.

    Classes: C22.
    Report: none known of this form; nearest are ggml-org/llama.cpp 5735, 12253 (cells are mixed up).
    Effect: the other sharers read a block that is handed out again.
    Weakest check: store/bystanders.
    """

    first = others = _TellingOne


MOVE_FAULTS = (
    ("moves_over_waiting_blocks", MovesOverWaitingBlocks),
    ("move_tells_one_sharer", MoveTellsOneSharer),
)
