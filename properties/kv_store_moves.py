"""Moves on KV stores: a few operations that belong together, as real faults need them.

Token ids don't matter to a store (see `tokenlaw.properties.kv_store_run`), so every token is 0.
"""

from collections.abc import Callable
from functools import partial
from itertools import permutations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tokenlaw.properties.drawing import any_of, evenly
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

Move = Callable[[DrawFn, History, CacheConfig], list[Operation]]
"""``move(draw, history, config)``: operations that come next; ``history`` has at least one live sequence,
except for `new`.
"""


def _tokens(count: int) -> Tokens:
    return (0,) * count


def _length(draw: DrawFn, config: CacheConfig) -> int:
    """A length near a block boundary, or any up to half the pool."""
    size = config.block_size
    near = any_of((1, size - 1, size, size + 1, 2 * size, 2 * size + 1))
    return draw(near if draw(st.booleans()) else evenly(1, max(1, config.num_blocks * size // 2)))


def _pick(draw: DrawFn, history: History) -> int:
    return draw(evenly(0, len(history.live) - 1))


def _free_tokens(history: History, config: CacheConfig) -> int:
    """Positions in blocks that no live sequence needs, if nothing is shared; never negative."""
    size = config.block_size
    used = sum(-(-len(sequence.tokens) // size) for sequence in history.live)
    return max(0, config.num_blocks - used) * size


def new(draw: DrawFn, history: History, config: CacheConfig) -> list[Operation]:
    """A sequence of any length."""
    return [New(_tokens(_length(draw, config)))]


def _append(draw: DrawFn, history: History, config: CacheConfig) -> list[Operation]:
    return [Append(_pick(draw, history), _tokens(_length(draw, config)))]


def _free(draw: DrawFn, history: History, config: CacheConfig) -> list[Operation]:
    return [Free(_pick(draw, history))]


def _free_twice(draw: DrawFn, history: History, config: CacheConfig) -> list[Operation]:
    """A second release, then two sequences that would share what was released twice."""
    one = _tokens(draw(evenly(1, config.block_size)))
    return [Free(_pick(draw, history)), FreeAgain(), New(one), New(one)]


def _reuse_shorter(draw: DrawFn, history: History, config: CacheConfig) -> list[Operation]:
    """Free a sequence, let another one take some of its blocks, reuse its slot for a shorter one."""
    freed = _pick(draw, history)
    length = len(history.live[freed].tokens)
    shorter = New(_tokens(draw(evenly(1, max(1, length - 1)))))
    if len(history.live) == 1:
        return [Free(freed), shorter, New(_tokens(_length(draw, config)))]
    other = draw(evenly(0, len(history.live) - 2))
    return [Free(freed), Append(other, _tokens(config.block_size)), shorter]


def _fill(draw: DrawFn, history: History, config: CacheConfig) -> list[Operation]:
    """Fill the pool exactly, then ask for one position more than fits."""
    left = _free_tokens(history, config)
    filling: list[Operation] = [New(_tokens(left))] if left else []
    beyond: Operation = New(_tokens(1)) if draw(st.booleans()) else Append(0, _tokens(config.block_size))
    return [*filling, beyond]


def _fill_again(draw: DrawFn, history: History, config: CacheConfig) -> list[Operation]:
    """Release everything and fill the whole pool anew: what leaked is missing now."""
    whole = New(_tokens(config.num_blocks * config.block_size))
    return [*[Free(0)] * len(history.live), whole, Free(0), whole]


def _overflow(draw: DrawFn, history: History, config: CacheConfig) -> list[Operation]:
    """Overflow while another sequence is live, often with all blocks taken."""
    left = _free_tokens(history, config)
    company = [left] if left and draw(st.booleans()) else [1] * (len(history.live) == 1)
    count = draw(evenly(1, config.block_size))
    return [*[New(_tokens(length)) for length in company], Overflow(_pick(draw, history), count)]


def _fork_diverge(draw: DrawFn, history: History, config: CacheConfig) -> list[Operation]:
    """Fork, then append to the child first or to the parent first; then perhaps release one of the two."""
    parent, child = _pick(draw, history), len(history.live)
    order = draw(any_of(((parent, child), (child, parent))))
    lengths = evenly(1, config.block_size)
    appended: list[Operation] = [Append(one, _tokens(draw(lengths))) for one in order]
    released: list[Operation] = [Free(draw(any_of(order)))] if draw(st.booleans()) else []
    return [Fork(parent), *appended, *released]


def _rollback(draw: DrawFn, history: History, config: CacheConfig) -> list[Operation]:
    """Roll back within the length, then append what may be shorter."""
    index = _pick(draw, history)
    count = draw(evenly(0, len(history.live[index].tokens)))
    return [Rollback(index, count), Append(index, _tokens(_length(draw, config)))]


def _fork_rewrite(draw: DrawFn, history: History, config: CacheConfig) -> list[Operation]:
    """Fork, roll one of the two back inside its last block, and write there again."""
    parent, child = _pick(draw, history), len(history.live)
    rewound, length = draw(any_of((parent, child))), len(history.live[parent].tokens)
    count = draw(evenly(1, max(1, min(length, config.block_size - 1))))
    return [Fork(parent), Rollback(rewound, count), Append(rewound, _tokens(count))]


def _bad_rollback(draw: DrawFn, history: History, config: CacheConfig) -> list[Operation]:
    index = _pick(draw, history)
    beyond = len(history.live[index].tokens) + draw(evenly(1, config.block_size))
    return [Rollback(index, draw(any_of((beyond, -1))))]


def _beams(draw: DrawFn, history: History, config: CacheConfig, forks: bool = False) -> list[Operation]:
    """Beams of one length, and nothing else: reorder, append to each, reorder again."""
    count = draw(evenly(2, min(3, config.max_sequences)))
    length = draw(evenly(1, config.block_size + 1))
    parents = st.tuples(*[evenly(0, count - 1)] * count)
    first: list[Operation] = [*[Free(0)] * len(history.live), New(_tokens(length))]
    others: list[Operation] = [Fork(0) if forks else New(_tokens(length))] * (count - 1)
    step: list[Operation] = [Append(beam, _tokens(1)) for beam in range(count)]
    return [*first, *others, *step, Reorder(draw(parents)), *step, Reorder(draw(parents))]


def _forward_pass(draw: DrawFn, history: History, config: CacheConfig) -> list[Operation]:
    """Extend the layers of a sequence one after the other in any order; another one acts in between."""
    sequence, tokens = _pick(draw, history), _tokens(draw(evenly(1, config.block_size)))
    order = draw(any_of(tuple(permutations(range(config.num_layers)))))
    operations: list[Operation] = [AppendLayer(sequence, layer, tokens) for layer in order]
    if draw(st.booleans()):
        between = any_of((_append, _free)) if len(history.live) > 1 else st.just(_append)
        operations[1:1] = draw(between)(draw, history, config)
    return operations


def _own_lengths(draw: DrawFn, history: History, config: CacheConfig, forks: bool = False) -> list[Operation]:
    """Extend one layer of a sequence twice, perhaps fork it, and go on in the other layer, twice as well.

    Room is made in all layers: that of the layer behind is unused at the fork, and both may fill theirs.
    """
    sequence, (ahead, behind) = _pick(draw, history), draw(any_of(((0, 1), (1, 0))))
    lengths, child = evenly(1, config.block_size + 1), len(history.live)
    orders = (
        ((sequence, child), (child, sequence), (sequence, sequence)) if forks else ((sequence, sequence),)
    )
    fork: list[Operation] = [Fork(sequence)] if forks else []
    return [
        *[AppendLayer(sequence, ahead, _tokens(draw(lengths))) for _ in range(2)],
        *fork,
        *[AppendLayer(one, behind, _tokens(draw(lengths))) for one in draw(any_of(orders))],
    ]


def _attend_part(draw: DrawFn, history: History, config: CacheConfig) -> list[Operation]:
    """Some live sequences in any order, then the others; a second one is admitted if there is only one."""
    second: list[Operation] = [New(_tokens(_length(draw, config)))] if len(history.live) == 1 else []
    order = draw(any_of(tuple(permutations(range(len(history.live) + len(second))))))
    count = draw(evenly(1, len(order)))
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
