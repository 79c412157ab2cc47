"""A block manager over symbolic memory, next to a contiguous shadow of every sequence."""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from support.managers import SIZE, observables
from tokenlaw.impl.paged import PagedBlockManager
from tokenlaw.spec.contracts import NO_BLOCK, OutOfBlocks


@dataclass
class Shadow:
    """What a sequence must hold: payload i names namespace, epoch of writing and tokens 0 .. i."""

    namespace: str
    tokens: list[int]
    payloads: list[Any]
    written: int = 0


@dataclass
class SymbolicCache:
    """A manager, memory that does what it says, and a contiguous shadow of every sequence."""

    paged: PagedBlockManager
    num_blocks: int
    window: int | None
    random: random.Random
    epoch: int = 0
    live: dict[int, Shadow] = field(default_factory=dict)
    swapped: dict[int, Shadow] = field(default_factory=dict)
    memory: dict[tuple[str, int, int], Any] = field(default_factory=dict)
    meaning: dict[Any, Any] = field(default_factory=dict)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call the manager; if the pool is too full, it must have changed nothing."""
        everything = [*self.live, *self.swapped]
        before = observables(self.paged, self.num_blocks, everything)
        try:
            return getattr(self.paged, method)(*arguments)
        except OutOfBlocks:
            assert observables(self.paged, self.num_blocks, everything) == before
            raise

    def admit(self, tokens: list[int], namespace: str) -> int:
        sequence: int = self.call("allocate", tokens, namespace)
        shadow = self.live[sequence] = Shadow(namespace, [], [], self.paged.num_cached_tokens(sequence))
        assert shadow.written % SIZE == 0
        assert shadow.written < len(tokens)
        self._schedule(shadow, tokens)
        return sequence

    def extend(self, sequence: int, tokens: list[int], call: str = "append") -> None:
        self.call(call, sequence, tokens)
        self._schedule(self.live[sequence], tokens)

    def _schedule(self, shadow: Shadow, tokens: list[int]) -> None:
        for token in tokens:
            shadow.tokens.append(token)
            before = shadow.payloads[-1] if shadow.payloads else shadow.namespace
            shadow.payloads.append(hash((before, token, self.epoch)))

    def land(self, sequence: int) -> None:
        """Apply copies in any order, then write."""
        copies = self.paged.pending_copies()
        self.random.shuffle(copies)
        destinations = {(copy.destination_tier, copy.destination) for copy in copies}
        assert len(destinations) == len(copies)
        assert not destinations & {(copy.source_tier, copy.source) for copy in copies}
        for copy in copies:
            for offset in range(SIZE):
                value = self.memory.get((copy.source_tier, copy.source, offset))
                self.memory[copy.destination_tier, copy.destination, offset] = value
        if sequence in self.live:
            self._write(sequence)

    def _write(self, sequence: int) -> None:
        shadow, table = self.live[sequence], self.paged.block_table(sequence)
        for position in range(shadow.written, len(shadow.tokens)):
            block = table[position // SIZE]
            assert self.paged.ref_count(block) == 1
            assert self.paged.cached_key(block) is None
            self.memory["device", block, position % SIZE] = shadow.payloads[position]
        shadow.written = len(shadow.tokens)

    def cut(self, sequence: int, length: int) -> None:
        shadow = self.live[sequence]
        del shadow.tokens[length:], shadow.payloads[length:]
        shadow.written = min(shadow.written, length)

    def check(self) -> None:
        """Content, reference counts, partition, table lengths, keys."""
        references: Counter[int] = Counter()
        for sequence, shadow in self.live.items():
            table = self.paged.block_table(sequence)
            assert 0 <= len(table) - -(-len(shadow.tokens) // SIZE) <= -(-self.paged.lookahead // SIZE)
            assert self.paged.num_tokens(sequence) == len(shadow.tokens)
            references.update(block for block in table if block != NO_BLOCK)
            first = 0 if self.window is None else max(0, len(shadow.tokens) - self.window + 1)
            for position in range(first, len(shadow.tokens)):
                found = self.memory["device", table[position // SIZE], position % SIZE]
                assert found == shadow.payloads[position]
        assert all(self.paged.ref_count(block) == references[block] for block in range(self.num_blocks))
        assert self.paged.num_free_blocks() == self.num_blocks - len(references)
        self._check_keys()

    def _check_keys(self) -> None:
        keys = [(block, self.paged.cached_key(block)) for block in range(self.num_blocks)]
        published = [(block, key) for block, key in keys if key is not None]
        assert len({key for _, key in published}) == len(published)
        for block, key in published:
            content = tuple(self.memory["device", block, offset] for offset in range(SIZE))
            assert self.meaning.setdefault(key, content) == content
