"""The reference block manager: sliding windows, swapping, steps in flight."""

import pytest

from support.managers import SIZE, admit, hits, manager, observables
from tokenlaw.spec.contracts import NO_BLOCK, OutOfBlocks


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
