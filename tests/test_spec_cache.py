"""The contiguous model of a cache, what paging costs and saves."""

import doctest
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.spec.cache import (
    ContiguousCache,
    blocks_needed,
    cache_bytes,
    contiguous_waste,
    copies_on_divergence,
    physical_blocks,
    waste,
)

TOKENS = st.lists(st.integers(0, 1), max_size=9).map(tuple)


@given(TOKENS, TOKENS, TOKENS, st.integers(0, 9))
def test_forks_diverge_without_touching_each_other(
    start: tuple[int, ...], left: tuple[int, ...], right: tuple[int, ...], back: int
) -> None:
    cache: ContiguousCache[int] = ContiguousCache()
    first = cache.allocate(start)
    second = cache.fork(first)
    cache.append(first, left)
    cache.append(second, right)
    assert (cache.read(first), cache.read(second)) == (start + left, start + right)
    back = min(back, len(start + left))
    cache.rollback(first, back)
    assert cache.read(first) == (start + left)[: len(start + left) - back]
    assert cache.length(first) == len(start + left) - back
    assert cache.read(second) == start + right
    cache.free(first)
    assert cache.live() == (second,)
    assert cache.read(second) == start + right


@given(st.integers(1, 6), st.integers(0, 12), st.integers(0, 4))
def test_visible_is_what_some_later_query_sees(window: int, settled: int, drafts: int) -> None:
    """By the definition: the union of the windows of all query positions that may still be asked."""
    cache: ContiguousCache[int] = ContiguousCache(window)
    sequence = cache.allocate(range(settled))
    cache.append(sequence, range(drafts), settled=False)
    length = settled + drafts
    queries = range(settled, length + window)
    seen = {p for q in queries for p in range(max(0, q - window + 1), q + 1) if p < length}
    assert set(cache.visible(sequence)) == seen
    cache.settle(sequence)
    assert len(cache.visible(sequence)) == min(length, window - 1)


@given(st.integers(1, 6), st.integers(0, 12), st.integers(0, 4))
def test_recoverable_is_the_longest_rollback_that_loses_no_window(
    window: int, settled: int, drafts: int
) -> None:
    cache: ContiguousCache[int] = ContiguousCache(window)
    sequence = cache.allocate(range(settled))
    cache.append(sequence, range(drafts), settled=False)
    length, first_readable = settled + drafts, cache.visible(sequence).start
    legal = [count for count in range(length + 1) if max(0, length - count - window + 1) >= first_readable]
    assert cache.recoverable(sequence) == max(legal)


def test_what_slid_out_of_the_window_stays_out() -> None:
    cache: ContiguousCache[str] = ContiguousCache(window=3)
    sequence = cache.allocate("abcdef")
    cache.rollback(sequence, 2)
    assert cache.visible(sequence) == range(4, 4)
    cache.append(sequence, "x")
    assert cache.visible(sequence) == range(4, 5)
    child = cache.fork(sequence)
    assert cache.visible(child) == range(4, 5)


def test_without_a_window_everything_is_visible_and_recoverable() -> None:
    cache: ContiguousCache[str] = ContiguousCache()
    sequence = cache.allocate("abcdef")
    assert cache.visible(sequence) == range(6)
    assert cache.recoverable(sequence) == 6


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda cache: cache.rollback(0, 4), "can't roll sequence 0 back by 4: it holds 3 tokens"),
        (lambda cache: cache.rollback(0, -1), "by -1"),
        (lambda cache: cache.free(1), r"sequence 1 isn't live; live are \[0\]"),
        (lambda cache: cache.append(1, "x"), "sequence 1 isn't live"),
        (lambda cache: cache.read(1), "sequence 1 isn't live"),
        (lambda cache: ContiguousCache(window=0), "window is 0"),
    ],
)
def test_bad_calls_raise_and_change_nothing(
    action: Callable[[ContiguousCache[str]], object], message: str
) -> None:
    cache: ContiguousCache[str] = ContiguousCache()
    cache.allocate("abc")
    with pytest.raises(ValueError, match=message):
        action(cache)
    assert cache.live() == (0,)
    assert cache.read(0) == ("a", "b", "c")


def test_sequence_names_are_never_used_again() -> None:
    cache: ContiguousCache[str] = ContiguousCache()
    cache.free(cache.allocate("abc"))
    assert cache.allocate("abc") == 1


@given(st.integers(0, 5000), st.integers(1, 64))
def test_blocks_hold_the_tokens_and_less_than_a_block_more(length: int, block_size: int) -> None:
    blocks = blocks_needed(length, block_size)
    assert length <= blocks * block_size
    assert waste(length, block_size) == blocks * block_size - length
    assert 0 <= waste(length, block_size) <= block_size - 1


def test_the_bounds_of_waste_are_reached() -> None:
    assert max(waste(length, 16) for length in range(1, 2049)) == 15
    assert max(contiguous_waste(length, 2048) for length in range(1, 2049)) == 2047


@pytest.mark.parametrize(
    "call", [lambda: blocks_needed(-1, 4), lambda: blocks_needed(1, 0), lambda: contiguous_waste(9, 8)]
)
def test_lengths_out_of_range_are_refused(call: Callable[[], int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        call()


def test_a_common_prefix_is_held_once() -> None:
    """Two requests, 8 common tokens, blocks of 4: 2 physical prefix blocks with sharing, 4 without."""
    prefix = (1, 2, 3, 4, 5, 6, 7, 8)
    assert physical_blocks([prefix, prefix], 4, sharing=True) == 2
    assert physical_blocks([prefix, prefix], 4, sharing=False) == 4
    requests = [(*prefix, 9), (*prefix, 10, 11)]
    assert physical_blocks(requests, 4, sharing=True) == 2 + 2
    assert physical_blocks(requests, 4, sharing=False) == 4 + 2


def test_equal_blocks_after_different_prefixes_are_not_shared() -> None:
    assert physical_blocks([(1, 2, 5, 6), (3, 4, 5, 6)], 2, sharing=True) == 4


@pytest.mark.parametrize("length", range(13))
def test_only_the_diverged_block_is_copied(length: int) -> None:
    """When two forks write on, the first needs what it needed alone, the second a copy or a new block."""
    cache: ContiguousCache[int] = ContiguousCache()
    first = cache.allocate(range(length))
    second = cache.fork(first)
    cache.append(first, [100])
    alone = blocks_needed(length + 1, 4)
    cache.append(second, [200])
    both = physical_blocks([cache.read(first), cache.read(second)], 4, sharing=True)
    assert both == alone + 1
    assert copies_on_divergence(length, 4) == (1 if length % 4 else 0)


@pytest.mark.parametrize(
    ("layers", "kv_heads", "expected"),
    [
        pytest.param(80, 64, 10_737_418_240, id="70B MHA: 10 GiB"),
        pytest.param(80, 8, 1_342_177_280, id="70B GQA: 1.25 GiB"),
        pytest.param(80, 1, 167_772_160, id="70B MQA: 160 MiB"),
        pytest.param(32, 32, 2_147_483_648, id="8B MHA: 2 GiB"),
        pytest.param(32, 8, 536_870_912, id="8B GQA: 512 MiB"),
        pytest.param(32, 1, 67_108_864, id="8B MQA: 64 MiB"),
    ],
)
def test_cache_bytes_of_4096_tokens_in_float16(layers: int, kv_heads: int, expected: int) -> None:
    assert cache_bytes(layers, kv_heads, 128, 4096, 2) == expected


@pytest.fixture(scope="module")
def waste_example() -> ModuleType:
    path = Path(__file__).parent.parent / "examples" / "waste.py"
    spec = importlib.util.spec_from_file_location("waste_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", range(3))
def test_waste_of_a_realistic_mix(waste_example: ModuleType, seed: int) -> None:
    shares = waste_example.shares(seed)
    assert 0.03 < shares["paged, blocks of 16"] < 0.05
    assert 0.13 < shares["contiguous, size classes"] < 0.20
    assert shares["contiguous, size classes"] < shares["contiguous, powers of two"]
    assert shares["contiguous, powers of two"] < shares["contiguous, maximum"]


def test_the_mix_has_the_lengths_that_it_states(waste_example: ModuleType) -> None:
    lengths = waste_example.request_lengths(seed=0, count=20_000)
    assert (lengths.min() >= 1, lengths.max()) == (True, 2048)
    # 0.3 * (161 + 338) + 0.7 * (19 + 58) = 204, a little less where requests end at 2048 tokens.
    assert 195 < lengths.mean() < 204


def test_what_the_waste_example_prints_is_what_its_text_shows(waste_example: ModuleType) -> None:
    failed, attempted = doctest.testmod(waste_example)
    assert (failed, attempted) == (0, 1)
