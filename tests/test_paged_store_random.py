"""The reference KV store: random operations on several sequences keep what each of them holds."""

import random
from collections import Counter

import torch
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.impl.paged import PagedKVStore
from tokenlaw.spec.contracts import CacheConfig, OutOfBlocks

CONFIG = CacheConfig(num_blocks=6, block_size=4, max_sequences=4)


class Driver:
    """Random operations on a store, next to what each sequence must hold."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.store = PagedKVStore(CONFIG)
        self.held: dict[int, list[int]] = {}
        self.done: Counter[str] = Counter()

    def step(self) -> None:
        name = self.random.choice(["new", "append", "append", "fork", "rollback", "free", "reorder"])
        if name != "new" and not self.held:
            return
        try:
            getattr(self, name)(*([] if name == "new" else [self.random.choice(list(self.held))]))
            self.done[name] += 1
        except OutOfBlocks:
            self.done["out of blocks"] += 1
        for sequence, marks in self.held.items():
            for layer in range(CONFIG.num_layers):
                keys, values = self.store.read(sequence, layer)
                assert keys[0, :, 0].tolist() == [10.0 * mark + layer for mark in marks]
                assert torch.equal(values, -keys)

    def new(self) -> None:
        self.held[self.store.allocate()] = []

    def append(self, sequence: int) -> None:
        marks = [self.random.randrange(1000) for _ in range(self.random.randint(0, 5))]
        self.store.reserve(sequence, len(self.held[sequence]) + len(marks))
        layers = torch.arange(CONFIG.num_layers)[:, None, None, None]
        keys = (10.0 * torch.tensor(marks)[:, None] + layers).expand(
            -1, CONFIG.num_kv_heads, -1, CONFIG.head_size
        )
        self.store.append(sequence, keys, -keys)
        self.held[sequence] += marks

    def fork(self, sequence: int) -> None:
        self.held[self.store.fork(sequence)] = [*self.held[sequence]]

    def rollback(self, sequence: int) -> None:
        kept = self.random.randint(0, len(self.held[sequence]))
        self.store.rollback(sequence, len(self.held[sequence]) - kept)
        del self.held[sequence][kept:]

    def free(self, sequence: int) -> None:
        self.store.free(sequence)
        del self.held[sequence]

    def reorder(self, _: int) -> None:
        sequences = list(self.held)
        parents = [self.random.randrange(len(sequences)) for _ in sequences]
        self.store.reorder(sequences, parents)
        old = [self.held[sequences[parent]] for parent in parents]
        self.held = {sequence: [*marks] for sequence, marks in zip(sequences, old, strict=True)}


@given(seed=st.integers(0, 2**32 - 1))
def test_random_operations_keep_content(seed: int) -> None:
    driver = Driver(seed)
    for _ in range(30):
        driver.step()


def test_random_operations_reach_everything() -> None:
    done: Counter[str] = Counter()
    for seed in range(15):
        driver = Driver(seed)
        for _ in range(30):
            driver.step()
        done += driver.done
    wanted = ["new", "append", "fork", "rollback", "free", "reorder", "out of blocks"]
    assert {name: done[name] for name in wanted if done[name] < 5} == {}
