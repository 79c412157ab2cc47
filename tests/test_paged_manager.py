"""The reference block manager: each promise of the contract once, then all of them at random."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.impl.paged import PagedBlockManager, UnknownSequence
from tokenlaw.spec.contracts import NO_BLOCK, CacheConfig, OutOfBlocks

SIZE = 4


def manager(num_blocks: int = 8, window: int | None = None) -> PagedBlockManager:
    return PagedBlockManager(CacheConfig(num_blocks=num_blocks, block_size=SIZE, window=window))


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


# Tables and copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", range(10))
def test_a_table_has_as_many_blocks_as_its_length_needs(length: int) -> None:
    paged = manager()
    grown = paged.allocate([])
    for token in range(length):
        paged.append(grown, [token])
    whole = paged.allocate(list(range(length)))
    assert len(paged.block_table(grown)) == len(paged.block_table(whole)) == -(-length // SIZE)
    assert paged.num_free_blocks() == 8 - 2 * -(-length // SIZE)


def test_forks_share_until_one_writes_and_then_one_block_is_copied_once() -> None:
    paged = manager()
    parent = admit(paged, [1, 2, 3, 4, 5, 6])
    child = paged.fork(parent)
    shared = paged.block_table(parent)
    assert paged.block_table(child) == shared
    assert [paged.ref_count(block) for block in shared] == [2, 2]
    paged.append(child, [7])
    (copy,) = paged.pending_copies()
    assert (copy.source, copy.destination) == (shared[1], paged.block_table(child)[1])
    paged.append(parent, [8])  # the parent is alone in its tail now
    assert paged.pending_copies() == []
    assert paged.block_table(parent) == shared
    assert [paged.ref_count(block) for block in shared] == [2, 1]


def test_no_copy_at_a_block_boundary() -> None:
    paged = manager()
    parent = admit(paged, [1, 2, 3, 4])
    child = paged.fork(parent)
    paged.append(child, [5])
    assert paged.pending_copies() == []
    assert paged.block_table(child)[:1] == paged.block_table(parent)


def test_a_waiting_copy_keeps_its_source_from_being_reused() -> None:
    paged = manager(num_blocks=3)
    parent = admit(paged, [1, 2])
    child = paged.fork(parent)
    paged.append(child, [9])
    source = paged.block_table(parent)[0]
    paged.free(parent)
    assert paged.num_free_blocks() == 1
    other = paged.allocate([5, 6, 7])
    (copy,) = paged.pending_copies()
    assert copy.source == source != paged.block_table(other)[0]
    assert paged.num_free_blocks() == 1


def test_waiting_copies_in_a_chain_read_what_is_there_already() -> None:
    paged = manager()
    first = admit(paged, [1, 2])
    second = paged.fork(first)
    paged.append(second, [3])
    third = paged.fork(second)
    paged.append(third, [4])
    source = paged.block_table(first)[0]
    assert {(copy.source, copy.destination) for copy in paged.pending_copies()} == {
        (source, paged.block_table(second)[0]),
        (source, paged.block_table(third)[0]),
    }


def test_a_copy_into_a_released_block_is_forgotten() -> None:
    paged = manager()
    parent = admit(paged, [1, 2])
    child = paged.fork(parent)
    paged.append(child, [3])
    paged.free(child)
    assert paged.pending_copies() == []
    paged.free(parent)
    assert paged.num_free_blocks() == 8


# Failure and release ------------------------------------------------------------------------------------


def test_exactly_full_fits_and_one_block_more_does_not() -> None:
    paged = manager(num_blocks=2)
    with pytest.raises(OutOfBlocks, match="needs 3 more device blocks; 2 are available"):
        paged.allocate(list(range(9)))
    sequence = paged.allocate(list(range(8)))
    assert paged.num_free_blocks() == 0
    paged.free(sequence)
    assert paged.num_free_blocks() == 2


def test_hits_on_idle_blocks_are_not_counted_as_free_too() -> None:
    paged = manager(num_blocks=3)
    paged.free(admit(paged, [1, 2, 3, 4]))
    other = admit(paged, [9, 9, 9, 9])
    before = observables(paged, 3, [other])
    with pytest.raises(OutOfBlocks):
        paged.allocate([1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert observables(paged, 3, [other]) == before
    fits = paged.allocate([1, 2, 3, 4, 5])
    assert paged.num_cached_tokens(fits) == 4
    assert paged.num_free_blocks() == 0


@pytest.mark.parametrize("call", ["append", "speculate"])
def test_a_failed_append_changes_nothing(call: str) -> None:
    paged = manager(num_blocks=3)
    parent = admit(paged, [1, 2, 3, 4, 5])
    child = paged.fork(parent)
    before = observables(paged, 3, [parent, child])
    with pytest.raises(OutOfBlocks):
        getattr(paged, call)(child, [6, 7, 8, 9])
    assert observables(paged, 3, [parent, child]) == before
    assert paged.pending_copies() == []
    paged.append(child, [6])
    assert len(paged.pending_copies()) == 1


def test_a_second_release_raises_and_changes_nothing() -> None:
    paged = manager()
    parent = admit(paged, [1, 2, 3, 4, 5])
    child = paged.fork(parent)
    paged.free(parent)
    before = observables(paged, 8, [child])
    with pytest.raises(UnknownSequence, match="no live sequence 0"):
        paged.free(parent)
    assert observables(paged, 8, [child]) == before


# Rollback and speculation -------------------------------------------------------------------------------


@pytest.mark.parametrize("length", range(9))
@pytest.mark.parametrize("count", range(1, 10))
def test_rollback_undoes_append(length: int, count: int) -> None:
    paged = manager()
    sequence = admit(paged, list(range(length)))
    before = observables(paged, 8, [sequence])
    paged.append(sequence, [90 + i for i in range(count)])
    paged.rollback(sequence, count)
    after = observables(paged, 8, [sequence])
    assert after[1:] == before[1:]
    assert [references for references, _ in after[0]] == [references for references, _ in before[0]]


@pytest.mark.parametrize("count", [-1, 6])
def test_a_rollback_of_more_than_there_is_raises_and_changes_nothing(count: int) -> None:
    paged = manager()
    sequence = admit(paged, [1, 2, 3, 4, 5])
    before = observables(paged, 8, [sequence])
    with pytest.raises(ValueError, match=f"can't roll back {count}"):
        paged.rollback(sequence, count)
    assert observables(paged, 8, [sequence]) == before


@pytest.mark.parametrize("length", range(1, 9))
@pytest.mark.parametrize("drafts", range(1, 6))
def test_accepting_keeps_a_prefix_of_the_drafts(length: int, drafts: int) -> None:
    for accepted in range(drafts + 1):
        paged = manager()
        sequence = admit(paged, list(range(length)))
        paged.speculate(sequence, [50 + i for i in range(drafts)])
        assert paged.num_tokens(sequence) == length + drafts
        paged.accept(sequence, accepted)
        assert paged.num_tokens(sequence) == length + accepted
        assert len(paged.block_table(sequence)) == -(-(length + accepted) // SIZE)
        with pytest.raises(ValueError, match="0 drafts"):
            paged.accept(sequence, 1)


def test_drafts_are_never_found_by_others() -> None:
    paged = manager()
    sequence = admit(paged, [1, 2])
    paged.speculate(sequence, [7, 7])
    with pytest.raises(ValueError, match="has 2 tokens that are not drafts: can't commit 4"):
        paged.commit(sequence, 4)
    assert hits(paged, [1, 2, 7, 7, 5]) == 0
    paged.accept(sequence, 1)
    paged.append(sequence, [8])
    paged.commit(sequence, 4)
    assert hits(paged, [1, 2, 7, 7, 5]) == 0
    assert hits(paged, [1, 2, 7, 8, 5]) == 4


@pytest.mark.parametrize("call", ["append", "speculate", "rollback"])
def test_undecided_drafts_come_first(call: str) -> None:
    paged = manager()
    sequence = admit(paged, [1, 2])
    paged.speculate(sequence, [3])
    with pytest.raises(ValueError, match="1 undecided drafts"):
        getattr(paged, call)(sequence, 1 if call == "rollback" else [4])


def test_writing_into_a_cached_block_takes_its_key_away_first() -> None:
    paged = manager()
    sequence = admit(paged, [1, 2, 3, 4])
    (block,) = paged.block_table(sequence)
    paged.rollback(sequence, 1)
    assert hits(paged, [1, 2, 3, 4, 5]) == 4  # the content still stands
    paged.append(sequence, [9])
    assert paged.block_table(sequence) == [block]
    assert paged.cached_key(block) is None
    assert hits(paged, [1, 2, 3, 4, 5]) == 0
    paged.commit(sequence, 4)
    assert hits(paged, [1, 2, 3, 9, 5]) == 4


def test_writing_into_a_cached_block_of_another_sequence_copies_it() -> None:
    paged = manager()
    sequence = admit(paged, [1, 2, 3, 4])
    other = admit(paged, [1, 2, 3, 4, 5])
    (block,) = paged.block_table(sequence)
    paged.rollback(sequence, 1)
    paged.append(sequence, [9])
    (copy,) = paged.pending_copies()
    assert (copy.source, copy.destination) == (block, paged.block_table(sequence)[0])
    assert paged.block_table(other)[0] == block
    assert hits(paged, [1, 2, 3, 4, 5]) == 4


# The prefix cache ---------------------------------------------------------------------------------------


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


# Windows, swapping, steps in flight ---------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 3, 4, 5, 8])
def test_only_blocks_wholly_below_the_committed_window_go(window: int) -> None:
    paged = manager(num_blocks=16, window=window)
    sequence = paged.allocate(list(range(20)))
    for committed in range(21):
        paged.commit(sequence, committed)
        needed = max(0, committed - window + 1)
        table = paged.block_table(sequence)
        assert table.count(NO_BLOCK) == table[: needed // SIZE].count(NO_BLOCK) == needed // SIZE
    paged.speculate(sequence, [1] * 8)
    assert paged.block_table(sequence).count(NO_BLOCK) == max(0, 21 - window) // SIZE
    paged.free(sequence)
    assert paged.num_free_blocks() == 16


@pytest.mark.parametrize("window", [1, 2, 5])
def test_a_rollback_below_the_window_raises_exactly_when_positions_are_gone(window: int) -> None:
    for count in range(14):
        paged = manager(window=window)
        sequence = admit(paged, list(range(13)))
        length, gone = 13 - count, max(0, 14 - window) // SIZE * SIZE
        # The next query sees length - window + 1 .. length, and position `length` needs a slot in its block.
        seen = set(range(max(0, length - window + 1), length)) | set(range(length - length % SIZE, length))
        if any(position < gone for position in seen):
            before = observables(paged, 8, [sequence])
            with pytest.raises(ValueError, match="are gone"):
                paged.rollback(sequence, count)
            assert observables(paged, 8, [sequence]) == before
        else:
            paged.rollback(sequence, count)
            paged.append(sequence, [7])
            assert paged.block_table(sequence)[-1] != NO_BLOCK


def test_swapping_moves_a_view_and_brings_it_back() -> None:
    paged = manager(num_blocks=4)
    parent = admit(paged, [1, 2, 3, 4, 5])
    child = paged.fork(parent)
    before = paged.block_table(child)
    paged.swap_out(child)
    out = paged.pending_copies()
    assert [copy.source for copy in out] == before
    assert {(copy.source_tier, copy.destination_tier) for copy in out} == {("device", "host")}
    assert paged.block_table(child) == []
    assert [paged.ref_count(block) for block in before] == [1, 1]
    with pytest.raises(ValueError, match="swapped out"):
        paged.append(child, [6])
    paged.swap_in(child)
    back = paged.pending_copies()
    assert [(copy.source, copy.source_tier) for copy in back] == [(copy.destination, "host") for copy in out]
    assert [copy.destination for copy in back] == paged.block_table(child)
    assert not set(paged.block_table(child)) & set(before)
    with pytest.raises(ValueError, match="not swapped out"):
        paged.swap_in(child)


def test_swapping_fails_without_a_trace() -> None:
    paged = manager(num_blocks=2)
    sequence = admit(paged, [1, 2, 3, 4, 5])
    paged.swap_out(sequence)
    paged.pending_copies()
    other = admit(paged, [9])
    before = observables(paged, 2, [sequence, other])
    with pytest.raises(OutOfBlocks):
        paged.swap_in(sequence)
    child = paged.fork(other)
    with pytest.raises(OutOfBlocks, match="host"):
        paged.swap_out(child)
    paged.free(child)
    assert observables(paged, 2, [sequence, other]) == before
    paged.free(sequence)
    paged.swap_out(other)  # the host has room again
    assert paged.num_free_blocks() == 1
    paged.pending_copies()
    assert paged.num_free_blocks() == 2


def test_out_and_in_before_a_drain_is_one_copy_on_the_device() -> None:
    paged = manager()
    sequence = admit(paged, [1, 2])
    (source,) = paged.block_table(sequence)
    paged.swap_out(sequence)
    paged.swap_in(sequence)
    (copy,) = paged.pending_copies()
    assert (copy.source_tier, copy.source, copy.destination_tier) == ("device", source, "device")
    assert [copy.destination] == paged.block_table(sequence) != [source]


def test_what_is_released_in_a_step_is_neither_handed_out_nor_hit_before_its_end() -> None:
    paged = manager(num_blocks=3)
    prompt = [1, 2, 3, 4, 5]
    sequence = admit(paged, prompt)
    paged.begin_step()
    held = paged.block_table(sequence)
    paged.free(sequence)
    assert paged.num_free_blocks() == 1
    with pytest.raises(OutOfBlocks):
        paged.allocate(prompt)
    other = paged.allocate([9])
    assert paged.block_table(other)[0] not in held
    paged.end_step()
    assert paged.num_free_blocks() == 2
    assert hits(paged, prompt) == 4


def test_steps_do_not_nest() -> None:
    paged = manager()
    with pytest.raises(RuntimeError, match="begin_step"):
        paged.end_step()
    paged.begin_step()
    with pytest.raises(RuntimeError, match="end_step"):
        paged.begin_step()


@pytest.mark.parametrize("block", [-1, 8])
def test_a_block_outside_the_pool_is_an_error(block: int) -> None:
    with pytest.raises(ValueError, match=r"ids are 0 \.\. 7"):
        manager().ref_count(block)


# All of it at random ------------------------------------------------------------------------------------


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
            assert len(table) == -(-len(shadow.tokens) // SIZE)
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


class Driver:
    """Random operations on a `SymbolicCache`; each leaves everything written and committed."""

    def __init__(self, seed: int, window: int | None) -> None:
        self.random = random.Random(seed)
        self.num_blocks = self.random.choice([5, 9, 14])
        self.paged = manager(self.num_blocks, window)
        self.cache = SymbolicCache(self.paged, self.num_blocks, window, self.random)
        self.done: Counter[str] = Counter()
        self.prompts: list[list[int]] = [[]]

    def prompt(self) -> list[int]:
        """Nearly all of them start as an earlier one did."""
        earlier = self.random.choice(self.prompts)
        prompt = earlier[: self.random.randint(0, 12)] + self.tokens(5)
        self.prompts.append(prompt)
        return prompt

    def tokens(self, most: int) -> list[int]:
        return [self.random.randrange(2) for _ in range(self.random.randint(1, most))]

    def step(self) -> None:
        names = [name for name in dir(self) if name.startswith("do_")]
        name = self.random.choice([*names, "do_new", "do_new", "do_free", "do_free"])
        sequence = self.random.choice(list(self.cache.live)) if self.cache.live else None
        if sequence is None and name != "do_new":
            return
        try:
            getattr(self, name)(sequence)
        except OutOfBlocks:
            assert self.paged.pending_copies() == []
            self.done["out of blocks"] += 1
        self.done[name] += 1
        self.cache.check()

    def _settle(self, sequence: int) -> None:
        self.cache.land(sequence)
        self.paged.commit(sequence, self.paged.num_tokens(sequence))

    def do_new(self, _: int | None) -> None:
        sequence = self.cache.admit(self.prompt(), self.random.choice(["", "", "adapter"]))
        self.done["hit"] += self.paged.num_cached_tokens(sequence) > 0
        self._settle(sequence)

    def do_append(self, sequence: int) -> None:
        self.cache.extend(sequence, self.tokens(6))
        self._settle(sequence)

    def do_fork(self, sequence: int) -> None:
        shadow = self.cache.live[sequence]
        child = self.paged.fork(sequence)
        self.cache.live[child] = Shadow(
            shadow.namespace, [*shadow.tokens], [*shadow.payloads], shadow.written
        )

    def do_speculate(self, sequence: int) -> None:
        drafts = self.tokens(6)
        length = self.paged.num_tokens(sequence)
        self.cache.extend(sequence, drafts, "speculate")
        self.cache.land(sequence)
        accepted = self.random.randint(0, len(drafts))
        self.paged.accept(sequence, accepted)
        self.cache.cut(sequence, length + accepted)
        self.paged.commit(sequence, length + accepted)

    def do_rollback(self, sequence: int) -> None:
        length = self.random.randint(0, self.paged.num_tokens(sequence))
        try:
            self.paged.rollback(sequence, self.paged.num_tokens(sequence) - length)
        except ValueError:
            assert self.cache.window is not None
            return
        self.cache.cut(sequence, length)

    def do_free(self, sequence: int) -> None:
        self.paged.free(sequence)
        del self.cache.live[sequence]

    def do_abort(self, sequence: int) -> None:
        self.cache.extend(sequence, self.tokens(6))
        self.do_free(sequence)

    def do_abort_new(self, _: int) -> None:
        self.do_free(self.cache.admit(self.prompt(), ""))

    def do_diverge_before_a_drain(self, sequence: int) -> None:
        first = self.cache.admit(self.tokens(7), "")
        self._settle(first)
        second = self.paged.fork(first)
        shadow = self.cache.live[first]
        self.cache.live[second] = Shadow("", [*shadow.tokens], [*shadow.payloads], shadow.written)
        try:
            self.cache.extend(first, [0])
            self.cache.extend(second, [1])
            self.do_free(self.random.choice([first, second, sequence]))
        except OutOfBlocks:
            self.done["out of blocks"] += 1
        self.cache.land(-1)
        for handle in {first, second} & set(self.cache.live):
            self._settle(handle)

    def do_swap_out(self, sequence: int) -> None:
        self.cache.call("swap_out", sequence)
        self.cache.swapped[sequence] = self.cache.live.pop(sequence)
        self.cache.land(-1)

    def do_swap_in(self, _: int) -> None:
        if self.cache.swapped:
            sequence = self.random.choice(list(self.cache.swapped))
            self.cache.call("swap_in", sequence)
            self.cache.live[sequence] = self.cache.swapped.pop(sequence)
            self.cache.land(sequence)

    def do_late_write(self, sequence: int) -> None:
        self.paged.begin_step()
        try:
            self.cache.extend(sequence, self.tokens(6))
            self.cache.land(-1)
            shadow, table = self.cache.live[sequence], self.paged.block_table(sequence)
            self.do_free(sequence)
            self._settle(self.cache.admit(self.prompt(), ""))
            for position in range(shadow.written, len(shadow.tokens)):
                self.cache.memory["device", table[position // SIZE], position % SIZE] = "late"
        finally:
            self.paged.end_step()

    def do_evict(self, _: int) -> None:
        self.paged.evict(self.random.randint(0, 3))

    def do_new_epoch(self, _: int) -> None:
        if self.random.random() < 0.2:
            self.paged.new_epoch()
            self.cache.epoch += 1
            self.done["epoch"] += 1


@given(seed=st.integers(0, 2**32 - 1), window=st.sampled_from([None, None, 1, 3, 4, 6]))
def test_random_operations_keep_content_and_accounts(seed: int, window: int | None) -> None:
    driver = Driver(seed, window)
    for _ in range(150):
        driver.step()


def test_random_operations_reach_everything() -> None:
    done: Counter[str] = Counter()
    for seed in range(20):
        driver = Driver(seed, None)
        for _ in range(150):
            driver.step()
        done += driver.done
    wanted = [name for name in dir(Driver) if name.startswith("do_")] + ["hit", "epoch", "out of blocks"]
    assert {name: done[name] for name in wanted if done[name] < 10} == {}
