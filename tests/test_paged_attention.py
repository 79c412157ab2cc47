"""Attention by gathering: equal to the specification, whatever stands around what a row may read."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tokenlaw.impl.paged import GatherAttention
from tokenlaw.spec import attention as spec
from tokenlaw.spec.contracts import NO_BLOCK

SIZE, KV_HEADS, HEAD = 4, 2, 8
ATTENTION = GatherAttention()


class Rows:
    """Random rows of given lengths in a paged cache whose other slots hold ``poison``."""

    def __init__(
        self,
        lengths: list[int],
        num_queries: int = 1,
        group: int = 2,
        *,
        dtype: torch.dtype = torch.float64,
        poison: float = math.nan,
        seed: int = 0,
        placement: int = 0,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.lengths = torch.tensor(lengths)
        heads = (KV_HEADS, HEAD)
        self.keys, self.values = (
            [torch.randn(n, *heads, generator=generator, dtype=torch.float64).to(dtype) for n in lengths]
            for _ in range(2)
        )
        shape = (len(lengths), num_queries, KV_HEADS * group, HEAD)
        self.query = torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
        self.per_head = torch.randn(KV_HEADS * group, generator=generator, dtype=torch.float64).to(dtype)
        self._lay_out(lengths, dtype, poison, placement)

    def _lay_out(self, lengths: list[int], dtype: torch.dtype, poison: float, placement: int) -> None:
        needed = [-(-n // SIZE) for n in lengths]
        num_blocks = sum(needed) + 3
        ids = torch.randperm(num_blocks, generator=torch.Generator().manual_seed(placement)).tolist()
        self.tables = torch.full((len(lengths), max(needed) + 1), NO_BLOCK)
        self.key_cache, self.value_cache = (
            torch.full((num_blocks, SIZE, KV_HEADS, HEAD), poison, dtype=dtype) for _ in range(2)
        )
        for row, count in enumerate(needed):
            for logical in range(count):
                block = self.tables[row, logical] = ids.pop()
                part = slice(logical * SIZE, min((logical + 1) * SIZE, lengths[row]))
                used = part.stop - part.start
                self.key_cache[block, :used] = self.keys[row][part]
                self.value_cache[block, :used] = self.values[row][part]

    def attend(self, **options: Any) -> tuple[Tensor, Tensor]:
        arguments = (self.query, self.key_cache, self.value_cache, self.tables, self.lengths, HEAD**-0.5)
        output, lse = ATTENTION.attend(*arguments, return_lse=True, **options)
        alone = ATTENTION.attend(*arguments, **options)
        assert isinstance(alone, Tensor)
        assert torch.equal(output, alone)
        return output, lse

    def expected(self, **options: Any) -> tuple[Tensor, Tensor]:
        options = {
            name: value.double() if isinstance(value, Tensor) else value for name, value in options.items()
        }
        rows = [
            spec.attend(query.double(), keys.double(), values.double(), HEAD**-0.5, **options)
            for query, keys, values in zip(self.query, self.keys, self.values, strict=True)
        ]
        return torch.stack([output for output, _ in rows]), torch.stack([lse for _, lse in rows])


LENGTHS = [0, 1, SIZE - 1, SIZE, SIZE + 1, 2 * SIZE, 3 * SIZE - 1]
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "window 1": {"window": 1},
    "window 3": {"window": 3},
    "window 100": {"window": 100},
    "softcap": {"softcap": 0.7},
    "everything": {"window": 6, "softcap": 2.0},
}


def assert_close(actual: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor], tolerance: float) -> None:
    for found, wanted in zip(actual, expected, strict=True):
        torch.testing.assert_close(found.double(), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("num_queries", [1, 3, 9])
@pytest.mark.parametrize("group", [1, 4, 7])
def test_it_is_the_specification(name: str, num_queries: int, group: int) -> None:
    rows = Rows(LENGTHS, num_queries, group)
    options = dict(OPTIONS[name])
    assert_close(rows.attend(**options), rows.expected(**options), 1e-12)
    options |= {"sinks": rows.per_head, "alibi_slopes": rows.per_head.abs() / 3}
    assert_close(rows.attend(**options), rows.expected(**options), 1e-12)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 2e-6), (torch.bfloat16, 2**-8), (torch.float16, 2**-10)]
)
def test_low_precision_is_accumulated_in_float32(dtype: torch.dtype, tolerance: float) -> None:
    rows = Rows([1, 7, 64], 2, dtype=dtype)
    output, lse = rows.attend()
    assert output.dtype == dtype
    assert lse.dtype == torch.float32
    expected_output, expected_lse = rows.expected()
    torch.testing.assert_close(output.double(), expected_output, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(lse.double(), expected_lse, rtol=0, atol=4e-6)


@pytest.mark.parametrize("poison", [math.inf, -math.inf, math.nan, 1e300])
@pytest.mark.parametrize("window", [None, 3])
def test_other_slots_do_not_matter_in_any_bit(poison: float, window: int | None) -> None:
    clean, poisoned = Rows(LENGTHS, 2, poison=0.0), Rows(LENGTHS, 2, poison=poison)
    for found, wanted in zip(poisoned.attend(window=window), clean.attend(window=window), strict=True):
        assert torch.equal(found, wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_placement_and_company_do_not_matter_in_any_bit(dtype: torch.dtype) -> None:
    lengths = [5, 130, 0, 33, 64]
    rows, moved = Rows(lengths, 3, dtype=dtype), Rows(lengths, 3, dtype=dtype, placement=1)
    assert not torch.equal(rows.tables, moved.tables)
    output, lse = rows.attend()
    assert torch.equal(output, moved.attend()[0])
    order = [3, 1, 0]
    moved.tables = torch.cat([moved.tables, torch.full_like(moved.tables, 99)], dim=1)
    for name in ("query", "tables", "lengths"):
        setattr(moved, name, getattr(moved, name)[order])
    some_output, some_lse = moved.attend()
    assert torch.equal(some_output, output[order])
    assert torch.equal(some_lse, lse[order])


def test_strided_views_give_the_same_bits() -> None:
    rows = Rows([9, 30], 2, dtype=torch.float32)
    expected = rows.attend()
    wide = torch.stack(
        [rows.key_cache.transpose(1, 2), rows.value_cache.transpose(1, 2)], dim=-1
    ).contiguous()
    rows.key_cache, rows.value_cache = wide[..., 0].transpose(1, 2), wide[..., 1].transpose(1, 2)
    rows.query = rows.query.transpose(1, 2).contiguous().transpose(1, 2)
    assert not rows.key_cache.is_contiguous()
    for found, wanted in zip(rows.attend(), expected, strict=True):
        assert torch.equal(found, wanted)


def test_a_window_needs_no_block_below_it() -> None:
    rows = Rows([11], 2)
    expected = rows.attend(window=3)
    rows.tables[0, 0] = NO_BLOCK  # positions 0 .. 3; the first query sees 7 .. 9
    assert torch.equal(rows.attend(window=3)[0], expected[0])
    with pytest.raises(ValueError, match="needs its logical block 0, but its table names block -1"):
        rows.attend(window=8)


def test_an_empty_row_is_zero_and_its_denominator_is_the_sink() -> None:
    rows = Rows([0, 3])
    output, lse = rows.attend()
    assert output[0].abs().max() == 0
    assert (lse[0] == -math.inf).all()
    _, lse = rows.attend(sinks=rows.per_head)
    torch.testing.assert_close(lse[0, 0], rows.per_head)


def test_large_scores_do_not_spoil_the_weights() -> None:
    rows = Rows([40], dtype=torch.float32)
    rows.query *= 1_000
    torch.testing.assert_close(rows.attend()[0].double(), rows.expected()[0], rtol=1e-3, atol=1e-3)
    ones = torch.ones_like(rows.value_cache)
    output = ATTENTION.attend(rows.query, rows.key_cache, ones, rows.tables, rows.lengths, 1.0)
    assert isinstance(output, Tensor)
    assert (output - 1).abs().max() < 1e-6  # weights sum to one although scores are in the thousands


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengths": torch.tensor([20, 1])}, "a row of length 20 has a table of only 3 blocks of 4"),
        ({"query": torch.zeros(2, 1, 3, HEAD)}, "3 query heads can't share 2 KV heads evenly"),
        ({"tables": torch.full((2, 3), 99)}, "its table names block 99"),
    ],
)
def test_arguments_that_do_not_fit_are_named(change: dict[str, Tensor], message: str) -> None:
    rows = Rows([5, 1], dtype=torch.float32)
    for name, value in change.items():
        setattr(rows, name, value)
    with pytest.raises(ValueError, match=message):
        rows.attend()


@pytest.mark.parametrize("split", range(8))
def test_merging_parts_is_the_whole(split: int) -> None:
    rows = Rows([7], dtype=torch.float64)
    output, lse = rows.expected()
    parts = [
        spec.attend(rows.query[0], rows.keys[0][part], rows.values[0][part], HEAD**-0.5)
        for part in (slice(0, split), slice(split, 7))
    ]
    outputs, lses = (torch.stack(states) for states in zip(*parts, strict=True))
    assert_close(ATTENTION.merge(outputs, lses), (output[0], lse[0]), 1e-12)
    assert_close(ATTENTION.merge(outputs.flip(0), lses.flip(0)), (output[0], lse[0]), 1e-12)


def test_merging_ignores_empty_parts_whatever_they_hold() -> None:
    outputs = torch.tensor([[1.0, 2.0], [math.nan, math.inf]]).bfloat16()
    lses = torch.tensor([0.5, -math.inf])
    output, lse = ATTENTION.merge(outputs, lses)
    assert output.dtype == torch.bfloat16
    assert output.tolist() == [1.0, 2.0]
    assert lse == 0.5
    output, lse = ATTENTION.merge(outputs[1:], lses[1:])
    assert output.tolist() == [0.0, 0.0]
    assert lse == -math.inf


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_float8_is_attended_in_float32(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    cache = torch.randn(3, 2, 1, 4, generator=generator).to(dtype)
    query = torch.randn(1, 1, 2, 4, generator=generator).to(dtype)
    table, lengths = torch.tensor([[2, 0]]), torch.tensor([3])
    output = GatherAttention().attend(query, cache, cache, table, lengths, 0.5)
    wider = GatherAttention().attend(query.float(), cache.float(), cache.float(), table, lengths, 0.5)
    assert output.dtype == dtype
    assert torch.equal(output.float(), wider.to(dtype).float())
