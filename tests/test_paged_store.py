"""The reference KV store: what goes in comes out, bit for bit, whatever happens to other sequences."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tokenlaw.impl.paged import REFERENCE, PagedKVStore, UnknownSequence
from tokenlaw.spec import attention as spec
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS, effective_capabilities
from tokenlaw.spec.contracts import KV_STORE, PAGED_ATTENTION, CacheConfig, OutOfBlocks

CONFIG = CacheConfig(num_blocks=6, block_size=4, max_sequences=4)


def payload(tokens: int, seed: int, config: CacheConfig = CONFIG) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (2, config.num_layers, config.num_kv_heads, tokens, config.head_size)
    keys, values = torch.randn(shape, generator=generator).to(getattr(torch, config.dtype))
    return keys, values


def push(store: PagedKVStore, sequence: int, tokens: int, seed: int) -> tuple[Tensor, Tensor]:
    """Reserve, append, and return what was appended."""
    store.reserve(sequence, store.read(sequence, 0)[0].shape[1] + tokens)
    kv = payload(tokens, seed)
    store.append(sequence, *kv)
    return kv


def holds(store: PagedKVStore, sequence: int, *parts: tuple[Tensor, Tensor]) -> bool:
    """Whether the sequence holds exactly these parts, in every layer."""
    keys, values = (torch.cat(tensors, dim=2) for tensors in zip(*parts, strict=True))
    return all(
        torch.equal(store.read(sequence, layer)[0], keys[layer])
        and torch.equal(store.read(sequence, layer)[1], values[layer])
        for layer in range(CONFIG.num_layers)
    )


@pytest.mark.parametrize("tokens", range(10))
def test_what_goes_in_comes_out(tokens: int) -> None:
    store = PagedKVStore(CONFIG)
    sequence = store.allocate()
    first, second = push(store, sequence, tokens, 1), push(store, sequence, 3, 2)
    assert holds(store, sequence, first, second)


def test_forks_diverge_on_both_sides() -> None:
    store = PagedKVStore(CONFIG)
    parent = store.allocate()
    shared = push(store, parent, 6, 1)
    child = store.fork(parent)
    ours, theirs = push(store, parent, 3, 2), push(store, child, 3, 3)
    assert holds(store, parent, shared, ours)
    assert holds(store, child, shared, theirs)
    store.free(parent)
    push(store, store.allocate(), 9, 4)
    assert holds(store, child, shared, theirs)


def test_what_is_read_is_a_copy() -> None:
    store = PagedKVStore(CONFIG)
    sequence = store.allocate()
    kv = push(store, sequence, 4, 1)
    for tensor in store.read(sequence, 0):
        tensor.zero_()
    assert holds(store, sequence, kv)


def test_rollback_then_other_tokens() -> None:
    store = PagedKVStore(CONFIG)
    sequence = store.allocate()
    kv = push(store, sequence, 6, 1)
    child = store.fork(sequence)
    store.rollback(sequence, 3)
    other = push(store, sequence, 2, 2)
    assert holds(store, sequence, (kv[0][:, :, :3], kv[1][:, :, :3]), other)
    assert holds(store, child, kv)
    for count in (-1, 6):
        with pytest.raises(ValueError, match=f"can't roll back {count}"):
            store.rollback(sequence, count)


def test_reorder_continues_what_the_parents_held() -> None:
    store = PagedKVStore(CONFIG)
    beams = [store.allocate() for _ in range(3)]
    held = [push(store, beam, 3, seed) for seed, beam in enumerate(beams)]
    store.reorder(beams, [2, 0, 2])
    assert all(holds(store, beam, held[parent]) for beam, parent in zip(beams, [2, 0, 2], strict=True))
    news = [push(store, beam, 2, 10 + seed) for seed, beam in enumerate(beams)]
    for beam, parent, new in zip(beams, [2, 0, 2], news, strict=True):
        assert holds(store, beam, held[parent], new)
    for beam in beams:
        store.free(beam)
    store.reserve(store.allocate(), 24)  # every block is back


@pytest.mark.parametrize(
    ("sequences", "parents"), [([0, 0], [0, 1]), ([0, 1], [0]), ([0, 1], [0, 2]), ([0, 1], [0, -1])]
)
def test_a_bad_reorder_changes_nothing(sequences: list[int], parents: list[int]) -> None:
    store = PagedKVStore(CONFIG)
    beams = [store.allocate(), store.allocate()]
    held = [push(store, beam, 3, seed) for seed, beam in enumerate(beams)]
    with pytest.raises(ValueError, match=r"distinct|indices"):
        store.reorder([beams[i] for i in sequences], parents)
    assert all(holds(store, beam, kv) for beam, kv in zip(beams, held, strict=True))


def test_append_beyond_the_room_raises_and_changes_nothing() -> None:
    store = PagedKVStore(CONFIG)
    sequence = store.allocate()
    kv = push(store, sequence, 5, 1)
    with pytest.raises(OutOfBlocks, match=r"holds 5 tokens and has room for 5.*reserve\(sequence, 7\)"):
        store.append(sequence, *payload(2, 2))
    assert holds(store, sequence, kv)
    store.reserve(sequence, 7)
    store.reserve(sequence, 3)
    store.append(sequence, *payload(2, 2))
    assert holds(store, sequence, kv, payload(2, 2))


def test_a_reservation_that_does_not_fit_changes_nothing() -> None:
    store = PagedKVStore(CONFIG)
    sequence, other = store.allocate(), store.allocate()
    kv = push(store, sequence, 5, 1)
    with pytest.raises(OutOfBlocks):
        store.reserve(sequence, 25)
    store.reserve(other, 16)
    assert holds(store, sequence, kv)


def test_a_fork_takes_no_part_in_unused_room() -> None:
    store = PagedKVStore(CONFIG)
    sequence = store.allocate()
    kv = push(store, sequence, 2, 1)
    store.reserve(sequence, 24)
    child = store.fork(sequence)
    ours, theirs = push(store, sequence, 8, 2), push(store, child, 8, 3)
    assert holds(store, sequence, kv, ours)
    assert holds(store, child, kv, theirs)


def test_sequences_are_limited_and_released_once() -> None:
    store = PagedKVStore(CONFIG)
    sequences = [store.allocate() for _ in range(4)]
    for start in (store.allocate, lambda: store.fork(sequences[0])):
        with pytest.raises(OutOfBlocks, match="max_sequences"):
            start()
    store.free(sequences[0])
    with pytest.raises(UnknownSequence):
        store.free(sequences[0])
    store.allocate()


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        (torch.zeros(2, 2, 3, 5), torch.zeros(2, 2, 3, 4), "keys has shape"),
        (torch.zeros(2, 2, 3, 4), torch.zeros(1, 2, 3, 4), "values has shape"),
        (torch.zeros(2, 2, 3, 4), torch.zeros(2, 2, 2, 4), "differ in their tokens"),
        (torch.zeros(2, 2, 3, 4).double(), torch.zeros(2, 2, 3, 4), "convert it first"),
    ],
)
def test_kv_of_another_shape_or_dtype_is_refused(keys: Tensor, values: Tensor, message: str) -> None:
    store = PagedKVStore(CONFIG)
    sequence = store.allocate()
    store.reserve(sequence, 4)
    with pytest.raises(ValueError, match=message):
        store.append(sequence, keys, values)
    assert store.read(sequence, 0)[0].shape == (2, 0, 4)


@pytest.mark.parametrize("window", [None, 3])
def test_attend_is_the_specification_for_some_sequences_in_any_order(window: int | None) -> None:
    store = PagedKVStore(CacheConfig(num_blocks=9, dtype="float64", window=window))
    sequences = [store.allocate() for _ in range(3)]
    for sequence, length in zip(sequences, (5, 1, 8), strict=True):
        store.reserve(sequence, length)
        store.append(sequence, *payload(length, length, CacheConfig(dtype="float64")))
    queries = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    chosen = [sequences[2], sequences[0]]
    output = store.attend(chosen, queries, 1, 0.5)
    for row, sequence in enumerate(chosen):
        keys, values = (tensor.transpose(0, 1) for tensor in store.read(sequence, 1))
        expected, _ = spec.attend(queries[row : row + 1], keys, values, 0.5, window=window)
        torch.testing.assert_close(output[row], expected[0], rtol=1e-12, atol=1e-12)


def test_the_reference_declares_everything_and_has_it() -> None:
    for contract in REFERENCE.factories:
        arguments: tuple[Any, ...] = () if contract == PAGED_ATTENTION else (CONFIG,)
        built = REFERENCE.factories[contract](*arguments)
        assert effective_capabilities(REFERENCE, contract, built) == set(CAPABILITY_MEMBERS[contract])
    assert KV_STORE in REFERENCE.factories
