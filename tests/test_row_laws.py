"""Batched laws are those of the scalar rules, row by row."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.spec.row_laws import OFF_MIN_P, OFF_TOP_K, OFF_TOP_P, RowParameters, row_laws
from tokenlaw.spec.sampling import SamplingParameters, next_token_law

LOGITS = st.sampled_from([-np.inf, -2.0, -0.5, 0.0, 0.5, 1.0, 3.0])
"""Few values, so that ties are frequent."""


@dataclass(frozen=True)
class Row:
    """Logits of one row, ``[positions][vocabulary]``, and its parameters."""

    logits: list[list[float]]
    temperature: float
    top_k: int
    top_p: float
    min_p: float

    def scalar_laws(self) -> list[tuple[float, ...]]:
        parameters = SamplingParameters(
            temperature=self.temperature,
            top_k=None if self.top_k == OFF_TOP_K else self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
        )
        return [next_token_law(np.array(logits), parameters) for logits in self.logits]


@st.composite
def batches(draw: st.DrawFn) -> list[Row]:
    positions, vocabulary = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    law = st.lists(LOGITS, min_size=vocabulary, max_size=vocabulary).filter(lambda one: max(one) > -np.inf)
    row = st.builds(
        Row,
        logits=st.lists(law, min_size=positions, max_size=positions),
        temperature=st.sampled_from([0.0, 0.5, 1.0, 1.7]),
        top_k=st.sampled_from([OFF_TOP_K, 1, 2, 3, 100]),
        # No sum of the laws above comes near one of these; equal sums have tests of their own.
        top_p=st.sampled_from([0.123456, 0.654321, 0.987654, OFF_TOP_P]),
        min_p=st.sampled_from([OFF_MIN_P, 0.2345, 1.0]),
    )
    return draw(st.lists(row, min_size=1, max_size=6))


def parameters(rows: list[Row]) -> RowParameters:
    def column(name: str, dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor([getattr(row, name) for row in rows], dtype=dtype)

    float64, int64 = torch.float64, torch.int64
    return RowParameters(
        temperature=column("temperature", float64),
        top_k=column("top_k", int64),
        top_p=column("top_p", float64),
        min_p=column("min_p", float64),
    )


def batched(rows: list[Row], dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return row_laws(torch.tensor([row.logits for row in rows], dtype=dtype), parameters(rows))


@given(rows=batches())
def test_batched_laws_equal_the_scalar_rules(rows: list[Row]) -> None:
    expected = torch.tensor([row.scalar_laws() for row in rows], dtype=torch.float64)
    found = batched(rows)
    assert found.dtype == torch.float64
    assert torch.equal(found == 0, expected == 0)
    torch.testing.assert_close(found, expected, rtol=1e-14, atol=0)


@given(rows=batches())
def test_a_row_does_not_see_the_others(rows: list[Row]) -> None:
    alone, together = torch.cat([batched([row]) for row in rows]), batched(rows)
    assert torch.equal(together == 0, alone == 0)
    torch.testing.assert_close(together, alone, rtol=1e-15, atol=0)  # sums of one may be divided out twice


@given(rows=batches(), shares_parameters=st.booleans())
def test_rows_that_share_memory_have_the_same_laws(rows: list[Row], shares_parameters: bool) -> None:
    logits = torch.tensor([rows[0].logits], dtype=torch.float64).expand(3, -1, -1)
    of_one = parameters([rows[0]])
    spread = {name: getattr(of_one, name).expand(3) for name in ("temperature", "top_k", "top_p", "min_p")}
    params = RowParameters(**spread) if shares_parameters else parameters([rows[0]] * 3)
    laws = row_laws(logits, params)
    assert (laws.stride(0) == 0) == shares_parameters
    assert torch.equal(laws, row_laws(logits.clone(), params))


def test_many_rows_are_worked_on_in_pieces_and_come_out_alike() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(700, 2, 128, generator=generator)
    every = [
        Row([], temperature, k, p, 0.01) for temperature in (0.0, 0.7) for k in (0, 9) for p in (0.9, 1.0)
    ]
    params = parameters([every[row % len(every)] for row in range(700)])
    laws = row_laws(logits, params)
    for row in (0, 1, 255, 256, 257, 511, 512, 698, 699):
        of_row = params.rows(slice(row, row + 1))
        alone = row_laws(logits[row : row + 1], of_row)
        assert torch.equal(laws[row : row + 1] == 0, alone == 0)
        torch.testing.assert_close(laws[row : row + 1], alone, rtol=1e-14, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_rounded_logits_are_what_counts(dtype: torch.dtype) -> None:
    logits = torch.randn(4, 3, 7, generator=torch.Generator().manual_seed(0)).to(dtype)
    params = RowParameters.default(4)
    assert torch.equal(row_laws(logits, params), row_laws(logits.double(), params))
    assert logits.dtype == dtype


def test_logits_are_left_alone() -> None:
    logits = torch.zeros(2, 3, dtype=torch.float64)
    row_laws(logits, RowParameters.default(2))
    assert torch.equal(logits, torch.zeros(2, 3, dtype=torch.float64))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"temperature": 0.0}, [0.0, 1.0, 0.0, 0.0]),  # of equals the lowest id
        ({"top_k": 1}, [0.0, 0.5, 0.5, 0.0]),  # a tie at the k-th largest stays
        ({"top_k": 2}, [0.0, 0.5, 0.5, 0.0]),
        ({"top_k": 3}, [0.125, 0.375, 0.375, 0.125]),
        ({"top_p": 0.375}, [0.0, 1.0, 0.0, 0.0]),  # a sum that is equal to top_p suffices
        ({"top_p": np.nextafter(0.375, 1)}, [0.0, 0.5, 0.5, 0.0]),
        ({"top_p": 0.75}, [0.0, 0.5, 0.5, 0.0]),
        ({"top_p": 0.875}, [1 / 7, 3 / 7, 3 / 7, 0.0]),
        ({"top_p": 1.0}, [0.125, 0.375, 0.375, 0.125]),
        ({"min_p": 1.0}, [0.0, 0.5, 0.5, 0.0]),
        ({"min_p": 0.3}, [0.125, 0.375, 0.375, 0.125]),
        ({"min_p": 0.4}, [0.0, 0.5, 0.5, 0.0]),
    ],
)
def test_edges(change: dict[str, Any], expected: list[float]) -> None:
    """On the law (1, 3, 3, 1) / 8, which floats hold exactly."""
    logits = [np.log([1.0, 3.0, 3.0, 1.0]).tolist()]
    row = replace(Row(logits, 1.0, OFF_TOP_K, OFF_TOP_P, OFF_MIN_P), **change)
    torch.testing.assert_close(batched([row])[0, 0].tolist(), expected, rtol=1e-15, atol=0)


def test_positions_that_nobody_reads_may_hold_anything() -> None:
    logits = torch.tensor(
        [[[0.0, 0.0], [np.nan, 0.0]], [[-np.inf, -np.inf], [0.0, 0.0]]], dtype=torch.float64
    )
    rows = [Row([], temperature, 1, 0.5, 0.5) for temperature in (0.0, 1.0)]
    laws = row_laws(logits, parameters(rows))
    assert laws[0, 0].tolist() == [1.0, 0.0]
    assert laws[1, 1].tolist() == [1.0, 0.0]


def test_parameters_of_some_rows() -> None:
    params = RowParameters(
        temperature=torch.tensor([0.0, 1.0, 2.0]).double(),
        top_k=torch.tensor([1, 2, 3]),
        top_p=torch.tensor([0.1, 0.2, 0.3]).double(),
        min_p=torch.tensor([0.4, 0.5, 0.6]).double(),
        seeds=torch.tensor([7, 8, 9]),
    )
    for index in (slice(1, 3), torch.tensor([1, 2])):
        for field in fields(RowParameters):
            found, whole = getattr(params.rows(index), field.name), getattr(params, field.name)
            assert torch.equal(found, whole[1:])
    assert params.used == {"greedy", "temperature", "top_k", "top_p", "min_p"}
    assert RowParameters.default(3).used == frozenset()
