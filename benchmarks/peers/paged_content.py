"""Content-only tests of caches: what is read through the block tables is what a contiguous cache would hold.

Sources: vllm-project/vllm, ``tests/kernels/attention/test_attention.py``, and flashinfer's attention tests
(random lengths and tables, no sharing); TensorRT-LLM, ``kvCacheManagerTest.cpp``, and mlx-lm,
``test_prompt_cache.py`` (copies and trims). Here with random calls in place of hand-written ones, which is
kinder to them. No counts, keys or free blocks are looked at, only contents. A call that raises anything but
`OutOfBlocks` fails the test.
"""

import random
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from peers.common import Criterion
from tokenlaw.spec.contracts import BlockCopy, CacheConfig, OutOfBlocks

CONFIG = CacheConfig(num_blocks=48, block_size=4, num_layers=2)
CALLS, MOST_LIVE, LONGEST_PROMPT, LONGEST_APPEND = 300, 8, 20, 5

PLAIN = {"new": 3, "append": 6, "free": 2}
SHARING = {**PLAIN, "fork": 2, "rollback": 2}
WIDE, NARROW = 32_000, 2
"""Vocabularies: prompts that are never equal, and prompts that often are, so that caches are hit."""

Content = list[Any]


@dataclass
class Contents(ABC):
    """A cache, what a contiguous one would hold, and random calls of both.

    Attributes
    ----------
    source : of all random choices.
    live : handle -> its contents, position by position.
    """

    source: random.Random
    live: dict[Any, Content] = field(default_factory=dict)

    def call(self, name: str) -> None:
        """One call; `OutOfBlocks` changes nothing."""
        if name != "new" and not self.live:
            return
        handle = self.source.choice(list(self.live)) if self.live else None
        try:
            getattr(self, name)(handle)
        except OutOfBlocks:
            return

    @abstractmethod
    def same(self) -> bool:
        """Does every sequence read back as a contiguous one?"""


@dataclass
class ManagerContents(Contents):
    """A block manager; the payload of a position is the whole prefix, as in a model of many layers."""

    manager: Any = None
    vocabulary: int = WIDE
    memory: dict[tuple[str, int], list[Any]] = field(
        default_factory=lambda: defaultdict(lambda: [None] * CONFIG.block_size)
    )

    def tokens(self, most: int) -> list[int]:
        """Some random tokens."""
        return self.source.choices(range(self.vocabulary), k=self.source.randint(1, most))

    def new(self, _: Any) -> None:
        """A prompt; what is found in the cache isn't written."""
        if len(self.live) < MOST_LIVE:
            tokens = self.tokens(LONGEST_PROMPT)
            handle = self.manager.allocate(tokens)
            self.live[handle] = list(tokens)
            self.write(handle, self.manager.num_cached_tokens(handle))

    def append(self, handle: Any) -> None:
        """Some tokens more."""
        tokens, first = self.tokens(LONGEST_APPEND), len(self.live[handle])
        self.manager.append(handle, tokens)
        self.live[handle] += tokens
        self.write(handle, first)

    def free(self, handle: Any) -> None:
        """Release."""
        self.manager.free(handle)
        del self.live[handle]

    def fork(self, handle: Any) -> None:
        """An equal sequence."""
        if len(self.live) < MOST_LIVE:
            self.live[self.manager.fork(handle)] = list(self.live[handle])

    def rollback(self, handle: Any) -> None:
        """Some tokens less; one stays."""
        count = self.source.randint(0, min(LONGEST_APPEND, len(self.live[handle]) - 1))
        self.manager.rollback(handle, count)
        del self.live[handle][len(self.live[handle]) - count :]

    def write(self, handle: Any, first: int) -> None:
        """Make the copies, then write what was scheduled, then say so."""
        for copy in self.manager.pending_copies():
            self.copy(copy)
        for place, payload in list(enumerate(self.payloads(handle)))[first:]:
            block, offset = self.slot(handle, place)
            self.memory["device", block][offset] = payload
        self.manager.commit(handle, len(self.live[handle]))

    def copy(self, copy: BlockCopy) -> None:
        """One whole block."""
        source = self.memory[copy.source_tier, copy.source]
        self.memory[copy.destination_tier, copy.destination] = list(source)

    def slot(self, handle: Any, place: int) -> tuple[int, int]:
        """Block and offset of a position."""
        return self.manager.block_table(handle)[place // CONFIG.block_size], place % CONFIG.block_size

    def payloads(self, handle: Any) -> list[int]:
        """A number for every prefix."""
        tokens = self.live[handle]
        return [hash(tuple(tokens[: place + 1])) for place in range(len(tokens))]

    def same(self) -> bool:
        """Through the block tables."""
        for handle in self.live:
            for place, payload in enumerate(self.payloads(handle)):
                block, offset = self.slot(handle, place)
                if not 0 <= block < CONFIG.num_blocks or self.memory["device", block][offset] != payload:
                    return False
        return True


@dataclass
class StoreContents(Contents):
    """A KV store; contents are random keys and values of all layers."""

    store: Any = None

    def new(self, _: Any) -> None:
        """A sequence with a prompt."""
        if len(self.live) < MOST_LIVE:
            handle = self.store.allocate()
            self.live[handle] = []
            self.extend(handle, LONGEST_PROMPT)

    def append(self, handle: Any) -> None:
        """Some tokens more."""
        self.extend(handle, LONGEST_APPEND)

    def free(self, handle: Any) -> None:
        """Release."""
        self.store.free(handle)
        del self.live[handle]

    def fork(self, handle: Any) -> None:
        """An equal sequence."""
        if len(self.live) < MOST_LIVE:
            self.live[self.store.fork(handle)] = list(self.live[handle])

    def rollback(self, handle: Any) -> None:
        """Some tokens less."""
        count = self.source.randint(0, min(LONGEST_APPEND, len(self.live[handle])))
        self.store.rollback(handle, count)
        del self.live[handle][len(self.live[handle]) - count :]

    def extend(self, handle: Any, most: int) -> None:
        """Keys and values of further tokens."""
        count = self.source.randint(1, most)
        shape = (2, CONFIG.num_layers, CONFIG.num_kv_heads, count, CONFIG.head_size)
        generator = torch.Generator().manual_seed(self.source.getrandbits(62))
        pair = torch.randn(shape, generator=generator)
        self.store.reserve(handle, len(self.live[handle]) + count)
        self.store.append(handle, *pair)
        self.live[handle] += [pair[..., place, :] for place in range(count)]

    def same(self) -> bool:
        """Layer by layer, in every bit."""
        return all(self.layers(handle, content) for handle, content in self.live.items())

    def layers(self, handle: Any, content: Content) -> bool:
        """Of one sequence."""
        empty = torch.empty(2, CONFIG.num_layers, CONFIG.num_kv_heads, 0, CONFIG.head_size)
        wanted = torch.stack(content, dim=-2) if content else empty
        return all(
            torch.equal(read, wanted[kind, layer])
            for layer in range(CONFIG.num_layers)
            for kind, read in enumerate(self.read(handle, layer))
        )

    def read(self, handle: Any, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values."""
        keys, values = self.store.read(handle, layer)
        return keys, values


def differs(
    make: Callable[[CacheConfig], Any], seed: int, *, weights: dict[str, int], vocabulary: int
) -> bool:
    """Whether some content ever differs, or a call breaks."""
    source = random.Random(seed)
    cache = make(CONFIG)
    contents: Contents = (
        StoreContents(source, store=cache)
        if hasattr(cache, "read")
        else ManagerContents(source, manager=cache, vocabulary=vocabulary)
    )
    try:
        for name in source.choices(list(weights), list(weights.values()), k=CALLS):
            contents.call(name)
            if not contents.same():
                return True
    except Exception:
        return True
    return False


CONTENTS = (
    Criterion("content", "vLLM, flashinfer", CALLS, partial(differs, weights=PLAIN, vocabulary=WIDE)),
    Criterion(
        "content, shared",
        "the same with forks and hits",
        CALLS,
        partial(differs, weights=SHARING, vocabulary=NARROW),
    ),
)
"""Criteria of this file; they are asked of factories of caches."""
