"""KV stores with one fault each, and the check that must find it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from support.list_store import ListStore, append, append_layer, new
from tokenlaw.properties.trace import (
    Attend,
    Fork,
    Free,
    FreeAgain,
    Operation,
    Overflow,
    Reorder,
    Rollback,
)
from tokenlaw.spec.attention import attend
from tokenlaw.spec.contracts import CacheConfig, OutOfBlocks


class OneLayerOnly(ListStore):
    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        super().append(sequence, keys[:1].expand_as(keys), values)


class WritesNeighbour(ListStore):
    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        super().append(sequence, keys, values)
        for other in self.content.keys() - {sequence}:
            for theirs, ours in zip(self.content[other], self.content[sequence], strict=True):
                theirs[:, :, -1:] = ours[:, :, -1:]


class SharesTail(ListStore):
    """No copy on write: a fork and its parent write the same slot after the common part."""

    def __init__(self, config: CacheConfig) -> None:
        super().__init__(config)
        self.shared: dict[int, int] = {}

    def fork(self, sequence: int) -> int:
        child = super().fork(sequence)
        self.shared[child] = sequence
        return child

    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        position = self.length(sequence)
        super().append(sequence, keys, values)
        parent = self.content.get(self.shared.get(sequence, 0))
        if parent is not None and position % self.config.block_size:
            for theirs, ours in zip(parent, self.content[sequence], strict=True):
                theirs[:, :, position : position + 1] = ours[:, :, position : position + 1][
                    :, :, : theirs.shape[2] - position
                ]


class NoLimit(ListStore):
    checks_room = False


class OverwritesThenRaises(ListStore):
    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        if self.length(sequence) + keys.shape[2] > self.room[sequence]:
            victim = next(iter(self.content.keys() - {sequence}))
            self.content[victim][0][0, 0, 0] = keys[0, 0, 0]
        super().append(sequence, keys, values)


class DropsOnRefusal(ListStore):
    def reserve(self, sequence: int, length: int) -> None:
        try:
            super().reserve(sequence, length)
        except OutOfBlocks:
            self.content[min(self.content)] = [held[:, :, 1:] for held in self.content[min(self.content)]]
            raise


class Leaks(ListStore):
    leaked = 0

    def used(self) -> int:
        return super().used() + self.leaked

    def free(self, sequence: int) -> None:
        self.leaked += self.blocks(self.room[sequence]) // 2
        super().free(sequence)


class FreesTwice(ListStore):
    def free(self, sequence: int) -> None:
        if sequence in self.content:
            super().free(sequence)
        else:
            self.content[max(self.content)][0][0, 0, 0] = 0


class RollsBackLess(ListStore):
    def rollback(self, sequence: int, count: int) -> None:
        super().rollback(sequence, max(0, count - 1))


class RollsBackAnything(ListStore):
    def rollback(self, sequence: int, count: int) -> None:
        super().rollback(sequence, min(count, self.length(sequence)))


class ReordersInPlace(ListStore):
    def reorder(self, sequences: Sequence[int], parents: Sequence[int]) -> None:
        for sequence, parent in zip(sequences, parents, strict=True):
            self.content[sequence] = self.content[sequences[parent]]


class OneLengthForAllLayers(ListStore):
    """One length for the whole sequence, advanced by the last layer: other layers write over their end."""

    def append_layer(self, sequence: int, layer: int, keys: Tensor, values: Tensor) -> None:
        length = self.content[sequence][-1].shape[2]
        self.content[sequence][layer] = self.content[sequence][layer][:, :, :length]
        super().append_layer(sequence, layer, keys, values)


class SharesLayers(ListStore):
    """Neighbouring layers lie in one tensor: what layer 1 stores, layer 0 holds at the same positions."""

    def append_layer(self, sequence: int, layer: int, keys: Tensor, values: Tensor) -> None:
        super().append_layer(sequence, layer, keys, values)
        if layer:
            first, held = self.content[sequence][0], self.content[sequence][layer]
            common = min(first.shape[2], held.shape[2])
            self.content[sequence][0] = torch.cat([held[:, :, :common], first[:, :, common:]], dim=2)


class ForgetsLastKey(ListStore):
    def row(self, sequence: int, query: Tensor, layer: int, scale: float) -> Tensor:
        keys, values = self.content[sequence][layer][:, :, :-1].double().transpose(1, 2)
        return attend(query.double()[None], keys, values, scale)[0][0]


class OwnOrder(ListStore):
    """Rows in order of creation, whatever was asked for."""

    def attend(self, sequences: Sequence[int], queries: Tensor, layer: int, scale: float) -> Tensor:
        return super().attend(sorted(self.content)[: len(sequences)], queries, layer, scale)


FAULTS: list[tuple[type[ListStore], str, tuple[Operation, ...]]] = [
    (OneLayerOnly, "store/content", (new(1),)),
    (WritesNeighbour, "store/bystanders", (new(1), new(1))),
    (SharesTail, "store/bystanders", (new(1), Fork(0), append(0), append(1))),
    (NoLimit, "store/capacity", (new(1), new(1), Overflow(0, 1))),
    (OverwritesThenRaises, "store/capacity", (new(1), new(1), Overflow(0, 1))),
    (DropsOnRefusal, "store/atomic", (new(4), new(5))),
    (Leaks, "store/release", (new(8), Free(0), new(8))),
    (FreesTwice, "store/release", (new(1), new(1), Free(0), FreeAgain())),
    (RollsBackLess, "store/rollback", (new(2), Rollback(0, 1))),
    (RollsBackAnything, "store/rollback", (new(2), Rollback(0, 3))),
    (ReordersInPlace, "store/reorder", (new(1), new(1), Reorder((1, 0)))),
    (
        OneLengthForAllLayers,
        "store/layers",
        (new(1), append_layer(0, 0), append_layer(0, 0)),
    ),
    (SharesLayers, "store/layers", (new(1), append_layer(0, 0), append_layer(0, 1))),
    (ForgetsLastKey, "store/attention", (new(2),)),
    (OwnOrder, "store/batch", (new(1), new(1), Attend((1,)))),
]
