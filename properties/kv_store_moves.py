"""Moves on KV stores: a few operations that belong together, as real faults need them.

Token ids don't matter to a store (see `tokenlaw.properties.kv_store_run`), so every token is 0.
"""

from functools import partial
from itertools import permutations

from tokenlaw.properties.drawing import Pick, coin, one_of
from tokenlaw.properties.history import History
from tokenlaw.properties.kv_store_layer_moves import LAYER_MOVES
from tokenlaw.properties.kv_store_lengths import Move, any_length, free_positions, someone, zeros
from tokenlaw.properties.trace import (
    Append,
    Attend,
    Fork,
    Free,
    FreeAgain,
    New,
    Operation,
    Overflow,
    Reorder,
    Rollback,
)
from tokenlaw.spec.contracts import CacheConfig

_MOST_BEAMS = 5


def new(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """A sequence of any length."""
    return [New(zeros(any_length(pick, config)))]


def _append(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    return [Append(someone(pick, history), zeros(any_length(pick, config)))]


def _free(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    return [Free(someone(pick, history))]


def _free_twice(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """A second release, then two sequences that would share what was released twice."""
    one = zeros(pick(1, config.block_size))
    return [Free(someone(pick, history)), FreeAgain(), New(one), New(one)]


def _reuse_shorter(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Free a sequence, let another one take some of its blocks, reuse its slot for a shorter one."""
    freed = someone(pick, history)
    length = len(history.live[freed].tokens)
    shorter = New(zeros(pick(1, max(1, length - 1))))
    if len(history.live) == 1:
        return [Free(freed), shorter, New(zeros(any_length(pick, config)))]
    other = pick(0, len(history.live) - 2)
    return [Free(freed), Append(other, zeros(config.block_size)), shorter]


def _fill(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Fill the pool exactly, then ask for one position more than fits."""
    left = free_positions(history, config)
    filling: list[Operation] = [New(zeros(left))] if left else []
    beyond: Operation = New(zeros(1)) if coin(pick) else Append(0, zeros(config.block_size))
    return [*filling, beyond]


def _fill_again(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Release everything and fill the whole pool anew: what leaked is missing now."""
    whole = New(zeros(config.num_blocks * config.block_size))
    return [*[Free(0)] * len(history.live), whole, Free(0), whole]


def _overflow(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Overflow while another sequence is live, often with all blocks taken."""
    left = free_positions(history, config)
    company = [left] if left and coin(pick) else [1] * (len(history.live) == 1)
    count = pick(1, config.block_size)
    return [*[New(zeros(length)) for length in company], Overflow(someone(pick, history), count)]


def _fork_diverge(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Fork, then append to the child first or to the parent first; then perhaps release one of the two."""
    parent, child = someone(pick, history), len(history.live)
    order = one_of(pick, ((parent, child), (child, parent)))
    appended: list[Operation] = [Append(one, zeros(pick(1, config.block_size))) for one in order]
    released: list[Operation] = [Free(one_of(pick, order))] if coin(pick) else []
    return [Fork(parent), *appended, *released]


def _rollback(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Roll back within the length, then append what may be shorter."""
    index = someone(pick, history)
    count = pick(0, len(history.live[index].tokens))
    return [Rollback(index, count), Append(index, zeros(any_length(pick, config)))]


def _fork_rewrite(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Fork, roll one of the two back, mostly inside its last block, and write there again; somebody comes."""
    parent, child = someone(pick, history), len(history.live)
    rewound, length = one_of(pick, (parent, child)), len(history.live[parent].tokens)
    count = pick(1, max(1, min(length, config.block_size - 1) if coin(pick) else length))
    comes: list[Operation] = [New(zeros(any_length(pick, config)))] if coin(pick) else []
    return [Fork(parent), Rollback(rewound, count), *comes, Append(rewound, zeros(count))]


def _bad_rollback(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    index = someone(pick, history)
    beyond = len(history.live[index].tokens) + pick(1, config.block_size)
    return [Rollback(index, one_of(pick, (beyond, -1)))]


def _beams(pick: Pick, history: History, config: CacheConfig, forks: bool = False) -> list[Operation]:
    """Beams of one length, and nothing else: reorder, mostly append to each, reorder again."""
    most = min(_MOST_BEAMS, config.max_sequences)
    count = most if coin(pick) else pick(2, most)
    length = pick(1, config.block_size + 1)

    def reorder() -> Operation:
        return Reorder(tuple(pick(0, count - 1) for _ in range(count)))

    first: list[Operation] = [*[Free(0)] * len(history.live), New(zeros(length))]
    others: list[Operation] = [Fork(0) if forks else New(zeros(length))] * (count - 1)
    step: list[Operation] = [Append(beam, zeros(1)) for beam in range(count)]
    between = [] if pick(0, 3) == 0 else step
    return [*first, *others, *step, reorder(), *between, reorder()]


def _fork_too_many(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Fill the whole pool; fork one sequence until no further one is admitted; fill the whole pool anew."""
    one, forks = New(zeros(pick(1, config.block_size))), config.max_sequences
    whole = New(zeros(config.num_blocks * config.block_size))
    drain: list[Operation] = [Free(0)] * len(history.live)
    return [*drain, whole, Free(0), one, *[Fork(0)] * forks, *[Free(0)] * forks, whole]


def _attend_part(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Some live sequences in any order, then the others; a second one is admitted if there is only one."""
    second: list[Operation] = [New(zeros(any_length(pick, config)))] if len(history.live) == 1 else []
    order = one_of(pick, tuple(permutations(range(len(history.live) + len(second)))))
    count = pick(1, len(order))
    others: list[Operation] = [Attend(tuple(order[count:]))] if order[count:] else []
    return [*second, Attend(tuple(order[:count])), *others]


_ANY: frozenset[str] = frozenset()
MOVES: tuple[tuple[frozenset[str], Move], ...] = (
    (_ANY, new),
    (_ANY, _append),
    (_ANY, _append),
    (_ANY, _free),
    (_ANY, _free_twice),
    (_ANY, _reuse_shorter),
    (_ANY, _fill),
    (_ANY, _fill_again),
    (frozenset({"reserve"}), _overflow),
    (frozenset({"reserve"}), _overflow),
    (frozenset({"fork"}), _fork_diverge),
    (frozenset({"fork"}), _fork_too_many),
    (frozenset({"rollback"}), _rollback),
    (frozenset({"rollback"}), _rollback),
    (frozenset({"rollback"}), _bad_rollback),
    (frozenset({"rollback", "fork"}), _fork_rewrite),
    (frozenset({"rollback", "fork"}), _fork_rewrite),
    (frozenset({"reorder"}), _beams),
    (frozenset({"reorder", "fork"}), partial(_beams, forks=True)),
    *LAYER_MOVES,
    (frozenset({"attend", "any-batch"}), _attend_part),
    (frozenset({"attend", "any-batch"}), _attend_part),
)
"""Capabilities that a move needs, and the move; what stands twice is drawn twice as often."""
