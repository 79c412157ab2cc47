"""The reference block manager: bookkeeping of a paged, copy-on-write, prefix-cached KV cache.

After Kwon et al. 2023 (arXiv:2309.06180): a sequence is a table of fixed-size blocks, forks share blocks
until they diverge, full blocks of committed tokens can be hit by later prompts. What a caller sees is stated
by `tokenlaw.spec.contracts.BlockManager`; the comments here say why a step is the way it is.
"""

from collections.abc import Hashable, Sequence

from tokenlaw.impl.paged.blocks import PhysicalBlocks
from tokenlaw.impl.paged.pool_calls import PoolCalls
from tokenlaw.impl.paged.prefix_cache import HashFunction
from tokenlaw.impl.paged.sequence import SequenceRecord, UnknownSequence
from tokenlaw.spec.contracts import NO_BLOCK, CacheConfig


class PagedBlockManager(PoolCalls):
    """A `BlockManager` with every optional capability. Handles are integers that are never used twice.

    Every method that raises has changed nothing. A handle whose sequence was freed raises `UnknownSequence`.
    A sequence that is swapped out has no device block in its table; it can be observed, freed and swapped in,
    and everything else raises `ValueError`.

    Parameters
    ----------
    config
        Number and size of the blocks, and the window. The host tier has as many blocks as the device.
    hash_function
        Hash of the prefix cache; a bad one costs time only.
    lookahead
        Slots beyond the length that a rejection leaves to the sequence, in tokens: the next drafts need them
        soon. A rollback leaves none, and a fork takes none over.
    """

    def __init__(self, config: CacheConfig, hash_function: HashFunction = hash, lookahead: int = 0) -> None:
        if config.window is not None and config.window < 1:
            raise ValueError(f"window is {config.window}; it must be at least 1, or None for no window")
        if lookahead < 0:
            raise ValueError(f"lookahead is {lookahead}; it must be at least 0")
        self.window = config.window
        self.lookahead = lookahead
        self._block_size = config.block_size
        super().__init__(PhysicalBlocks(config.num_blocks, config.block_size, hash_function))
        self._sequences: dict[int, SequenceRecord] = {}
        self._next_handle = 0
        self._epoch = 0

    def allocate(self, tokens: Sequence[int], namespace: Hashable = "") -> int:
        """Admit a sequence; its longest cached prefix is shared, the rest gets new blocks."""
        tokens = list(tokens)
        cache = self._blocks.cache
        root = cache.root(namespace, self._epoch)
        keys, hits = cache.lookup(root, tokens, self._blocks.device.can_share)
        new = self._blocks_for(len(tokens)) - len(hits)
        table = self._blocks.share_and_take(hits, new, f"a prompt of {len(tokens)} tokens")
        cached = len(hits) * self._block_size
        return self._admit(
            SequenceRecord(tokens, table, keys, root, self._epoch, cached_tokens=cached, committed=cached)
        )

    def append(self, sequence: int, tokens: Sequence[int]) -> None:
        """Make slots for further tokens; a shared tail block is copied, a cached one loses its key."""
        self._extend(self._without_drafts(sequence), tokens)

    def speculate(self, sequence: int, drafts: Sequence[int]) -> None:
        """Make slots for draft tokens, which `accept` decides on."""
        record = self._without_drafts(sequence)
        self._extend(record, drafts)
        record.drafts = len(drafts)

    def accept(self, sequence: int, count: int) -> None:
        """Keep the first ``count`` drafts and forget the others, but for the blocks of the look-ahead."""
        record = self._usable(sequence)
        if not 0 <= count <= record.drafts:
            raise ValueError(f"sequence {sequence} has {record.drafts} drafts: can't accept {count}")
        length = record.settled + count
        record.drafts = 0
        needed, wanted = self._blocks_for(length), self._blocks_for(length + self.lookahead)
        self._truncate(record, length, self._blocks.private_part(record.table[:wanted], needed))

    def commit(self, sequence: int, length: int) -> None:
        """The KV of the first ``length`` tokens is written and final.

        Full blocks below it can be hit from now on, unless the weights changed since the sequence was
        admitted: every later position depends on the older ones, so such a sequence never publishes again
        (report: NeMo-RL #4018). Blocks that no later query can see are given back.
        """
        record = self._usable(sequence)
        if not 0 <= length <= record.settled:
            raise ValueError(
                f"sequence {sequence} has {record.settled} tokens that are not drafts: can't commit {length}"
            )
        record.committed = max(record.committed, length)
        if record.epoch == self._epoch:
            self._publish(record)
        self._drop_below_window(record)

    def rollback(self, sequence: int, count: int) -> None:
        """Forget the last ``count`` tokens and give back the blocks that held only them.

        With a window W, the next query at the remaining length L sees positions L - W + 1 .. L - 1 and
        writes L. `ValueError` if a block with one of them was given back: after a commit of n >= W tokens,
        (n - W + 1) mod block_size tokens can always be rolled back, besides those scheduled after it.
        """
        record = self._without_drafts(sequence)
        length = len(record.tokens) - count
        if count < 0 or length < 0:
            raise ValueError(f"sequence {sequence} has {len(record.tokens)} tokens: can't roll back {count}")
        needed = self._first_visible(length)
        if needed // self._block_size < min(record.dropped, self._blocks_for(length)):
            raise ValueError(
                f"sequence {sequence}: after rolling back {count} of {len(record.tokens)} tokens, a query "
                f"needs positions from {needed} on; those below {record.dropped * self._block_size} are gone"
            )
        self._truncate(record, length, self._blocks_for(length))

    def fork(self, sequence: int) -> int:
        """An equal sequence on the same blocks."""
        child = self._usable(sequence).copy()
        del child.table[self._blocks_for(len(child.tokens)) :]
        for block in child.blocks:
            self._blocks.device.share(block)
        return self._admit(child)

    def free(self, sequence: int) -> None:
        """Release the sequence, swapped out or not."""
        record = self._record(sequence)
        del self._sequences[sequence]
        self._blocks.release_all(record.blocks)
        self._blocks.release_host(record.host or [])

    def swap_out(self, sequence: int) -> None:
        """Move the sequence to the host; blocks that others share are copied as well.

        Raises `OutOfBlocks` if the host tier is too full.
        """
        record = self._usable(sequence)
        ahead = record.table[self._blocks_for(len(record.tokens)) :]
        record.host = self._blocks.move_out(record.blocks[: len(record.blocks) - len(ahead)])
        self._blocks.release_all(ahead)
        record.table = [NO_BLOCK] * record.dropped

    def swap_in(self, sequence: int) -> None:
        """Bring a swapped-out sequence back into private blocks; raises `OutOfBlocks` if they don't fit."""
        record = self._record(sequence)
        if record.host is None:
            raise ValueError(f"sequence {sequence} is not swapped out: there is nothing to swap in")
        record.table += self._blocks.move_in(record.host)
        record.host = None

    def block_table(self, sequence: int) -> list[int]:
        """Device blocks in logical order, `NO_BLOCK` below the window; a copy."""
        return self._record(sequence).table.copy()

    def num_tokens(self, sequence: int) -> int:
        """Scheduled tokens, undecided drafts included."""
        return len(self._record(sequence).tokens)

    def num_cached_tokens(self, sequence: int) -> int:
        """Tokens that were found in the cache when the sequence (or what it was forked from) was admitted."""
        return self._record(sequence).cached_tokens

    def new_epoch(self) -> None:
        """The weights changed: what was written before is unreachable, and so is what depends on it."""
        self._epoch += 1
        self._blocks.reset_cache()

    def _record(self, sequence: int) -> SequenceRecord:
        record = self._sequences.get(sequence)
        if record is None:
            raise UnknownSequence(f"no live sequence {sequence!r}: it was freed, or is another manager's")
        return record

    def _usable(self, sequence: int) -> SequenceRecord:
        record = self._record(sequence)
        if record.host is not None:
            raise ValueError(f"sequence {sequence} is swapped out: call swap_in() first")
        return record

    def _without_drafts(self, sequence: int) -> SequenceRecord:
        record = self._usable(sequence)
        if record.drafts:
            raise ValueError(f"sequence {sequence} has {record.drafts} undecided drafts: call accept() first")
        return record

    def _admit(self, record: SequenceRecord) -> int:
        handle = self._next_handle
        self._next_handle += 1
        self._sequences[handle] = record
        return handle

    def _blocks_for(self, length: int) -> int:
        return -(-length // self._block_size)

    def _first_visible(self, length: int) -> int:
        """The first position that the query at position ``length`` sees."""
        return 0 if self.window is None else max(0, length - self.window + 1)

    def _extend(self, record: SequenceRecord, tokens: Sequence[int]) -> None:
        """Add slots for tokens; afterwards the sequence is the only owner of each slot that it will write."""
        if len(tokens) == 0:
            return
        length = len(record.tokens)
        self._blocks.extend(
            record.table,
            self._blocks_for(length + len(tokens)),
            tail=length // self._block_size if length % self._block_size else None,
            purpose=f"appending {len(tokens)} tokens to {length}",
        )
        record.tokens += tokens

    def _truncate(self, record: SequenceRecord, length: int, blocks: int) -> None:
        self._blocks.release_all(record.truncate(length, blocks, self._block_size))

    def _publish(self, record: SequenceRecord) -> None:
        for index in range(len(record.keys), record.committed // self._block_size):
            key = self._blocks.cache.publish(record.last_key, record.tokens, index, record.table[index])
            record.keys.append(key)

    def _drop_below_window(self, record: SequenceRecord) -> None:
        """Give back blocks wholly below committed - W + 1. Tokens in flight, drafts among them, don't count:
        they may go again, and then the window moves back (report: vLLM #47728).
        """
        for block in record.drop_before(self._first_visible(record.committed), self._block_size):
            self._blocks.release(block)
