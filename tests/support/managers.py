"""Small reference block managers, and what a caller can see of one."""

from typing import Any

from tokenlaw.impl.paged import PagedBlockManager
from tokenlaw.spec.contracts import CacheConfig

SIZE = 4


def manager(num_blocks: int = 8, window: int | None = None, lookahead: int = 0) -> PagedBlockManager:
    config = CacheConfig(num_blocks=num_blocks, block_size=SIZE, window=window)
    return PagedBlockManager(config, lookahead=lookahead)


def admit(paged: PagedBlockManager, tokens: list[int], namespace: str = "") -> int:
    """Allocate and commit."""
    sequence = paged.allocate(tokens, namespace)
    paged.pending_copies()
    paged.commit(sequence, len(tokens))
    return sequence


def observables(paged: PagedBlockManager, num_blocks: int, sequences: list[int]) -> Any:
    """All that a caller can see; pending copies are left alone."""
    blocks = [(paged.ref_count(block), paged.cached_key(block)) for block in range(num_blocks)]
    return blocks, paged.num_free_blocks(), [(paged.block_table(s), paged.num_tokens(s)) for s in sequences]


def hits(paged: PagedBlockManager, tokens: list[int], namespace: str = "") -> int:
    """Cached tokens that a prompt would find; the prompt is released again."""
    sequence = paged.allocate(tokens, namespace)
    cached = paged.num_cached_tokens(sequence)
    paged.free(sequence)
    return cached
