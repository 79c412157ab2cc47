"""Faults of KV stores, unseen by traces when they were thought up."""

from collections.abc import Sequence
from typing import Any

import torch

from tokenlaw.impl.faults.store_base import FaultyLayer, FaultyStore
from tokenlaw.spec.contracts import OutOfBlocks


class ReordersFourBeams(FaultyStore):
    """Beams from the fifth on stay as they are."""

    def reorder(self, sequences: Sequence[Any], parents: Sequence[int]) -> None:
        super().reorder(sequences, [parent if beam < 4 else beam for beam, parent in enumerate(parents)])


class ReordersOnceAStep(FaultyStore):
    """A second reordering, with nothing appended in between, is taken for a repeated call."""

    reordered = False

    def append(self, *arguments: Any) -> None:
        self.reordered = False
        super().append(*arguments)

    def reorder(self, sequences: Sequence[Any], parents: Sequence[int]) -> None:
        if not self.reordered:
            super().reorder(sequences, parents)
        self.reordered = True


class _EightBits(FaultyLayer):
    def _slots(self, sequence: Any, start: int, end: int) -> torch.Tensor:
        size = self._block_size
        table = torch.tensor(self._manager.block_table(sequence.blocks), dtype=torch.int64)
        positions = torch.arange(start, end) % 256
        return (table[positions // size] * size + positions % size).to(self._keys.device)


class PositionsInEightBits(FaultyStore):
    """Position 256 is position 0."""

    first = others = _EightBits


class _TwoHeads(FaultyLayer):
    def _copy(self, source: int, destination: int) -> None:
        for cache in (self._keys, self._values):
            cache[destination, :, :2] = cache[source, :, :2]


class CopiesTwoHeads(FaultyStore):
    """Copy-on-write copies two of the heads."""

    first = others = _TwoHeads


class RefusedForkLeaks(FaultyStore):
    """A fork shares the blocks, and finds then that no further sequence is admitted."""

    def fork(self, sequence: Any) -> Any:
        heirs = self._fork(self._record(sequence))
        self._require_sequence()
        return self._admit(heirs)


class ChecksRoomLayerByLayer(FaultyStore):
    """A layer is written before the room of the next one is looked at."""

    def append(self, sequence: Any, keys: torch.Tensor, values: torch.Tensor) -> None:
        stored = self._record(sequence)
        self._check_new(keys, values, (self._config.num_layers,))
        for layer, part, key, value in zip(self._layers, stored, keys, values, strict=True):
            layer.require_room(part, key.shape[1])
            layer.append(part, key, value)


class _FreesTheMiddle(FaultyLayer):
    def rollback(self, sequence: Any, count: int) -> None:
        before = self._manager.block_table(sequence.blocks)
        super().rollback(sequence, count)
        pool = self._manager._blocks.device
        for block in before[len(self._manager.block_table(sequence.blocks)) : -1]:
            if pool.references(block) and block not in pool._empty:
                pool._empty.append(block)


class RollbackFreesSharedBlocks(FaultyStore):
    """A rollback over several blocks gives all but the last one back, whoever holds them."""

    first = others = _FreesTheMiddle


class RefusedReserveLosesCopies(FaultyStore):
    """Room is made in one layer after the other; what was to be copied is lost if one of them refuses."""

    def reserve(self, sequence: Any, length: int) -> None:
        stored = self._record(sequence)
        rooms = [layer.room(part) for layer, part in zip(self._layers, stored, strict=True)]
        try:
            for layer, part, room in zip(self._layers, stored, rooms, strict=True):
                if length > room:
                    layer._manager.append(part.blocks, [0] * (length - room))
        except OutOfBlocks:
            for layer, part, room in zip(self._layers, stored, rooms, strict=True):
                layer._manager.pending_copies()
                layer.shrink_room(part, room)
            raise
        for layer in self._layers:
            for copy in layer._manager.pending_copies():
                layer._copy(copy.source, copy.destination)


HUNTED = [
    (ReordersFourBeams, "store/reorder"),
    (ReordersOnceAStep, "store/reorder"),
    (PositionsInEightBits, "store/content"),
    (CopiesTwoHeads, "store/content"),
    (RefusedForkLeaks, "store/release"),
    (ChecksRoomLayerByLayer, "store/capacity"),
    (RollbackFreesSharedBlocks, "store/bystanders"),
    (RefusedReserveLosesCopies, "store/atomic"),
]
"""The fault, and the check that is its own."""
