"""The reference block manager: what is found in the prefix cache, what is evicted, and in which order."""

from collections.abc import Callable
from typing import Any

import pytest

from support.managers import admit, hits, manager
from tokenlaw.impl.paged import PagedBlockManager
from tokenlaw.spec.contracts import CacheConfig


@pytest.mark.parametrize(("length", "cached"), [(1, 0), (3, 0), (4, 0), (5, 4), (8, 4), (9, 8), (12, 8)])
def test_a_hit_is_whole_blocks_and_leaves_a_token_to_compute(length: int, cached: int) -> None:
    paged = manager()
    admit(paged, list(range(8)))
    assert hits(paged, list(range(length))) == cached


@pytest.mark.parametrize("changed", range(8))
def test_every_token_of_the_prefix_counts(changed: int) -> None:
    paged = manager()
    prompt = list(range(9))
    admit(paged, prompt)
    prompt[changed] = 99
    assert hits(paged, prompt) == (0 if changed < 4 else 4)


def test_equal_blocks_after_different_prefixes_are_different() -> None:
    paged = manager(num_blocks=16)
    admit(paged, [1, 1, 1, 1, 5, 5, 5, 5])
    admit(paged, [2, 2, 2, 2, 6, 6, 6, 6])
    assert hits(paged, [2, 2, 2, 2, 5, 5, 5, 5, 0]) == 4
    assert hits(paged, [5, 5, 5, 5, 0]) == 0


def test_namespaces_share_nothing() -> None:
    paged = manager()
    first = admit(paged, [1, 2, 3, 4], "adapter")
    admit(paged, [1, 2, 3, 4], "other")
    assert hits(paged, [1, 2, 3, 4, 5]) == 0
    shared = paged.allocate([1, 2, 3, 4, 5], "adapter")
    assert paged.block_table(shared)[0] == paged.block_table(first)[0]


def test_nothing_uncommitted_aborted_or_partial_is_found() -> None:
    paged = manager()
    paged.free(paged.allocate([1, 2, 3, 4]))
    assert hits(paged, [1, 2, 3, 4, 5]) == 0
    sequence = paged.allocate([1, 2, 3, 4, 5, 6, 7])
    paged.commit(sequence, 3)
    assert hits(paged, [1, 2, 3, 4, 5]) == 0
    paged.commit(sequence, 7)
    assert hits(paged, [1, 2, 3, 4, 5, 6, 7, 8, 9]) == 4


def test_a_live_block_keeps_its_key_when_an_equal_one_is_committed() -> None:
    paged = manager()
    first, second = paged.allocate([1, 2, 3, 4]), paged.allocate([1, 2, 3, 4])
    paged.commit(first, 4)
    paged.commit(second, 4)
    keys = [paged.cached_key(paged.block_table(sequence)[0]) for sequence in (first, second)]
    assert keys[0] is not None
    assert keys[1] is None
    paged.append(second, [5, 6, 7, 8])
    paged.commit(second, 8)
    assert hits(paged, [1, 2, 3, 4, 5, 6, 7, 8, 9]) == 8


def test_a_hit_leaves_the_entry_and_an_eviction_removes_it() -> None:
    paged = manager(num_blocks=2)
    paged.free(admit(paged, [1, 2, 3, 4]))
    assert [hits(paged, [1, 2, 3, 4, 5]) for _ in range(3)] == [4, 4, 4]
    other = paged.allocate(list(range(10, 18)))
    assert [paged.cached_key(block) for block in range(2)] == [None, None]
    paged.free(other)
    assert hits(paged, [1, 2, 3, 4, 5]) == 0


def test_tails_are_evicted_before_heads_and_old_blocks_before_new_ones() -> None:
    paged = manager(num_blocks=5)
    order: list[int] = []
    for prompt in ([1] * 8, [2] * 8):
        sequence = admit(paged, prompt)
        order += reversed(paged.block_table(sequence))
        paged.free(sequence)
    for evicted in range(4):
        assert all(paged.cached_key(block) is None for block in order[:evicted])
        assert all(paged.cached_key(block) is not None for block in order[evicted:])
        assert paged.evict(1) == 1
    assert paged.evict(1) == 0
    assert paged.num_free_blocks() == 5


def test_a_pool_without_empty_blocks_takes_tails_first() -> None:
    paged = manager(num_blocks=4)
    order: list[int] = []
    for prompt in ([1] * 8, [2] * 8):
        sequence = admit(paged, prompt)
        order += reversed(paged.block_table(sequence))
        paged.free(sequence)
    assert paged.block_table(paged.allocate([9] * 9)) == order[:3]


def test_forks_publish_their_own_chains() -> None:
    paged = manager(num_blocks=16)
    parent = admit(paged, [1, 2, 3, 4, 5, 6])
    child = paged.fork(parent)
    for sequence, token in ((child, 7), (parent, 8)):
        paged.append(sequence, [token] * 6)
        paged.commit(sequence, 12)
    assert hits(paged, [1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 7, 0]) == 12
    assert hits(paged, [1, 2, 3, 4, 5, 6, 8, 8, 8, 8, 8, 8, 0]) == 12
    assert hits(paged, [1, 2, 3, 4, 5, 6, 7, 7, 8, 8, 8, 8, 0]) == 8


def test_a_pool_under_pressure_takes_empty_blocks_first_then_tails() -> None:
    paged = manager(num_blocks=3)
    paged.free(admit(paged, [1, 2, 3, 4, 5, 6, 7, 8]))
    paged.allocate([9])
    assert hits(paged, [1, 2, 3, 4, 5, 6]) == 4
    paged.allocate([9, 9])
    assert paged.num_free_blocks() == 1
    assert sum(paged.cached_key(block) is not None for block in range(3)) == 1
    assert paged.num_cached_tokens(admit(paged, [1, 2, 3])) == 0


@pytest.mark.parametrize("forget", ["reset_cache", "new_epoch"])
def test_forgetting_the_cache_leaves_tables_alone(forget: str) -> None:
    paged = manager()
    paged.free(admit(paged, [1, 2, 3, 4]))
    live = admit(paged, [5, 6, 7, 8])
    table = paged.block_table(live)
    getattr(paged, forget)()
    assert [paged.cached_key(block) for block in range(8)] == [None] * 8
    assert paged.block_table(live) == table
    assert paged.num_free_blocks() == 7
    assert paged.evict(1) == 0
    assert hits(paged, [1, 2, 3, 4, 5]) == hits(paged, [5, 6, 7, 8, 9]) == 0


def test_a_sequence_that_lives_across_an_epoch_never_publishes_again() -> None:
    paged = manager()
    old = admit(paged, [1, 2, 3])
    key = paged.cached_key(paged.block_table(admit(paged, [5, 6, 7, 8]))[0])
    paged.new_epoch()
    paged.append(old, [4, 5, 6, 7, 8])
    child = paged.fork(old)
    for sequence in (old, child):
        paged.commit(sequence, 8)
    assert hits(paged, [1, 2, 3, 4, 5, 6, 7, 8, 9]) == 0
    new = admit(paged, [5, 6, 7, 8])
    assert paged.cached_key(paged.block_table(new)[0]) not in (None, key)


@pytest.mark.parametrize("hash_function", [lambda _: 0, lambda value: hash(value) % 2])
def test_a_bad_hash_gives_no_wrong_hit(hash_function: Callable[[Any], int]) -> None:
    paged = PagedBlockManager(CacheConfig(num_blocks=64, block_size=2), hash_function)
    prompts = [[a, b, c, d, 0] for a in range(3) for b in range(2) for c in range(2) for d in range(2)]
    for prompt in prompts[::2]:
        admit(paged, prompt[:4])
    for prompt in prompts:
        expected = 4 if prompt in prompts[::2] else 2
        assert hits(paged, prompt) == expected
    assert hits(paged, [7, 7, 7]) == hits(paged, [0, 0, 0, 0, 0], "other") == 0
