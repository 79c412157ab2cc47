"""Traces for KV stores: short, on small pools, made of the moves that real faults need."""

import random
from dataclasses import dataclass

from hypothesis.strategies import DrawFn, SearchStrategy, composite

from tokenlaw.properties.drawing import Pick, one_of, picking
from tokenlaw.properties.history import History
from tokenlaw.properties.kv_store_lengths import Move
from tokenlaw.properties.kv_store_moves import MOVES, new
from tokenlaw.properties.trace import Operation, Trace
from tokenlaw.spec.contracts import KV_STORE, CacheConfig

MAX_OPERATIONS = 12
"""Operations of a trace before its last move, which may add a few."""


_LONG = 20
"""Blocks of 16: some positions need more than 8 bits."""


@dataclass(frozen=True)
class Sizes:
    """What else bounds a trace, and the tensors of the store that it is run on."""

    device: str = "cpu"
    dtype: str = "float32"
    max_operations: int = MAX_OPERATIONS


def kv_store_traces(capabilities: frozenset[str], sizes: Sizes) -> SearchStrategy[Trace]:
    """Traces of moves that a store with these capabilities can do."""

    @composite
    def draw_trace(draw: DrawFn) -> Trace:
        return _trace(capabilities, sizes, picking(draw))

    return draw_trace()


def rolled_store_trace(capabilities: frozenset[str], sizes: Sizes, number: int, dice: random.Random) -> Trace:
    """A trace without hypothesis, of moves that are as frequent as `MOVES` says, but for the first.

    Move ``number`` comes first, after a sequence to move, counted round and round.
    """
    return _trace(capabilities, sizes, dice.randint, number)


def _trace(capabilities: frozenset[str], sizes: Sizes, pick: Pick, number: int | None = None) -> Trace:
    moves = [move for needs, move in MOVES if needs <= capabilities]
    opening = None if number is None else moves[number % len(moves)]
    config, history = _configuration(pick, sizes, layered="layers" in capabilities), History()
    operations: list[Operation] = []
    wanted = pick(min(4, sizes.max_operations), sizes.max_operations)
    while len(operations) < wanted:
        move: Move = new
        if history.live:
            move, opening = opening or one_of(pick, moves), None
        for operation in move(pick, history, config):
            history.apply(operation)
            operations.append(operation)
    return Trace(tuple(operations), config, KV_STORE)


def _configuration(pick: Pick, sizes: Sizes, *, layered: bool) -> CacheConfig:
    """Pools of 2 to 8 blocks, so small that they fill up and that blocks are used again; one in 15 is larger.

    ``layered``: mostly several layers, for stores that extend them one by one.
    """
    size = one_of(pick, (2, 3, 4, 8, 16))
    return CacheConfig(
        num_blocks=_LONG if size == 16 and pick(0, 2) == 0 else pick(2, 8),
        block_size=size,
        num_layers=one_of(pick, (2, 1, 3, 2)) if layered else pick(1, 2),
        num_kv_heads=one_of(pick, (1, 2, 1, 2, 3)),
        head_size=one_of(pick, (4, 8)),
        max_sequences=pick(2, 6),
        dtype=sizes.dtype,
        device=sizes.device,
    )
