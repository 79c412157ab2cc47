"""Numbers and answers are numpy's or torch's where a program has those: ``~`` of a ``bool`` is no answer."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from support.torch_laws import check_law, coin

P = np.array([0.3, 0.7])
T = torch.tensor([0.3, 0.7], dtype=torch.float64)

NEGATED: dict[str, Callable[[], Any]] = {
    "a number of numpy's": lambda: random.random() < P[0],
    "an array without dimensions": lambda: np.random.rand() < np.array(0.3),
    "an element": lambda: np.random.rand(3)[1] < 0.3,
    "an element that was listed by iteration": lambda: next(iter(np.random.rand(3))) < 0.3,
    "a generator's": lambda: np.random.default_rng().random() <= P[0],
    "turned round": lambda: P[0] > np.random.rand(),
    "a function of numpy's": lambda: np.less(random.random(), 0.3),
    "logarithms": lambda: np.log(random.random()) < np.log(P[0]),
    "a product": lambda: random.random() * P[1] < 0.21,
    "a quotient": lambda: random.random() / P[1] < 0.3 / 0.7,
    "a sum": lambda: random.random() + P[1] < 1.0,
    "a difference": lambda: P[1] - random.random() > 0.4,
    "a power": lambda: random.random() ** np.float64(2) < 0.09,
    "the minus of an element": lambda: -np.random.rand(1)[0] > -0.3,
    "an extreme": lambda: np.random.rand(1).max() < 0.3,
    "rounded": lambda: np.floor(np.random.rand() * 10) < 3,
    "rounded elements": lambda: np.floor(np.random.rand(2) * 10)[1] < 3,
    "divided and floored": lambda: random.random() // P[0] == 0,
    "two elements of one number": lambda: np.random.rand(1)[0] * 0.7 < random.random() * 0 + 0.21,
    "a tensor's": lambda: random.random() < T[0],
    "a tensor's turned round": lambda: T[0] > random.random(),
    "an item and a tensor": lambda: torch.rand(1).item() < T[0],
    "a product with a tensor": lambda: random.random() * T[1] < 0.21,
    "a lazy tensor": lambda: torch.rand(()) < 0.3,
}


@pytest.mark.parametrize("name", NEGATED)
def test_an_answer_can_be_turned(name: str) -> None:
    check_law(lambda: bool(~NEGATED[name]()), coin(0.7))
    check_law(lambda: NEGATED[name]() is True, coin(0.0))
    check_law(lambda: NEGATED[name]().item(), coin(0.3))


@pytest.mark.parametrize("program", [lambda: random.random() < 0.3, lambda: np.random.rand() < 0.3])
def test_answers_of_python_numbers_are_python_ones(program: Callable[[], Any]) -> None:
    check_law(lambda: program() is True, coin(0.3))
    check_law(lambda: np.random.rand(2).tolist()[1] < 0.3 and np.random.rand(1)[0].item() < 2, coin(0.3))


OTHERS: list[tuple[Callable[[], Any], dict[Any, float]]] = [
    (lambda: int((random.random() < P[0]) + (random.random() < P[0])), {0: 0.49, 1: 0.51}),
    (lambda: int(torch.stack([random.random() < x for x in T]).sum()), {0: 0.21, 1: 0.58, 2: 0.21}),
    (lambda: int(torch.where(random.random() < T[0], 1, 0)), {0: 0.7, 1: 0.3}),
    (lambda: (torch.rand(1).item() < T[0]).long().item(), {0: 0.7, 1: 0.3}),
    (lambda: np.floor(np.random.rand() * 2).astype(int).item(), {0: 0.5, 1: 0.5}),
    (lambda: (np.random.rand(2)[1] * 2).astype(int).item(), {0: 0.5, 1: 0.5}),
    (lambda: bool(~(random.random() == P[0])) and bool(random.random() != P[0]), {True: 1.0}),
    (lambda: float(np.random.rand(1)[0] / 0), {np.inf: 1.0}),
    (lambda: (np.random.rand(2)[0] / 0).item(), {np.inf: 1.0}),
]


@pytest.mark.parametrize(("program", "law"), OTHERS)
def test_what_is_made_of_them(program: Callable[[], Any], law: dict[Any, float]) -> None:
    check_law(program, law)


def test_questions_for_types_are_answered_as_by_numpy() -> None:
    def kinds() -> list[bool]:
        array, tensor = np.random.rand(2), torch.rand(2)
        return [
            array.dtype == np.float64,
            np.issubdtype(array.dtype, np.floating),
            tensor.numpy().dtype.kind == "f",
            array[0].dtype == np.float64 and array[0].ndim == 0 and array[0].shape == (),
            isinstance(array[0], np.floating) and isinstance(array[0], float),
            isinstance(np.random.rand(), float) and not isinstance(np.random.rand(), np.floating),
            isinstance(random.random() * T[0], torch.Tensor),
            isinstance(np.random.rand(1)[0] < random.random() * torch.ones_like(T)[0], torch.Tensor),
        ]

    check_law(kinds, {(True,) * 8: 1.0})
