"""The reference block manager: rollback, drafts, and writes into cached blocks."""

import pytest

from support.managers import SIZE, admit, hits, manager, observables


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


def test_a_rejection_leaves_the_blocks_of_the_look_ahead() -> None:
    paged = manager(lookahead=SIZE + 1)
    sequence = admit(paged, [1, 2, 3])
    paged.speculate(sequence, [7] * (3 * SIZE))
    drafted = paged.block_table(sequence)
    paged.accept(sequence, 1)
    assert paged.block_table(sequence) == drafted[:3]
    paged.append(sequence, [8] * (2 * SIZE))
    assert paged.block_table(sequence) == drafted[:3]
    paged.rollback(sequence, SIZE)
    assert paged.block_table(sequence) == drafted[:2]


def test_nobody_else_gets_slots_of_the_look_ahead() -> None:
    paged = manager(lookahead=2 * SIZE)
    sequence = admit(paged, [1, 2, 3, 4])
    paged.speculate(sequence, [7] * SIZE)
    while_drafted = paged.fork(sequence)
    paged.accept(sequence, 0)
    assert len(paged.block_table(sequence)) == 1  # the other block is shared, and both sides would write it
    paged.accept(while_drafted, 0)
    assert len(paged.block_table(while_drafted)) == 2
    assert len(paged.block_table(paged.fork(while_drafted))) == 1
    paged.swap_out(while_drafted)
    copies = paged.pending_copies()
    assert len(copies) == 1
    assert paged.num_free_blocks() == 7


def test_a_negative_look_ahead_is_refused() -> None:
    with pytest.raises(ValueError, match="lookahead is -1"):
        manager(lookahead=-1)


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
