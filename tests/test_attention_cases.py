"""Attention cases: JSON, tensors, strategies, shrinking."""

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tokenlaw.properties.attention_cases import (
    AttentionCase,
    describe,
    from_data,
    legal,
    needed_capabilities,
    to_data,
)
from tokenlaw.properties.attention_checks import ATTENTION_CHECKS
from tokenlaw.properties.attention_findings import Difference, compare
from tokenlaw.properties.attention_shrinking import MAX_TRIALS, shrink
from tokenlaw.properties.attention_strategies import Dimensions, Scope, basic_cases, cases
from tokenlaw.properties.attention_tensors import make_call
from tokenlaw.properties.trace import TraceError
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import PAGED_ATTENTION

ALL = frozenset(CAPABILITY_MEMBERS[PAGED_ATTENTION])
ANY_CASE = st.sampled_from(ATTENTION_CHECKS).flatmap(lambda entry: cases(entry.scope, ALL, Dimensions()))
BUSY = AttentionCase(
    lengths=(11, 5, 9), block_size=4, kv_heads=2, head_size=8, placement=7, shared_blocks=1, unused="garbage"
)


def bits(tensor):
    return tensor.contiguous().view(torch.uint8)


@given(ANY_CASE)
def test_json_round_trip(case):
    raw = msgspec.json.encode(to_data(case))
    assert from_data(msgspec.json.decode(raw)) == case


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"schema": "tokenlaw.attention/9"}, "this version of tokenlaw reads 'tokenlaw.attention/1'"),
        ({"layout": "diagonal"}, "not an attention case"),
        ({"num_queries": 3, "lengths": [2]}, "lengths 0 or at least num_queries"),
        ({"block_size": 0}, "sizes must be 1 or more"),
        ({"lengths": []}, "sizes must be 1 or more"),
    ],
)
def test_damaged_data_is_named(change, text):
    with pytest.raises(TraceError, match=text):
        from_data({**to_data(AttentionCase()), **change})


@given(ANY_CASE)
def test_the_pages_hold_what_the_rows_must_see(case):
    call = make_call(case)
    for row, length in enumerate(case.lengths):
        pages = call.block_tables[row, : -(-length // case.block_size)].long()
        for cache, wanted in ((call.key_cache, call.keys[row]), (call.value_cache, call.values[row])):
            held = cache[pages].flatten(0, 1)[:length]
            first = 0 if case.window is None else max(0, length - case.num_queries - case.window + 1)
            assert torch.equal(held[first:], wanted[first:])
    assert call.block_tables.min() >= -1
    assert call.block_tables.max() < call.key_cache.shape[0]


@given(ANY_CASE)
def test_the_same_case_gives_the_same_bits(case):
    first, again = make_call(case), make_call(case)
    for name in ("query", "key_cache", "value_cache", "block_tables", "lengths"):
        assert torch.equal(bits(getattr(first, name)), bits(getattr(again, name)))


def test_rows_share_content_and_blocks_of_their_common_prefix():
    call = make_call(BUSY)
    assert torch.equal(call.keys[0][:4], call.keys[1][:4])
    assert not torch.equal(call.keys[0][4:5], call.keys[1][4:5])
    assert (call.block_tables[:, 0] == call.block_tables[0, 0]).all()
    calm = make_call(replace(BUSY, placement=0))
    assert len(set(calm.block_tables[:, 0].tolist())) == 3
    assert torch.equal(calm.values[1], call.values[1])


def test_placement_permutes_the_blocks():
    orders = {
        tuple(make_call(replace(BUSY, placement=seed)).block_tables[0, :3].tolist()) for seed in range(1, 9)
    }
    assert len(orders) > 3
    assert make_call(replace(BUSY, placement=0)).block_tables[0, :3].tolist() == [0, 1, 2]


def test_a_moved_pool_uses_its_last_block():
    call = make_call(BUSY)
    assert call.block_tables[0, 0] == call.key_cache.shape[0] - 1


@pytest.mark.parametrize("place", ["keys", "values", "both"])
@pytest.mark.parametrize("poison", ["nan", "infinity", "huge"])
def test_poison_fills_exactly_the_unreadable_slots(poison, place):
    call = make_call(replace(BUSY, poison=poison, poison_in=place, window=3))
    for name, cache in (("keys", call.key_cache), ("values", call.value_cache)):
        strange = ~(cache.abs() < 1e30).all(-1).all(-1)
        assert torch.equal(strange, ~call.readable & (place in (name, "both")))
    assert int(call.readable.sum()) == 9


@pytest.mark.parametrize("layout", ["interleaved", "head-major", "padded"])
def test_layouts_are_views_of_the_same_numbers(layout):
    plain, view = make_call(BUSY), make_call(replace(BUSY, layout=layout))
    assert not view.key_cache.is_contiguous()
    assert torch.equal(plain.key_cache, view.key_cache)
    assert torch.equal(plain.value_cache, view.value_cache)


def test_boundary_lengths_are_always_tried():
    grid = list(basic_cases(Scope(focus=frozenset({"empty"})), Dimensions()))
    for size in (1, 3, 4, 16):
        tried = {length for case in grid if case.block_size == size for length in case.lengths}
        assert {0, 1, size, size + 1, 2 * size, 3 * size - 1} <= tried


def test_every_dtype_is_tried_before_other_block_sizes():
    grid = [(case.block_size, case.dtype) for case in basic_cases(Scope(), Dimensions())]
    first = [(4, dtype) for dtype in ("float32", "bfloat16", "float16")]
    others = [(size, "float32") for size in (1, 3, 16, 32, 64)]
    assert list(dict.fromkeys(grid)) == [*first, *others]


@pytest.mark.parametrize("check", ATTENTION_CHECKS, ids=[entry.check.id for entry in ATTENTION_CHECKS])
def test_sizes_of_tiles_and_what_goes_together_are_always_tried(check):
    """Long rows whose last tile holds one key, large pages, heads of many sizes; each capability once."""
    grid = list(basic_cases(check.scope, Dimensions(), ALL))
    assert {64, 32} <= {case.block_size for case in grid}
    assert {4, 80, 96, 192} <= {case.head_size for case in grid}
    assert {513, 65, 33} <= {length for case in grid for length in case.lengths}
    assert check.scope.extra <= frozenset().union(*(needed_capabilities(case) for case in grid))
    assert all(check.scope.focus <= needed_capabilities(case) for case in grid)


def test_a_chunk_may_be_longer_than_a_tile_and_a_window_may_meet_a_chunk():
    scopes = {entry.check.id: entry.scope for entry in ATTENTION_CHECKS}
    chunked = list(basic_cases(scopes["attention/chunked-prefill"], Dimensions(), ALL))
    assert any(case.num_queries > 32 and max(case.lengths) > case.num_queries for case in chunked)
    windowed = list(basic_cases(scopes["attention/window"], Dimensions(), ALL))
    assert any(case.num_queries > 1 and case.window > 1 for case in windowed)


@given(ANY_CASE)
def test_drawn_cases_are_legal(case):
    assert case == legal(case)
    assert needed_capabilities(case) <= ALL
    assert not (case.alibi and case.softcap)


@given(cases(Scope(focus=frozenset({"gqa"}), extra=ALL), frozenset({"gqa"}), Dimensions()))
def test_cases_keep_to_what_is_available(case):
    assert needed_capabilities(case) == {"gqa"}


def test_shrinking_keeps_the_failure_and_drops_the_rest():
    case = replace(BUSY, window=5, sinks=True, data="spikes", dtype="bfloat16", seed=77)
    small = shrink(case, lambda case: max(case.lengths) >= 6, Scope(), Dimensions())
    assert small == AttentionCase(lengths=(6,), block_size=1)
    kept = shrink(case, lambda case: True, Scope(focus=frozenset({"window"})), Dimensions())
    assert kept == AttentionCase(lengths=(1,), block_size=1, window=1)


def test_shrinking_ends():
    trials = []
    shrink(BUSY, lambda case: len(trials.append(case) or trials) % 9 == 0, Scope(), Dimensions())
    assert len(trials) <= MAX_TRIALS


def test_compare_measures_in_bounds_and_names_the_place():
    wanted, bound = torch.zeros(2, 1, 3, 4).double(), torch.full((2, 1, 3, 4), 0.5).double()
    found = wanted.clone()
    found[1, 0, 2, 3] = 2.0
    place = "output of row 1, query 0, head 2, channel 3"
    assert compare("output", found, wanted, bound) == Difference(4.0, place, 0.0, 2.0, 2.0, 0.5)


@pytest.mark.parametrize(
    ("found", "wanted", "bound", "ratio"),
    [
        (float("nan"), 0.0, 1.0, float("inf")),
        (float("-inf"), float("-inf"), 1.0, 0.0),
        (0.0, float("-inf"), 1.0, float("inf")),
        (1e-9, 0.0, 0.0, float("inf")),
        (0.0, 0.0, 0.0, 0.0),
    ],
)
def test_compare_treats_infinity_and_nan(found, wanted, bound, ratio):
    tensors = [torch.tensor([number]).double() for number in (found, wanted, bound)]
    assert compare("lse", *tensors).ratio == ratio


def test_description_says_what_is_special():
    text = describe(replace(BUSY, window=3, poison="nan", poison_in="values", data="mean"))
    for part in (
        "lengths [11, 5, 9]",
        "window 3",
        "nan in unreadable slots of values",
        "unused table entries hold random blocks",
        "queries, keys and values have a large mean",
    ):
        assert part in text
    assert "softcap" not in text
