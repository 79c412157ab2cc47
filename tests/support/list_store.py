"""An honest KV store without any sharing, and the ways to run traces and audits on a store."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tokenlaw.properties.kv_store_run import KV_STORE_CHECKS, run_trace
from tokenlaw.properties.kv_store_suite import KVStoreSuite
from tokenlaw.properties.running import Outcome, Profile
from tokenlaw.properties.trace import (
    Append,
    New,
    Operation,
    Trace,
)
from tokenlaw.spec.attention import attend
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import KV_STORE, CacheConfig, Implementation, OutOfBlocks
from tokenlaw.spec.verdicts import Evidence

ALL = frozenset(CAPABILITY_MEMBERS[KV_STORE])
CONFIG = CacheConfig(num_blocks=4, block_size=2, num_layers=2, num_kv_heads=2, head_size=4, max_sequences=3)
IDS = frozenset(check.id for check in KV_STORE_CHECKS)


class ListStore:
    """Honest: one contiguous tensor ``[2, layers, heads, length, head_size]`` for each sequence."""

    checks_room = True

    def __init__(self, config: CacheConfig) -> None:
        self.config = config
        self.content: dict[int, Tensor] = {}
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
        shape = (2, config.num_layers, config.num_kv_heads, 0, config.head_size)
        self.content[self.made] = torch.empty(shape, dtype=getattr(torch, config.dtype))
        self.room[self.made] = 0
        return self.made

    def reserve(self, sequence: int, length: int) -> None:
        more = self.blocks(max(length, self.room[sequence])) - self.blocks(self.room[sequence])
        if self.used() + more > self.config.num_blocks:
            raise OutOfBlocks("pool is full")
        self.room[sequence] = max(length, self.room[sequence])

    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        content = torch.cat([self.content[sequence], torch.stack([keys, values])], dim=3)
        if self.checks_room and content.shape[3] > self.room[sequence]:
            raise OutOfBlocks("beyond the room")
        self.content[sequence] = content

    def read(self, sequence: int, layer: int) -> tuple[Tensor, Tensor]:
        keys, values = self.content[sequence][:, layer]
        return keys, values

    def free(self, sequence: int) -> None:
        del self.content[sequence], self.room[sequence]

    def fork(self, sequence: int) -> int:
        if self.used() + self.blocks(self.content[sequence].shape[3]) > self.config.num_blocks:
            raise OutOfBlocks("pool is full")
        child = self.allocate()
        self.content[child] = self.content[sequence].clone()
        self.room[child] = self.content[sequence].shape[3]
        return child

    def rollback(self, sequence: int, count: int) -> None:
        length = self.content[sequence].shape[3]
        if not 0 <= count <= length:
            raise ValueError("no such rollback")
        self.content[sequence] = self.content[sequence][:, :, :, : length - count]

    def reorder(self, sequences: Sequence[int], parents: Sequence[int]) -> None:
        before = [self.content[sequence] for sequence in sequences]
        for sequence, parent in zip(sequences, parents, strict=True):
            self.content[sequence] = before[parent].clone()

    def attend(self, sequences: Sequence[int], queries: Tensor, layer: int, scale: float) -> Tensor:
        rows = [
            self.row(sequence, query, layer, scale)
            for sequence, query in zip(sequences, queries, strict=True)
        ]
        return torch.stack(rows).to(queries.dtype)

    def row(self, sequence: int, query: Tensor, layer: int, scale: float) -> Tensor:
        keys, values = self.content[sequence][:, layer].double().transpose(1, 2)
        return attend(query.double()[None], keys, values, scale)[0][0]


def new(length: int) -> New:
    return New((0,) * length)


def append(sequence: int, length: int = 1) -> Append:
    return Append(sequence, (0,) * length)


def run(store: type[ListStore], *operations: Operation, muted: frozenset[str] = frozenset()) -> Outcome:
    return run_trace(store, Trace(operations, CONFIG, KV_STORE), ALL, muted)


def implementation(store: type[ListStore], capabilities: frozenset[str] = ALL) -> Implementation:
    return Implementation("list", "0", {KV_STORE: store}, {KV_STORE: capabilities})


def audit(store: type[ListStore], *, seed: int, dtype: str = "float32") -> Sequence[Evidence]:
    return KVStoreSuite(dtype=dtype).run(
        implementation(store),
        profile=Profile("test", examples=60, max_operations=12, seconds=60.0),
        seed=seed,
        selected=IDS,
        progress=lambda what, done, total: None,
    )
