"""An honest KV store without any sharing, and the ways to run traces and audits on a store."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tokenlaw.properties.kv_store_run import KV_STORE_CHECKS, run_trace
from tokenlaw.properties.kv_store_suite import KVStoreSuite
from tokenlaw.properties.running import Outcome
from tokenlaw.properties.trace import (
    Append,
    AppendLayer,
    New,
    Operation,
    Trace,
)
from tokenlaw.spec.attention import attend
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import KV_STORE, CacheConfig, Implementation, KVStore, OutOfBlocks
from tokenlaw.spec.suites import Profile
from tokenlaw.spec.verdicts import Evidence

ALL = frozenset(CAPABILITY_MEMBERS[KV_STORE])
CONFIG = CacheConfig(num_blocks=4, block_size=2, num_layers=2, num_kv_heads=2, head_size=4, max_sequences=3)
IDS = frozenset(check.id for check in KV_STORE_CHECKS)


class ListStore:
    """Honest: contiguous tensors ``[2, heads, length, head_size]``, one for each layer of a sequence."""

    checks_room = True

    def __init__(self, config: CacheConfig) -> None:
        self.config = config
        self.content: dict[int, list[Tensor]] = {}
        self.room: dict[int, int] = {}
        self.made = 0

    def blocks(self, length: int) -> int:
        return -(-length // self.config.block_size)

    def used(self) -> int:
        return sum(map(self.blocks, self.room.values()))

    def allocate(self) -> int:
        config = self.config
        if len(self.content) == config.max_sequences:
            raise OutOfBlocks("no further sequence")
        self.made += 1
        empty = torch.empty(2, config.num_kv_heads, 0, config.head_size, dtype=getattr(torch, config.dtype))
        self.content[self.made] = [empty] * config.num_layers
        self.room[self.made] = 0
        return self.made

    def reserve(self, sequence: int, length: int) -> None:
        more = self.blocks(max(length, self.room[sequence])) - self.blocks(self.room[sequence])
        if self.used() + more > self.config.num_blocks:
            raise OutOfBlocks("pool is full")
        self.room[sequence] = max(length, self.room[sequence])

    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        if self.checks_room and self.length(sequence) + keys.shape[2] > self.room[sequence]:
            raise OutOfBlocks("beyond the room")
        for layer in range(self.config.num_layers):
            self.extend(sequence, layer, keys[layer], values[layer])

    def append_layer(self, sequence: int, layer: int, keys: Tensor, values: Tensor) -> None:
        if self.checks_room and self.content[sequence][layer].shape[2] + keys.shape[1] > self.room[sequence]:
            raise OutOfBlocks("beyond the room")
        self.extend(sequence, layer, keys, values)

    def extend(self, sequence: int, layer: int, keys: Tensor, values: Tensor) -> None:
        held = self.content[sequence]
        held[layer] = torch.cat([held[layer], torch.stack([keys, values])], dim=2)

    def length(self, sequence: int) -> int:
        return max(held.shape[2] for held in self.content[sequence])

    def read(self, sequence: int, layer: int) -> tuple[Tensor, Tensor]:
        keys, values = self.content[sequence][layer]
        return keys, values

    def free(self, sequence: int) -> None:
        del self.content[sequence], self.room[sequence]

    def fork(self, sequence: int) -> int:
        if self.used() + self.blocks(self.length(sequence)) > self.config.num_blocks:
            raise OutOfBlocks("pool is full")
        child = self.allocate()
        self.content[child] = self.copy(sequence)
        self.room[child] = self.length(sequence)
        return child

    def rollback(self, sequence: int, count: int) -> None:
        if not 0 <= count <= min(held.shape[2] for held in self.content[sequence]):
            raise ValueError("no such rollback")
        self.content[sequence] = [held[:, :, : held.shape[2] - count] for held in self.content[sequence]]

    def reorder(self, sequences: Sequence[int], parents: Sequence[int]) -> None:
        before = [self.copy(sequence) for sequence in sequences]
        for sequence, parent in zip(sequences, parents, strict=True):
            self.content[sequence] = [held.clone() for held in before[parent]]

    def copy(self, sequence: int) -> list[Tensor]:
        return [held.clone() for held in self.content[sequence]]

    def attend(self, sequences: Sequence[int], queries: Tensor, layer: int, scale: float) -> Tensor:
        rows = [
            self.row(sequence, query, layer, scale)
            for sequence, query in zip(sequences, queries, strict=True)
        ]
        return torch.stack(rows).to(queries.dtype)

    def row(self, sequence: int, query: Tensor, layer: int, scale: float) -> Tensor:
        keys, values = self.content[sequence][layer].double().transpose(1, 2)
        return attend(query.double()[None], keys, values, scale)[0][0]


def new(length: int) -> New:
    return New((0,) * length)


def append(sequence: int, length: int = 1) -> Append:
    return Append(sequence, (0,) * length)


def append_layer(sequence: int, layer: int, length: int = 1) -> AppendLayer:
    return AppendLayer(sequence, layer, (0,) * length)


def run(store: type[KVStore], *operations: Operation, muted: frozenset[str] = frozenset()) -> Outcome:
    return run_trace(store, Trace(operations, CONFIG, KV_STORE), ALL, muted)


def implementation(store: type[KVStore], capabilities: frozenset[str] = ALL) -> Implementation:
    return Implementation("list", "0", {KV_STORE: store}, {KV_STORE: capabilities})


def audit(
    store: type[KVStore],
    *,
    seed: int,
    dtype: str = "float32",
    selected: frozenset[str] = IDS,
    examples: int = 60,
) -> Sequence[Evidence]:
    return KVStoreSuite(dtype=dtype).run(
        implementation(store),
        profile=Profile("test", examples=examples, max_operations=12, seconds=60.0),
        seed=seed,
        selected=selected,
        progress=lambda what, done, total: None,
    )
