"""KV stores with one fault each that tests need by hand, and what finds them and the planted ones."""

import torch
from torch import Tensor

from support.list_store import ListStore, append, append_layer, new
from tokenlaw.impl.faults.store_copies import WritesSharedBlocks
from tokenlaw.impl.faults.store_rewinding import AttendsInItsOwnOrder, RollsBackOneLess, StoreRollbackClips
from tokenlaw.impl.faults.store_sequences import (
    RefusalForgetsAToken,
    ReleasesTheNewest,
    ReordersInPlace,
    StoreLeaksTail,
)
from tokenlaw.impl.faults.store_writes import FirstLayerForAll, OneLengthForAllLayers
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
from tokenlaw.spec.contracts import KVStore


class WritesNeighbour(ListStore):
    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        super().append(sequence, keys, values)
        for other in self.content.keys() - {sequence}:
            for theirs, ours in zip(self.content[other], self.content[sequence], strict=True):
                theirs[:, :, -1:] = ours[:, :, -1:]


class NoLimit(ListStore):
    checks_room = False


class OverwritesThenRaises(ListStore):
    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        if self.length(sequence) + keys.shape[2] > self.room[sequence]:
            victim = next(iter(self.content.keys() - {sequence}))
            self.content[victim][0][0, 0, 0] = keys[0, 0, 0]
        super().append(sequence, keys, values)


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


FAULTS: list[tuple[type[KVStore], str, tuple[Operation, ...]]] = [
    (FirstLayerForAll, "store/content", (new(1),)),
    (WritesNeighbour, "store/bystanders", (new(1), new(1))),
    (WritesSharedBlocks, "store/bystanders", (new(1), Fork(0), append(0), append(1))),
    (NoLimit, "store/capacity", (new(1), new(1), Overflow(0, 1))),
    (OverwritesThenRaises, "store/capacity", (new(1), new(1), Overflow(0, 1))),
    (RefusalForgetsAToken, "store/atomic", (new(4), append(0, 8))),
    (StoreLeaksTail, "store/release", (new(8), Free(0), new(8))),
    (ReleasesTheNewest, "store/release", (new(1), new(1), Free(0), FreeAgain())),
    (RollsBackOneLess, "store/rollback", (new(2), Rollback(0, 1))),
    (StoreRollbackClips, "store/rollback", (new(2), Rollback(0, 3))),
    (ReordersInPlace, "store/reorder", (new(1), new(1), Reorder((1, 0)))),
    (OneLengthForAllLayers, "store/layers", (new(1), append_layer(0, 0), append_layer(0, 0))),
    (SharesLayers, "store/layers", (new(1), append_layer(0, 0), append_layer(0, 1))),
    (ForgetsLastKey, "store/attention", (new(2),)),
    (AttendsInItsOwnOrder, "store/batch", (new(1), new(1), Attend((1,)))),
]
"""Planted faults and those above, each with the check that a trace breaks at its last operation."""
