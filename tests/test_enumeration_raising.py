"""Exceptions of a program are outcomes, those that come from a fault of the enumeration are none."""

import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from tokenlaw.stats.enumeration import array_functions, drawing, lazy_tensor_arithmetic, numpy_draws
from tokenlaw.stats.enumeration.errors import EnumerationError, UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.sources import python_random

untyped: Any = random
untyped_numpy: Any = np.random

RAISED_BY_THE_REAL_ONES: dict[str, Callable[[], Any]] = {
    "nothing to choose from": lambda: random.choice([]),
    "no sequence": lambda: untyped.choice(3),
    "too many arguments": lambda: untyped.choice([1], [2]),
    "a tuple is shuffled": lambda: untyped.shuffle((1, 2)),
    "more than there is": lambda: random.sample("ab", 3),
    "negative bits": lambda: random.getrandbits(-1),
    "a seed": lambda: untyped.seed([]),
    "logarithm of a float": lambda: math.log(-1),
    "logarithm": lambda: math.log(random.random() - 2),
    "division by zero": lambda: random.random() / 0,
    "weights that are none": lambda: np.random.choice(2, p=[0.5, 0.25]),
    "a negative size": lambda: np.random.rand(-1),
    "a seed of numpy": lambda: untyped_numpy.default_rng("a"),
    "rows of different lengths": lambda: np.array([[1], [1, 2]]),
    "two lengths": lambda: np.random.rand(2) + np.ones(3),
    "arrays that can't be joined": lambda: np.concatenate([np.random.rand(2), np.ones((2, 2))]),
    "an index of an array": lambda: np.random.rand(2)[5],
    "an index of a tensor": lambda: torch.rand(2)[5],
    "tensors that can't be joined": lambda: torch.cat([torch.rand(2, 2), torch.ones(3, 3)]),
    "a tensor of a text": lambda: torch.tensor("a"),
    "an empty range": lambda: torch.randint(3, 3, (1,)),
    "a share above one": lambda: torch.ones(1).bernoulli_(1.5),
    "several elements": lambda: torch.rand(2).item(),
    "a function of C": partial(math.sqrt, -1),
}


@pytest.mark.parametrize("name", RAISED_BY_THE_REAL_ONES)
def test_what_the_real_function_raises_is_the_outcome(name: str) -> None:
    program = RAISED_BY_THE_REAL_ONES[name]
    with pytest.raises(Exception, match=r".") as real:
        program()
    (outcome,) = exact_law(program).probabilities
    assert str(outcome).startswith(f"raises {type(real.value).__name__}: ")


def toss() -> bool:
    return random.random() < 0.5


@pytest.mark.parametrize(
    ("module", "name", "program"),
    [
        (drawing, "Draw", lambda: random.choice("ab")),
        (drawing, "Draw", lambda: random.shuffle([1, 2])),
        (numpy_draws, "lazy_array", lambda: bool(np.all(np.random.rand(2) < 0.5))),
        (lazy_tensor_arithmetic, "UNARY", lambda: bool(torch.rand(()).log() < -1)),
    ],
)
def test_a_fault_of_ours_is_no_outcome(
    module: Any, name: str, program: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert exact_law(program).complete
    monkeypatch.setattr(module, name, None)
    with pytest.raises(EnumerationError, match=r"test_enumeration_raising.py:\d+ .*TypeError.* fault of the"):
        exact_law(lambda: program() if toss() else "other")


@pytest.mark.parametrize(
    "program",
    [
        lambda: torch.Tensor(np.random.rand(2)),
        lambda: (random.random() * torch.ones(()))[None] < 1,
        lambda: np.random.rand(1)[0][None] < 1,
    ],
)
def test_what_is_raised_at_a_random_number_is_refused(program: Callable[[], Any]) -> None:
    with pytest.raises(UndecidableError, match="can't read a random number"):
        exact_law(program)


UNKNOWN_CALLS: dict[str, tuple[str, Callable[[], Any]]] = {
    "a keyword": (r"Distributions.uniform\(\) got an unexpected", lambda: untyped_numpy.uniform(keyword=1)),
    "too many": (r"Distributions.permutation\(\) takes", lambda: untyped_numpy.permutation(1, 2, 3)),
    "too few": (r"LazyArray.searchsorted\(\) missing", lambda: untyped_numpy.rand(2).searchsorted()),
    "beside an array": (
        "numpy.max isn't known here .*where",
        lambda: np.max(np.random.rand(1), where=[True]),
    ),
}


@pytest.mark.parametrize("name", UNKNOWN_CALLS)
def test_a_call_that_is_not_known_is_no_outcome(name: str) -> None:
    message, program = UNKNOWN_CALLS[name]
    with pytest.raises(UndecidableError, match=rf"test_enumeration_raising.py:\d+ .*: {message}"):
        exact_law(lambda: program() if toss() else "other")


def race(weights: Any) -> Any:
    """Of the program, by a name that something of ours has too."""
    return weights


def test_functions_of_the_program_may_have_names_of_ours() -> None:
    def call(first: Any) -> Any:
        return first

    wrong: Any = race, call
    for function in wrong:
        law = exact_law(lambda function=function: function(1, 2) if toss() else "other")
        assert {str(one).partition(":")[0] for one in law.probabilities} == {"raises TypeError", "other"}


def test_what_a_handler_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(array_functions.FUNCTIONS, "argmax", lambda a: 0)
    array_functions.signature_of.cache_clear()
    with pytest.raises(
        UndecidableError, match=r"numpy.argmax isn't known here with all of these arguments .*axis"
    ):
        exact_law(lambda: int(np.argmax(np.random.rand(2), axis=0)))
    array_functions.signature_of.cache_clear()


def test_what_a_method_does_not_know_is_refused_if_the_real_one_knows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(python_random._Methods, "choice", lambda self, generator: 0)
    with pytest.raises(UndecidableError, match=r"random.choice with these arguments"):
        exact_law(lambda: random.choice([1, 2]))
