"""Traces for KV stores: short, on small pools, made of the moves that real faults need."""

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tokenlaw.properties.drawing import any_of, evenly
from tokenlaw.properties.history import History
from tokenlaw.properties.kv_store_moves import MOVES, Move, new
from tokenlaw.properties.trace import Operation, Trace
from tokenlaw.spec.contracts import KV_STORE, CacheConfig

MAX_OPERATIONS = 12
"""Operations of a trace before its last move, which may add a few."""


def kv_store_traces(
    capabilities: frozenset[str],
    *,
    device: str = "cpu",
    dtype: str = "float32",
    max_operations: int = MAX_OPERATIONS,
) -> SearchStrategy[Trace]:
    """Traces of moves that a store with these capabilities can do."""
    moves = [move for needs, move in MOVES if needs <= capabilities]
    return _traces(moves, _configurations(device, dtype, layered="layers" in capabilities), max_operations)


def _configurations(
    device: str = "cpu", dtype: str = "float32", *, layered: bool = False
) -> SearchStrategy[CacheConfig]:
    """Pools of 2 to 8 blocks, so small that they fill up and that blocks are used again.

    ``layered``: mostly several layers, for stores that extend them one by one.
    """
    return st.builds(
        CacheConfig,
        num_blocks=evenly(2, 8),
        block_size=any_of((2, 3, 4, 8, 16)),
        num_layers=any_of((2, 1, 3, 2)) if layered else evenly(1, 2),
        num_kv_heads=evenly(1, 2),
        head_size=any_of((4, 8)),
        max_sequences=evenly(2, 5),
        dtype=st.just(dtype),
        device=st.just(device),
    )


@st.composite
def _traces(
    draw: DrawFn, moves: Sequence[Move], configs: SearchStrategy[CacheConfig], max_operations: int
) -> Trace:
    config, history = draw(configs), History()
    operations: list[Operation] = []
    wanted = draw(evenly(min(4, max_operations), max_operations))
    while len(operations) < wanted:
        move = draw(any_of(moves)) if history.live else new
        for operation in move(draw, history, config):
            history.apply(operation)
            operations.append(operation)
    return Trace(tuple(operations), config, KV_STORE)
