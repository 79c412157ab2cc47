"""What a KV cache holds: the contiguous model that every paged cache must equal, and what paging saves.

Source: Kwon et al. 2023, PagedAttention (arXiv:2309.06180), sections 3 and 4.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Payload = TypeVar("Payload")


@dataclass
class _Sequence(Generic[Payload]):
    payloads: list[Payload]
    settled: int = 0


class ContiguousCache(Generic[Payload]):
    """Each sequence is a list of payloads, nothing is shared, nothing is lost: the shadow of a paged cache.

    The payload of a position is whatever its keys and values are represented by. A sequence is named by an
    integer that is never used again. ``window`` is the sliding window W in tokens: a query at position q sees
    positions max(0, q - W + 1) .. q.

    Tokens that were appended are *settled* once no query before them will be asked any more, in general when
    the step that wrote them is finished; draft tokens settle as far as they are accepted.

    Raises
    ------
    ValueError
        From any method: the sequence isn't live, or a count is out of range. Nothing has changed then.

    Examples
    --------
    >>> cache = ContiguousCache()
    >>> first = cache.allocate("abc")
    >>> second = cache.fork(first)
    >>> cache.append(first, "d"), cache.append(second, "xy")
    (None, None)
    >>> cache.rollback(second, 1)
    >>> "".join(cache.read(first)), "".join(cache.read(second))
    ('abcd', 'abcx')
    >>> cache.free(first)
    >>> cache.live()
    (1,)
    """

    def __init__(self, window: int | None = None) -> None:
        if window is not None and window < 1:
            raise ValueError(f"window is {window}; it must be at least 1, or None for no window")
        self.window = window
        self._sequences: dict[int, _Sequence[Payload]] = {}
        self._next = 0

    def live(self) -> tuple[int, ...]:
        """The live sequences in order of creation."""
        return tuple(self._sequences)

    def allocate(self, payloads: Iterable[Payload] = ()) -> int:
        """A new sequence that holds these payloads, settled."""
        held = list(payloads)
        return self._admit(_Sequence(held, len(held)))

    def append(self, sequence: int, payloads: Iterable[Payload], *, settled: bool = True) -> None:
        """Add payloads at the end; ``settled=False`` for drafts, or for tokens of a step in flight."""
        held = self._live(sequence)
        held.payloads.extend(payloads)
        if settled:
            self.settle(sequence)

    def settle(self, sequence: int) -> None:
        """Everything that the sequence holds now is settled."""
        held = self._live(sequence)
        held.settled = max(held.settled, len(held.payloads))

    def fork(self, sequence: int) -> int:
        """An equal sequence that may diverge."""
        held = self._live(sequence)
        return self._admit(_Sequence(list(held.payloads), held.settled))

    def rollback(self, sequence: int, count: int) -> None:
        """Forget the last ``count`` payloads."""
        held = self._live(sequence)
        length = len(held.payloads)
        if not 0 <= count <= length:
            raise ValueError(f"can't roll sequence {sequence} back by {count}: it holds {length} tokens")
        del held.payloads[length - count :]

    def free(self, sequence: int) -> None:
        """Forget the sequence."""
        self._live(sequence)
        del self._sequences[sequence]

    def length(self, sequence: int) -> int:
        """Number of tokens held."""
        return len(self._live(sequence).payloads)

    def read(self, sequence: int) -> tuple[Payload, ...]:
        """All payloads in order, also those below the window."""
        return tuple(self._live(sequence).payloads)

    def visible(self, sequence: int) -> range:
        """Positions that must be readable: those that a query at or after the settled length may see.

        The window of the first such query, at the settled length s, begins at max(0, s - W + 1). What once
        slid below it may be gone: rolling settled tokens back doesn't bring it back.

        >>> cache = ContiguousCache(window=4)
        >>> sequence = cache.allocate("abcdef")
        >>> cache.append(sequence, "gh", settled=False)
        >>> cache.visible(sequence)
        range(3, 8)
        >>> cache.settle(sequence)
        >>> cache.visible(sequence)
        range(5, 8)
        """
        held = self._live(sequence)
        length = len(held.payloads)
        first = 0 if self.window is None else max(0, held.settled - self.window + 1)
        return range(first, length)

    def recoverable(self, sequence: int) -> int:
        """How many tokens can be rolled back so that the next query still sees its whole window.

        >>> cache = ContiguousCache(window=4)
        >>> sequence = cache.allocate("abcdef")
        >>> cache.append(sequence, "gh", settled=False)
        >>> cache.recoverable(sequence)
        2
        """
        held = self._live(sequence)
        if self.window is None or held.settled < self.window:
            return len(held.payloads)
        return max(0, len(held.payloads) - held.settled)

    def _admit(self, held: _Sequence[Payload]) -> int:
        sequence, self._next = self._next, self._next + 1
        self._sequences[sequence] = held
        return sequence

    def _live(self, sequence: int) -> _Sequence[Payload]:
        if sequence not in self._sequences:
            raise ValueError(f"sequence {sequence} isn't live; live are {list(self._sequences)}")
        return self._sequences[sequence]


def blocks_needed(length: int, block_size: int) -> int:
    """Blocks for ``length`` tokens: ceil(length / block_size).

    >>> [blocks_needed(length, 4) for length in (0, 1, 4, 5)]
    [0, 1, 1, 2]
    """
    if length < 0 or block_size < 1:
        raise ValueError(f"length is {length}, block size {block_size}; they must be at least 0 and 1")
    return -(-length // block_size)


def waste(length: int, block_size: int) -> int:
    """Slots that one sequence holds and doesn't use: at most block_size - 1, whatever the length.

    >>> max(waste(length, 16) for length in range(1000))
    15
    """
    return blocks_needed(length, block_size) * block_size - length


def contiguous_waste(length: int, max_length: int) -> int:
    """The same where room for the longest sequence is reserved: up to max_length - 1, for a single token.

    >>> max(contiguous_waste(length, 2048) for length in range(1, 2049))
    2047
    """
    if not 0 <= length <= max_length:
        raise ValueError(f"length is {length}; it must be between 0 and the reserved {max_length}")
    return max_length - length


def physical_blocks(sequences: Sequence[Sequence[Hashable]], block_size: int, *, sharing: bool) -> int:
    """Blocks for several sequences of tokens, of one namespace and epoch.

    With sharing, full blocks are held once for all sequences that agree in *every* token up to the end of the
    block. A partial tail block is never shared: its owner will write into it.

    >>> prefix = [1, 2, 3, 4, 5, 6, 7, 8]
    >>> [physical_blocks([prefix, prefix], 4, sharing=sharing) for sharing in (True, False)]
    [2, 4]
    >>> physical_blocks([prefix + [9], prefix + [10, 11]], 4, sharing=True)
    4
    """
    if not sharing:
        return sum(blocks_needed(len(tokens), block_size) for tokens in sequences)
    full = {
        tuple(tokens[:end]) for tokens in sequences for end in range(block_size, len(tokens) + 1, block_size)
    }
    return len(full) + sum(1 for tokens in sequences if waste(len(tokens), block_size))


def copies_on_divergence(length: int, block_size: int) -> int:
    """Blocks to copy when one of two forks of this length writes on: the tail if it is partial, else none.

    >>> copies_on_divergence(8, 4), copies_on_divergence(9, 4)
    (0, 1)
    """
    return 1 if waste(length, block_size) else 0


def cache_bytes(layers: int, kv_heads: int, head_size: int, tokens: int, bytes_per_element: int) -> int:
    """Bytes of keys and values: layers * 2 * kv_heads * head_size * tokens * bytes_per_element.

    4096 tokens in float16: a 70B-class model (80 layers, 64 query heads of size 128), then an 8B-class model
    (32 layers, 32 query heads), each with one KV head per query head (MHA), 8 KV heads (GQA), and one (MQA).

    >>> [cache_bytes(80, kv_heads, 128, 4096, 2) for kv_heads in (64, 8, 1)]
    [10737418240, 1342177280, 167772160]
    >>> [cache_bytes(32, kv_heads, 128, 4096, 2) for kv_heads in (32, 8, 1)]
    [2147483648, 536870912, 67108864]
    """
    return layers * 2 * kv_heads * head_size * tokens * bytes_per_element
