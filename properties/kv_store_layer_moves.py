"""Moves on KV stores whose layers are extended one by one."""

from functools import partial
from itertools import permutations

from tokenlaw.properties.drawing import Pick, coin, one_of
from tokenlaw.properties.history import History
from tokenlaw.properties.kv_store_lengths import Move, any_length, someone, zeros
from tokenlaw.properties.trace import Append, AppendLayer, Fork, Free, New, Operation, Overflow, Tokens
from tokenlaw.spec.contracts import CacheConfig


def _forward_pass(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Extend the layers of a sequence one after the other in any order; another one acts in between."""
    sequence, tokens = someone(pick, history), zeros(pick(1, config.block_size))
    order = one_of(pick, tuple(permutations(range(config.num_layers))))
    operations: list[Operation] = [AppendLayer(sequence, layer, tokens) for layer in order]
    if coin(pick):
        index = someone(pick, history)
        leaves = len(history.live) > 1 and coin(pick)
        operations.insert(1, Free(index) if leaves else Append(index, zeros(any_length(pick, config))))
    return operations


def _own_lengths(pick: Pick, history: History, config: CacheConfig, forks: bool = False) -> list[Operation]:
    """Extend one layer of a sequence twice, perhaps fork it, and go on in the other layer, twice as well.

    Room is made in all layers: that of the layer behind is unused at the fork, and both may fill theirs.
    """
    sequence, (ahead, behind) = someone(pick, history), one_of(pick, ((0, 1), (1, 0)))
    child = len(history.live)

    def tokens() -> Tokens:
        return zeros(pick(1, config.block_size + 1))

    orders = (
        ((sequence, child), (child, sequence), (sequence, sequence)) if forks else ((sequence, sequence),)
    )
    fork: list[Operation] = [Fork(sequence)] if forks else []
    return [
        *[AppendLayer(sequence, ahead, tokens()) for _ in range(2)],
        *fork,
        *[AppendLayer(one, behind, tokens()) for one in one_of(pick, orders)],
    ]


def _full_in_one_layer(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """One layer is full, where others have room: a fork keeps no room, so its short layers take one block.

    Then an append to a shared tail is refused by that layer alone.
    """
    layer = one_of(pick, (config.num_layers - 1, pick(0, config.num_layers - 1)))
    most = (config.num_blocks - 1) * config.block_size - 1
    uneven: list[Operation] = [
        New(zeros(1)),
        AppendLayer(0, layer, zeros(max(1, most))),
        Fork(0),
        Free(0),
    ]
    refused: list[Operation] = [New(zeros(1)), Fork(1), Append(1, zeros(1))]
    return [*[Free(0)] * len(history.live), *uneven, *refused]


def _overflow_uneven(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Overflow where one layer is ahead of the others."""
    index, layer = someone(pick, history), pick(0, config.num_layers - 1)
    ahead = AppendLayer(index, layer, zeros(pick(1, config.block_size + 1)))
    company: list[Operation] = [New(zeros(1))] if len(history.live) == 1 else []
    return [ahead, *company, Overflow(index, pick(1, config.block_size))]


LAYER_MOVES: tuple[tuple[frozenset[str], Move], ...] = (
    (frozenset({"layers"}), _forward_pass),
    (frozenset({"layers"}), _own_lengths),
    (frozenset({"layers"}), _own_lengths),
    (frozenset({"layers", "fork"}), partial(_own_lengths, forks=True)),
    (frozenset({"layers", "fork"}), _full_in_one_layer),
    (frozenset({"layers", "reserve"}), _overflow_uneven),
    (frozenset({"layers", "reserve"}), _overflow_uneven),
)
"""As `tokenlaw.properties.kv_store_moves.MOVES`."""
