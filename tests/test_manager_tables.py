"""The reference block manager: tables, copies on write, failure and release."""

import pytest

from support.managers import SIZE, admit, manager, observables
from tokenlaw.impl.paged import PagedBlockManager, UnknownSequence
from tokenlaw.spec.contracts import CacheConfig, OutOfBlocks


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


@pytest.mark.parametrize(
    "config",
    [CacheConfig(num_blocks=-1), CacheConfig(block_size=0), CacheConfig(window=0)],
    ids=["num_blocks", "block_size", "window"],
)
def test_an_impossible_configuration_is_named(config: CacheConfig, request: pytest.FixtureRequest) -> None:
    with pytest.raises(ValueError, match=f"{request.node.callspec.id} is (-1|0)"):
        PagedBlockManager(config)
