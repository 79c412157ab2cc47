"""Forward passes over a paged cache: they write the KV of tokens, read what came before, and give logits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from tokenlaw.spec.contracts import BlockCopy
from tokenlaw.spec.decoder_contract import DecoderConfig
from tokenlaw.spec.laws import Tokens


@dataclass(frozen=True)
class Run:
    """Further tokens of one sequence.

    Attributes
    ----------
    table : blocks of the sequence, in logical order.
    start : position of the first of the tokens; what stands before it is in the cache.
    tokens : one or more.
    """

    table: Sequence[int]
    start: int
    tokens: Sequence[int]

    @property
    def end(self) -> int:
        """The first position behind the tokens."""
        return self.start + len(self.tokens)


class Runner(Protocol):
    """A model and its cache."""

    def copy(self, copies: Sequence[BlockCopy]) -> None:
        """Copy blocks."""
        ...

    def run(self, run: Run, wanted: int) -> Float64[Tensor, "wanted vocabulary"]:
        """Write the KV of the tokens; logits behind the last ``wanted`` of them."""
        ...


class TableRunner:
    """Any function of tokens as the target; the KV of a position is its token and its position.

    The function is given what stands in the cache, ordered by the positions that stand there, and nothing
    else: a wrong cache gives a wrong law.

    Parameters
    ----------
    config : its target and the shape of the cache. Unwritten slots hold token 0 at position 0.
    """

    def __init__(self, config: DecoderConfig) -> None:
        self._model, self._block_size = config.target, config.block_size
        self._cache = torch.zeros((config.num_blocks, config.block_size, 2), dtype=torch.int64)

    def copy(self, copies: Sequence[BlockCopy]) -> None:
        """Copy blocks."""
        for copy in copies:
            self._cache[copy.destination] = self._cache[copy.source]

    def run(self, run: Run, wanted: int) -> Float64[Tensor, "wanted vocabulary"]:
        """Write the KV of the tokens; logits behind the last ``wanted`` of them."""
        self.write(run)
        read = slots(run.table, 0, run.end, self._block_size)
        stored = self._cache.flatten(0, 1)[read].tolist()
        laws = [self._model(context(stored[:end])) for end in range(run.end - wanted + 1, run.end + 1)]
        logits = [[math.log(share) if share else -math.inf for share in law] for law in laws]
        return torch.tensor(logits, dtype=torch.float64)

    def write(self, run: Run) -> None:
        """Write the KV of the tokens."""
        new = [list(pair) for pair in zip(run.tokens, range(run.start, run.end), strict=True)]
        written = slots(run.table, run.start, run.end, self._block_size)
        self._cache.flatten(0, 1)[written] = torch.tensor(new, dtype=torch.int64)


def slots(table: Sequence[int], start: int, end: int, block_size: int) -> Int64[Tensor, " positions"]:
    """Slot numbers (block * block_size + offset) of the positions ``start`` .. ``end`` - 1.

    >>> slots([5, 3], 1, 4, block_size=2)
    tensor([11,  6,  7])
    """
    numbers = [table[place // block_size] * block_size + place % block_size for place in range(start, end)]
    return torch.tensor(numbers, dtype=torch.int64)


def context(stored: Sequence[Sequence[int]]) -> Tokens:
    """Tokens of some (token, position) pairs, in the order of their positions.

    >>> context([(7, 0), (9, 2), (8, 1)])
    (7, 8, 9)
    """
    return tuple(token for token, _ in sorted(stored, key=lambda pair: pair[1]))
