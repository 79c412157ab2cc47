"""Blocks of a KV store that move, as defragmentation moves them, and who is told."""

from collections.abc import Sequence

from tokenlaw.impl.faults.kv_base import FaultyManager
from tokenlaw.impl.faults.store_base import FaultyLayer, FaultyStore
from tokenlaw.impl.paged.layer import LayerSequence
from tokenlaw.impl.paged.sequence import SequenceRecord
from tokenlaw.spec.contracts import DEVICE


class MovingManager(FaultyManager):
    """Moves the last live block into an idle one whenever a sequence goes, and tells all who hold it.

    No block manager that is audited may do that, since tables of other sequences change; a store may.
    """

    def free(self, sequence: int) -> None:
        """Release, then move."""
        super().free(sequence)
        blocks = self._blocks
        live = [block for block in range(blocks.num_blocks) if blocks.references(block)]
        if live and blocks.device.available():
            self._move(max(live))

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


MOVE_FAULTS = (("move_tells_one_sharer", MoveTellsOneSharer),)
