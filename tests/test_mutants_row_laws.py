"""What mutation testing of the laws of many rows found untested: sharing, sizes, and each parameter alone."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tokenlaw.spec.row_laws import (
    OFF_MIN_P,
    OFF_TOP_K,
    OFF_TOP_P,
    UNSEEDED,
    RowParameters,
    row_laws,
)


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def random_logits(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def softmax(logits: Tensor) -> Tensor:
    return torch.softmax(logits, -1)


def same(found: Tensor, wanted: Tensor) -> bool:
    return torch.allclose(found, wanted, rtol=1e-13, atol=0)


def test_what_leaves_a_law_alone_never_changes() -> None:
    """Adapters hand these numbers on."""
    assert (OFF_TOP_K, OFF_TOP_P, OFF_MIN_P, UNSEEDED) == (0, 1.0, 0.0, -1)


def test_rows_share_their_parameters_in_one_entry_or_as_the_only_row() -> None:
    def of(rows: int) -> RowParameters:
        ones = torch.ones(rows, dtype=torch.float64)
        return RowParameters(ones, torch.zeros(rows, dtype=torch.int64), ones, 0 * ones)

    assert of(1).shared
    assert not of(2).shared
    assert RowParameters.default(2).shared
    assert not replace(RowParameters.default(2), top_p=numbers(0.5, 0.5)).shared


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_shared_rows_share_one_law(rows: int) -> None:
    logits = random_logits(1, 2, 3).expand(3, 2, 3)[:rows]
    params = replace(RowParameters.default(rows), temperature=numbers(0.5).expand(rows))
    found = row_laws(logits, params)
    assert found.shape == logits.shape
    assert rows == 1 or found.stride(0) == 0
    assert same(found, softmax(2 * logits))


def test_rows_that_differ_are_not_taken_for_shared_ones() -> None:
    """Memory that is shared in another direction, or with parameters of each row's own, says nothing."""
    params = RowParameters.default(2)
    for logits in (
        random_logits(2, 1, 3).expand(2, 4, 3),  # positions alike
        random_logits(2, 4, 1).expand(2, 4, 3),  # tokens alike
        random_logits(3, 4, 2).permute(2, 1, 0),  # rows next to each other in memory
    ):
        assert same(row_laws(logits, params), softmax(logits))
    alike = random_logits(1, 3).expand(2, 3)
    found = row_laws(alike, replace(params, temperature=numbers(0.5, 2.0)))
    assert same(found, softmax(alike * numbers(2.0, 0.5)[:, None]))


def test_a_batch_of_any_size_is_worked_on() -> None:
    """A row larger than the cache, many small rows, and no position at all."""
    for shape in ((2, 70_000), (3, 40_000), (70_000, 2)):
        logits = random_logits(*shape)
        assert same(row_laws(logits, RowParameters.default(shape[0])), softmax(logits))
    assert row_laws(torch.empty(2, 0, 5), RowParameters.default(2)).shape == (2, 0, 5)


def test_each_row_has_its_own_temperature() -> None:
    logits = random_logits(4, 2, 5)
    found = row_laws(logits, replace(RowParameters.default(4), temperature=numbers(0.5, 1.0, 0.0, 4.0)))
    assert same(found[0], softmax(2 * logits[0]))
    assert same(found[1], softmax(logits[1]))
    assert torch.equal(found[2], torch.eye(5, dtype=torch.float64)[logits[2].argmax(-1)])
    assert same(found[3], softmax(logits[3] / 4))


def test_each_row_keeps_as_many_tokens_as_its_top_k_says() -> None:
    """Row i keeps i of 60 tokens, row 0 all; more than there are keep all as well."""
    logits = random_logits(61, 60)
    kept = (row_laws(logits, replace(RowParameters.default(61), top_k=torch.arange(61))) > 0).sum(-1)
    assert kept.tolist() == [60, *range(1, 61)]
    beyond = row_laws(logits, replace(RowParameters.default(61), top_k=torch.full((61,), 99)))
    assert same(beyond, softmax(logits))


def test_of_equal_tokens_the_top_k_keeps_all_and_the_top_p_the_first() -> None:
    logits = numbers(0.25, 0.25, 0.25, 0.25).log()[None]
    params = RowParameters.default(1)
    assert row_laws(logits, replace(params, top_k=torch.tensor([1]))).tolist() == [[0.25] * 4]
    assert row_laws(logits, replace(params, top_p=numbers(0.5))).tolist() == [[0.5, 0.5, 0.0, 0.0]]
    assert row_laws(logits, replace(params, top_p=numbers(1e-9))).tolist() == [[1.0, 0.0, 0.0, 0.0]]


def test_a_row_without_top_p_keeps_what_is_too_small_to_be_summed() -> None:
    """One and the probability exp(-50) are one in float64."""
    logits = numbers(0.0, -50.0).expand(2, 2)
    found = row_laws(logits, replace(RowParameters.default(2), top_p=numbers(0.5, 1.0)))
    assert found[0].tolist() == [1.0, 0.0]
    assert 0 < found[1, 1].item() < 1e-21


def test_parameters_are_made_for_no_row_as_well() -> None:
    assert RowParameters.default(0).temperature.shape == (0,)
    with pytest.raises(ValueError, match="rows must be 0 or more, but is -1"):
        RowParameters.default(-1)


def test_min_p_is_a_share_of_the_largest_probability() -> None:
    logits = numbers(0.5, 0.25, 0.25, 0.0).log()[None]
    params = RowParameters.default(1)
    assert row_laws(logits, replace(params, min_p=numbers(0.5))).tolist() == [[0.5, 0.25, 0.25, 0.0]]
    assert row_laws(logits, replace(params, min_p=numbers(0.51))).tolist() == [[1.0, 0.0, 0.0, 0.0]]
