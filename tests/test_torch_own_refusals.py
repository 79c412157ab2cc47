"""Draws that torch itself doesn't do: the program raises there, or the run is refused; nothing is drawn."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tokenlaw.stats.enumeration.errors import UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law

RAISING: list[Callable[[], torch.Tensor]] = [
    lambda: torch.multinomial(torch.tensor([1, 2]), 1),
    lambda: torch.multinomial(torch.ones(3, dtype=torch.bool), 1),
    lambda: torch.multinomial(torch.ones(2, dtype=torch.complex64), 1),
    lambda: torch.multinomial(torch.tensor(1.0), 1),
    lambda: torch.multinomial(torch.ones(2, 2, 3), 1),
    lambda: torch.multinomial(torch.ones(0), 1),
    lambda: torch.multinomial(torch.ones(3, 0), 1),
    lambda: torch.multinomial(torch.ones(2), 0),
    lambda: torch.empty(2).uniform_(2, 1),
    lambda: torch.empty(1).uniform_(0, torch.inf),
    lambda: torch.empty(1).uniform_(torch.nan, 0),
    lambda: torch.empty(1).exponential_(0),
    lambda: torch.empty(1).exponential_(-1.5),
    lambda: torch.empty(1).exponential_(torch.nan),
    lambda: torch.rand(2, -1),
    lambda: torch.randperm(-1),
    lambda: torch.randint(0, 3, (-1,)),
    lambda: torch.randint(5, 2, (1,)),
]
REFUSED: list[Callable[[], torch.Tensor]] = [
    lambda: torch.bernoulli(torch.tensor([0, 1])),
    lambda: torch.zeros(2).bernoulli_(torch.tensor([0, 1])),
    lambda: torch.zeros(2, dtype=torch.complex64).bernoulli_(0.5),
    lambda: torch.empty(1, dtype=torch.int64).uniform_(),
    lambda: torch.empty(1, dtype=torch.int64).exponential_(),
    lambda: torch.randint(0, 3, (1,), dtype=torch.bool),
    lambda: torch.randint(0, 257, (1,), dtype=torch.uint8),
    lambda: torch.empty(1, dtype=torch.uint8).random_(-1, 3),
    lambda: torch.randperm(2, dtype=torch.bool),
    lambda: torch.randperm(257, dtype=torch.uint8),
]
DONE: list[Callable[[], torch.Tensor]] = [
    lambda: torch.multinomial(torch.ones(0, 3), 2),
    lambda: torch.multinomial(torch.ones(2, 1, dtype=torch.float16), 1),
    lambda: torch.bernoulli(torch.ones(1, dtype=torch.float16)),
    lambda: torch.zeros(2, dtype=torch.int64).bernoulli_(torch.tensor([1.0, 0.0])),
    lambda: torch.empty(2).uniform_(0.1, 0.1),
    lambda: torch.empty(2).exponential_(torch.inf),
    lambda: torch.randint(1, 2, (1,), dtype=torch.bool),
    lambda: torch.empty(1, dtype=torch.uint8).random_(255, 256),
    lambda: torch.randperm(1, dtype=torch.float32),
    lambda: torch.rand(0, 2),
]


@pytest.mark.parametrize("program", RAISING)
def test_the_program_raises_what_torch_raises(program: Callable[[], torch.Tensor]) -> None:
    with pytest.raises(RuntimeError) as real:
        program()
    [outcome] = exact_law(program).probabilities
    assert str(outcome) == f"raises RuntimeError: {real.value}"


@pytest.mark.parametrize("program", REFUSED)
def test_what_torch_has_no_kernel_for_is_refused(program: Callable[[], torch.Tensor]) -> None:
    with pytest.raises(RuntimeError):
        program()
    with pytest.raises(UndecidableError):
        exact_law(program)


@pytest.mark.parametrize("program", DONE)
def test_what_torch_does_at_the_border_is_done(program: Callable[[], torch.Tensor]) -> None:
    real = program()
    law = exact_law(lambda: (str(program().dtype), tuple(program().shape), program().tolist()))
    [(dtype, shape, values)] = law.probabilities
    assert (dtype, shape) == (str(real.dtype), tuple(real.shape))
    assert np.array_equal(values, real.tolist())


def test_known_numbers_leave_a_lazy_tensor_beside_random_ones() -> None:
    """They were taken for random numbers there, and the run ended."""

    def program() -> tuple[float, bool, bool]:
        noise = torch.empty(3).uniform_()
        noise[0] = 0.25
        listed = noise.tolist()
        return listed[0], listed[1] < 0.5, bool(noise.numpy()[0] < 0.3)

    assert exact_law(program).probabilities == {(0.25, True, True): 0.5, (0.25, False, True): 0.5}


def test_numbers_that_are_all_known_leave_as_an_ordinary_array() -> None:
    def program() -> tuple[str, list[float]]:
        noise = torch.empty(2).uniform_()
        noise[:] = 0.1
        return str(noise.numpy().dtype), noise.tolist()

    assert list(exact_law(program).probabilities) == [("float32", tuple(torch.full((2,), 0.1).tolist()))]
