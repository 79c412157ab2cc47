"""An honest KV store whose pool is one of single slots, as token-granular pools are."""

import torch
from torch import Tensor

from tokenlaw.spec.contracts import CacheConfig, OutOfBlocks


class SlotStore:
    """One pool ``[layers, 2, slots, heads, head_size]``; each sequence has a list of slots."""

    def __init__(self, config: CacheConfig) -> None:
        slots = config.num_blocks * config.block_size
        shape = (config.num_layers, 2, slots, config.num_kv_heads, config.head_size)
        self.pool = torch.zeros(shape, dtype=getattr(torch, config.dtype))
        self.free_slots, self.most = list(range(slots)), config.max_sequences
        self.slots: dict[int, list[int]] = {}
        self.made = 0

    def allocate(self) -> int:
        if len(self.slots) == self.most:
            raise OutOfBlocks("no further sequence")
        self.made += 1
        self.slots[self.made] = []
        return self.made

    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        if keys.shape[2] > len(self.free_slots):
            raise OutOfBlocks("the pool is full")
        taken = [self.free_slots.pop() for _ in range(keys.shape[2])]
        self.pool[:, :, taken] = torch.stack([keys, values], dim=1).transpose(2, 3)
        self.slots[sequence] += taken

    def read(self, sequence: int, layer: int) -> tuple[Tensor, Tensor]:
        keys, values = self.pool[layer][:, self.slots[sequence]].transpose(1, 2)
        return keys, values

    def free(self, sequence: int) -> None:
        self.free_slots += self.slots.pop(sequence)
