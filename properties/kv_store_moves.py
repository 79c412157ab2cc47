"""Moves on KV stores: a few operations that belong together, as real faults need them.

Token ids don't matter to a store (see `tokenlaw.properties.kv_store_run`), so every token is 0.
"""

from collections.abc import Callable
from functools import partial
from itertools import permutations

from tokenlaw.properties.drawing import Pick, coin, one_of
from tokenlaw.properties.history import History
from tokenlaw.properties.trace import (
    Append,
    AppendLayer,
    Attend,
    Fork,
    Free,
    FreeAgain,
    New,
    Operation,
    Overflow,
    Reorder,
    Rollback,
    Tokens,
)
from tokenlaw.spec.contracts import CacheConfig

Move = Callable[[Pick, History, CacheConfig], list[Operation]]
"""``move(pick, history, config)``: operations that come next; ``history`` has at least one live sequence,
except for `new`.
"""


def _tokens(count: int) -> Tokens:
    return (0,) * count


def _length(pick: Pick, config: CacheConfig) -> int:
    """A length near a block boundary, or any up to half the pool."""
    size = config.block_size
    if coin(pick):
        return one_of(pick, (1, size - 1, size, size + 1, 2 * size, 2 * size + 1))
    return pick(1, max(1, config.num_blocks * size // 2))


def _someone(pick: Pick, history: History) -> int:
    return pick(0, len(history.live) - 1)


def _free_tokens(history: History, config: CacheConfig) -> int:
    """Positions in blocks that no live sequence needs, if nothing is shared; never negative."""
    size = config.block_size
    used = sum(-(-len(sequence.tokens) // size) for sequence in history.live)
    return max(0, config.num_blocks - used) * size


def new(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """A sequence of any length."""
    return [New(_tokens(_length(pick, config)))]


def _append(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    return [Append(_someone(pick, history), _tokens(_length(pick, config)))]


def _free(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    return [Free(_someone(pick, history))]


def _free_twice(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """A second release, then two sequences that would share what was released twice."""
    one = _tokens(pick(1, config.block_size))
    return [Free(_someone(pick, history)), FreeAgain(), New(one), New(one)]


def _reuse_shorter(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Free a sequence, let another one take some of its blocks, reuse its slot for a shorter one."""
    freed = _someone(pick, history)
    length = len(history.live[freed].tokens)
    shorter = New(_tokens(pick(1, max(1, length - 1))))
    if len(history.live) == 1:
        return [Free(freed), shorter, New(_tokens(_length(pick, config)))]
    other = pick(0, len(history.live) - 2)
    return [Free(freed), Append(other, _tokens(config.block_size)), shorter]


def _fill(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Fill the pool exactly, then ask for one position more than fits."""
    left = _free_tokens(history, config)
    filling: list[Operation] = [New(_tokens(left))] if left else []
    beyond: Operation = New(_tokens(1)) if coin(pick) else Append(0, _tokens(config.block_size))
    return [*filling, beyond]


def _fill_again(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Release everything and fill the whole pool anew: what leaked is missing now."""
    whole = New(_tokens(config.num_blocks * config.block_size))
    return [*[Free(0)] * len(history.live), whole, Free(0), whole]


def _overflow(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Overflow while another sequence is live, often with all blocks taken."""
    left = _free_tokens(history, config)
    company = [left] if left and coin(pick) else [1] * (len(history.live) == 1)
    count = pick(1, config.block_size)
    return [*[New(_tokens(length)) for length in company], Overflow(_someone(pick, history), count)]


def _fork_diverge(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Fork, then append to the child first or to the parent first; then perhaps release one of the two."""
    parent, child = _someone(pick, history), len(history.live)
    order = one_of(pick, ((parent, child), (child, parent)))
    appended: list[Operation] = [Append(one, _tokens(pick(1, config.block_size))) for one in order]
    released: list[Operation] = [Free(one_of(pick, order))] if coin(pick) else []
    return [Fork(parent), *appended, *released]


def _rollback(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Roll back within the length, then append what may be shorter."""
    index = _someone(pick, history)
    count = pick(0, len(history.live[index].tokens))
    return [Rollback(index, count), Append(index, _tokens(_length(pick, config)))]


def _fork_rewrite(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Fork, roll one of the two back inside its last block, and write there again."""
    parent, child = _someone(pick, history), len(history.live)
    rewound, length = one_of(pick, (parent, child)), len(history.live[parent].tokens)
    count = pick(1, max(1, min(length, config.block_size - 1)))
    return [Fork(parent), Rollback(rewound, count), Append(rewound, _tokens(count))]


def _bad_rollback(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    index = _someone(pick, history)
    beyond = len(history.live[index].tokens) + pick(1, config.block_size)
    return [Rollback(index, one_of(pick, (beyond, -1)))]


def _beams(pick: Pick, history: History, config: CacheConfig, forks: bool = False) -> list[Operation]:
    """Beams of one length, and nothing else: reorder, append to each, reorder again."""
    count = pick(2, min(3, config.max_sequences))
    length = pick(1, config.block_size + 1)

    def reorder() -> Operation:
        return Reorder(tuple(pick(0, count - 1) for _ in range(count)))

    first: list[Operation] = [*[Free(0)] * len(history.live), New(_tokens(length))]
    others: list[Operation] = [Fork(0) if forks else New(_tokens(length))] * (count - 1)
    step: list[Operation] = [Append(beam, _tokens(1)) for beam in range(count)]
    return [*first, *others, *step, reorder(), *step, reorder()]


def _forward_pass(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Extend the layers of a sequence one after the other in any order; another one acts in between."""
    sequence, tokens = _someone(pick, history), _tokens(pick(1, config.block_size))
    order = one_of(pick, tuple(permutations(range(config.num_layers))))
    operations: list[Operation] = [AppendLayer(sequence, layer, tokens) for layer in order]
    if coin(pick):
        between = one_of(pick, (_append, _free)) if len(history.live) > 1 else _append
        operations[1:1] = between(pick, history, config)
    return operations


def _own_lengths(pick: Pick, history: History, config: CacheConfig, forks: bool = False) -> list[Operation]:
    """Extend one layer of a sequence twice, perhaps fork it, and go on in the other layer, twice as well.

    Room is made in all layers: that of the layer behind is unused at the fork, and both may fill theirs.
    """
    sequence, (ahead, behind) = _someone(pick, history), one_of(pick, ((0, 1), (1, 0)))
    child = len(history.live)

    def tokens() -> Tokens:
        return _tokens(pick(1, config.block_size + 1))

    orders = (
        ((sequence, child), (child, sequence), (sequence, sequence)) if forks else ((sequence, sequence),)
    )
    fork: list[Operation] = [Fork(sequence)] if forks else []
    return [
        *[AppendLayer(sequence, ahead, tokens()) for _ in range(2)],
        *fork,
        *[AppendLayer(one, behind, tokens()) for one in one_of(pick, orders)],
    ]


def _attend_part(pick: Pick, history: History, config: CacheConfig) -> list[Operation]:
    """Some live sequences in any order, then the others; a second one is admitted if there is only one."""
    second: list[Operation] = [New(_tokens(_length(pick, config)))] if len(history.live) == 1 else []
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
    (frozenset({"rollback"}), _rollback),
    (frozenset({"rollback"}), _rollback),
    (frozenset({"rollback"}), _bad_rollback),
    (frozenset({"rollback", "fork"}), _fork_rewrite),
    (frozenset({"reorder"}), _beams),
    (frozenset({"reorder", "fork"}), partial(_beams, forks=True)),
    (frozenset({"layers"}), _forward_pass),
    (frozenset({"layers"}), _own_lengths),
    (frozenset({"layers"}), _own_lengths),
    (frozenset({"layers", "fork"}), partial(_own_lengths, forks=True)),
    (frozenset({"attend", "any-batch"}), _attend_part),
    (frozenset({"attend", "any-batch"}), _attend_part),
)
"""Capabilities that a move needs, and the move; what stands twice is drawn twice as often."""
