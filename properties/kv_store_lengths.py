"""What moves on KV stores are made of: lengths, and which sequence.

Token ids don't matter to a store (see `tokenlaw.properties.kv_store_run`), so every token is 0.
"""

from collections.abc import Callable

from tokenlaw.properties.drawing import Pick, coin, one_of
from tokenlaw.properties.history import History
from tokenlaw.properties.trace import Operation, Tokens
from tokenlaw.spec.contracts import CacheConfig

Move = Callable[[Pick, History, CacheConfig], list[Operation]]
"""``move(pick, history, config)``: operations that come next; ``history`` has at least one live sequence,
except for `new`.
"""


def zeros(count: int) -> Tokens:
    return (0,) * count


def any_length(pick: Pick, config: CacheConfig) -> int:
    """A length near a block boundary, or any up to half the pool."""
    size = config.block_size
    if coin(pick):
        return one_of(pick, (1, size - 1, size, size + 1, 2 * size, 2 * size + 1))
    return pick(1, max(1, config.num_blocks * size // 2))


def someone(pick: Pick, history: History) -> int:
    return pick(0, len(history.live) - 1)


def free_positions(history: History, config: CacheConfig) -> int:
    """Positions in blocks that no live sequence needs, if nothing is shared; never negative."""
    size = config.block_size
    used = sum(-(-len(sequence.tokens) // size) for sequence in history.live)
    return max(0, config.num_blocks - used) * size
