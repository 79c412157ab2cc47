"""Random numbers that are written into tensors which the program has: whoever shares memory has them."""

import math

import pytest
import torch

from support.known_laws import independent
from support.torch_laws import check_law, coin
from tokenlaw.stats.enumeration.errors import NotRepeatableError
from tokenlaw.stats.enumeration.exact_law import exact_law

TWO_COINS = independent(coin(0.25), coin(0.25))


def kept_name() -> torch.Tensor:
    """The tensor itself is used after noise was written into it."""
    q = torch.empty(2)
    q.uniform_()
    return q


def older_view() -> torch.Tensor:
    """A view from before the noise."""
    q = torch.zeros(4)
    view = q.view(2, 2)
    q.uniform_()
    return view[0]


def other_name() -> torch.Tensor:
    """A tensor with the same memory that isn't known as a view."""
    q = torch.zeros(2)
    other = q.detach()
    q.uniform_()
    return other


def row_by_row() -> torch.Tensor:
    """Noise for each row from its own generator, as serving engines draw it."""
    q = torch.empty(2, 3)
    for row, seed in enumerate((3, 4)):
        q[row].uniform_(generator=torch.Generator().manual_seed(seed))
    return q[:, 1]


def rows_in_inference_mode() -> torch.Tensor:
    """There, views don't know what they are views of."""
    with torch.inference_mode():
        return row_by_row()


def some_rows_again() -> torch.Tensor:
    """A row of noise, written over with other noise."""
    q = torch.empty(2, 3).uniform_()
    q[1].uniform_(generator=torch.Generator().manual_seed(3))
    return q[:, 1]


def written_by_index() -> torch.Tensor:
    """Random numbers copied into a tensor that the program has."""
    q = torch.ones(3)
    view = q[1:]
    q[torch.tensor([False, True, True])] = torch.rand(2)
    return view


def copied() -> torch.Tensor:
    """Slices that are assigned."""
    q = torch.ones(4)
    q[:2] = torch.rand(2)
    q[2].copy_(q[0])
    return q[1:3]


def scattered() -> torch.Tensor:
    """Values at places."""
    return torch.ones(3).scatter_(0, torch.tensor([2, 0]), torch.rand(2))[::2]


def changed_in_place() -> torch.Tensor:
    """Computing in place changes all views."""
    q = torch.empty(2).uniform_()
    view = q.view(2, 1)
    q.mul_(4).div_(4)
    return view[:, 0]


@pytest.mark.parametrize(
    "program",
    [
        *(kept_name, older_view, other_name, row_by_row, rows_in_inference_mode, some_rows_again),
        *(written_by_index, copied, scattered, changed_in_place),
    ],
)
def test_whoever_shares_memory_shares_the_numbers(program):
    check_law(lambda: program() < 0.25, TWO_COINS)


def test_a_parameter_can_be_initialised():
    parameter = torch.nn.Parameter(torch.zeros(2))
    check_law(lambda: torch.nn.init.uniform_(parameter) < 0.25, TWO_COINS)
    assert type(parameter) is torch.nn.Parameter
    assert parameter.isnan().all()


def test_what_is_decided_stays_decided():
    def program() -> tuple[bool, bool, bool]:
        u = torch.rand(1)
        copies = u.clone().double(), u[0].item()
        return bool(u < 0.5), bool(copies[0] < 0.25), copies[1] < 0.75

    check_law(
        program,
        {(True, True, True): 0.25, (True, False, True): 0.25, (False, False, True): 0.25, (False,) * 3: 0.25},
    )


BUFFER = torch.zeros(2)


def test_a_buffer_may_outlive_a_run_but_not_its_numbers():
    check_law(lambda: BUFFER.uniform_() < 0.25, TWO_COINS)
    assert type(BUFFER) is torch.Tensor

    def stale() -> bool:
        found = bool(BUFFER[0] < 0.5)
        BUFFER.uniform_()
        return found

    with pytest.raises(NotRepeatableError, match=r"test_torch_shared_memory.py:\d+ .*earlier run"):
        exact_law(stale)
    assert type(BUFFER) is torch.Tensor
    assert math.isnan(BUFFER[0].item())


def test_the_memory_of_a_program_is_not_marked_as_shared():
    weights = torch.ones(2, dtype=torch.float64)
    exact_law(lambda: (weights / torch.empty(2, dtype=torch.float64).exponential_()).argmax())
    assert weights.untyped_storage().resizable()
