"""What can't be decided of torch's random numbers is refused by name, and no program can hide it."""

import contextlib
import random
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import tensor

from support.torch_laws import check_law, coin
from tokenlaw.stats.enumeration.errors import UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.torch_draws import REFUSED


def out_of_reach() -> torch.Tensor:
    """A sparse tensor has the same memory, by no name in Python."""
    q = torch.zeros(2)
    sparse = torch.sparse_coo_tensor(torch.tensor([[0, 1]]), q, check_invariants=False)
    return q.uniform_() < sparse.to_dense()


def race_after_threshold() -> torch.Tensor:
    """Numbers that were compared with a threshold."""
    u = torch.rand(2)
    return u.argmax() if u[0] < 0.5 else u.argmin()


def threshold_after_race() -> torch.Tensor:
    """A winner that is compared with a threshold."""
    u = torch.rand(2)
    return u[u.argmax()] < 0.5


def under_a_transform() -> torch.Tensor:
    """Noise that is written into a tensor of which a transform has made another."""
    return torch.vmap(lambda x: torch.empty_like(x).uniform_() < 0.5, randomness="different")(torch.ones(2))


ONES, PLACES = torch.ones(2), torch.tensor([0, 0])
REFUSALS: list[tuple[str, Callable[[], Any]]] = [
    ("torch.sum", lambda: torch.rand(2).sum()),
    ("torch.cumsum", lambda: torch.rand(2).cumsum(0)),
    ("torch.mm", lambda: torch.rand(2, 2) @ torch.ones(2, 2)),
    ("torch._softmax", lambda: torch.rand(2).softmax(0)),
    ("torch.mul combines two random numbers", lambda: torch.rand(2) * torch.rand(2)),
    ("torch.log takes the logarithm of random numbers that are shifted", lambda: (torch.rand(2) + 0.5).log()),
    ("compares random numbers of different laws", lambda: torch.cat([torch.rand(1), noise(1)]).argmax()),
    ("torch.argmax looks for the clock that rings last", lambda: noise(2).argmax()),
    ("torch.topk finds fewer elements", lambda: (torch.tensor([0.0, 1.0]) / noise(2)).topk(2)),
    (
        "constants that may be the largest",
        lambda: torch.rand(2).masked_fill(torch.arange(2) > PLACES, 0.5).argmax(),
    ),
    ("lets random numbers race that were compared", race_after_threshold),
    ("after it took part in a race", threshold_after_race),
    ("torch.Tensor.__float__", lambda: float(torch.rand(1))),
    ("torch.Tensor.__repr__", lambda: print(torch.rand(1))),
    ("torch.Tensor.data_ptr", lambda: torch.rand(1).data_ptr()),
    ("torch.Tensor.__set__", lambda: setattr(torch.rand(1), "data", torch.zeros(1))),
    ("torch.Tensor.__deepcopy__", lambda: torch.rand(1).__deepcopy__({})),
    ("torch.Tensor.item", lambda: bool(torch.rand(1))),
    ("torch.float16 rounds them", lambda: torch.rand(1).half()),
    ("of torch.int64 rounds them", lambda: torch.zeros(2, dtype=torch.int64).copy_(torch.rand(2))),
    ("torch.rand in torch.bfloat16", lambda: torch.rand(1, dtype=torch.bfloat16) < 0.5),
    ("inside torch.vmap", lambda: torch.vmap(lambda x: torch.rand(1) < x, randomness="same")(ONES)),
    ("inside torch.vmap", under_a_transform),
    ("torch.randint among 1099511627776 values", lambda: torch.randint(2**40, (1,))),
    ("draws 2 values without replacement", lambda: torch.multinomial(torch.tensor([0.0, 1.0]), 2)),
    ("torch.bernoulli", lambda: torch.bernoulli(torch.rand(1))),
    ("torch.bernoulli with random probabilities", lambda: torch.ones(1).bernoulli_(torch.rand(1))),
    ("torch.randn draws", lambda: torch.randn(1)),
    ("torch.normal_ draws", lambda: torch.empty(1).normal_()),
    ("torch.poisson draws", lambda: torch.poisson(ONES)),
    ("torch.rrelu_with_noise draws", lambda: torch.nn.functional.rrelu(ONES, training=True)),
    ("torch.index with a random number for an index", lambda: ONES[torch.rand(2)]),
    (
        "torch.index_put_",
        lambda: torch.zeros(1).index_put_((torch.tensor([0, 0]),), torch.rand(2), accumulate=True),
    ),
    ("in a sequence that isn't sorted", lambda: torch.searchsorted(torch.tensor([0.5, 0.25]), torch.rand(1))),
    ("a scripted function", lambda: scripted(torch.empty(1).uniform_())),
    ("shared with numpy", lambda: torch.from_numpy(np.zeros(2)).uniform_()),
    ("out of reach", out_of_reach),
    ("in another thread", lambda: in_thread(lambda: bool(torch.rand(()) < 0.5))),
]


def noise(size: int) -> torch.Tensor:
    """Exponential noise of rate one."""
    return torch.empty(size).exponential_()


def scripted(values: torch.Tensor) -> torch.Tensor:
    """Compiled by torch, which doesn't ask the class of a tensor then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        compiled = torch.jit.script(below_half)
    return compiled(values)


def below_half(values: torch.Tensor) -> torch.Tensor:
    """What is compiled."""
    return values < 0.5


def in_thread(function: Callable[[], Any]) -> None:
    """Run something in another thread, whose exceptions are lost."""

    def run() -> None:
        with contextlib.suppress(BaseException):
            function()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


@pytest.mark.parametrize(("message", "program"), REFUSALS)
def test_what_cannot_be_decided_is_refused_by_name(message, program):
    with pytest.raises(UndecidableError) as refusal:
        exact_law(program)
    assert message in str(refusal.value)
    assert "thread" in message or "test_torch_refusals.py:" in str(refusal.value)


def test_a_refusal_cannot_be_caught_by_the_program():
    def program() -> int:
        try:
            return int(torch.rand(2).sum())
        except Exception:
            return 0

    with pytest.raises(UndecidableError, match=r"torch\.sum"):
        exact_law(program)


def test_every_random_operator_is_decided_refused_or_made_of_others():
    """All that torch itself calls random; a new one must be looked at."""
    decided = {
        "rand",
        "rand_like",
        "uniform_",
        "exponential_",
        "bernoulli",
        "bernoulli_",
        "multinomial",
        "random_",
        "randperm",
    }
    made_of_others = {
        *(
            "randint",
            "randint_like",
            "random",
            "uniform",
            "exponential",
            "bernoulli",
            "cauchy",
            "log_normal",
            "geometric",
        ),
        *("normal_functional", "dropout", "dropout_", "feature_dropout", "feature_dropout_", "alpha_dropout"),
        *(
            "alpha_dropout_",
            "feature_alpha_dropout",
            "feature_alpha_dropout_",
            "native_dropout",
            "rrelu",
            "rrelu_",
        ),
        *("rrelu_with_noise_functional", "lstm", "gru", "rnn_tanh", "rnn_relu"),
    }
    # Fused kernels draw for dropout only, in training; what they draw shows in the state of the generator.
    fused = ("attention", "_cudnn", "miopen", "_lstm_mps", "sdp", "mem_eff", "_nested", "flash")
    for name in torch._C._dispatch_get_all_op_names():
        packet, _, overload = name.removeprefix("aten::").partition(".")
        if name.startswith("aten::"):
            operator = getattr(getattr(torch.ops.aten, packet), overload or "default", None)
            tagged = operator is not None and torch.Tag.nondeterministic_seeded in operator.tags
            known = {*decided, *made_of_others, *REFUSED.split()}
            assert not tagged or packet in known or any(part in packet for part in fused), name


READ_ELSEWHERE: list[tuple[str, Callable[[], Any]]] = [
    ("torch.tensor", lambda: torch.tensor(random.random())),
    ("torch.tensor", lambda: torch.tensor([[1.0], [random.random()]])),
    ("torch.tensor", lambda: tensor(data=random.random())),
    ("torch.as_tensor", lambda: torch.as_tensor(np.random.rand(2))),
    ("torch.asarray", lambda: torch.asarray(random.random())),
    ("torch.from_numpy", lambda: torch.from_numpy(np.random.rand(2))),
    ("torch.full", lambda: torch.full((2,), random.random())),
    ("torch.mul", lambda: ONES * random.random()),
    ("torch.mul", lambda: random.random() * ONES),
    ("torch.mul", lambda: torch.rand(2) * random.random()),
    ("torch.clamp", lambda: torch.rand(2).clamp(min=random.random())),
    ("torch.lt", lambda: torch.lt(ONES, other=random.random())),
    ("torch.fill_", lambda: torch.ones(2).fill_(random.random())),
    ("torch.setitem", lambda: torch.ones(2).__setitem__(0, random.random())),
]
"""Functions of torch that read random numbers of others."""


@pytest.mark.parametrize(("name", "function"), READ_ELSEWHERE)
def test_numbers_of_others_are_refused_past_except(name, function):
    def program() -> str:
        try:
            function()
        except Exception:
            return "another way"
        return "fine"

    with pytest.raises(UndecidableError, match=rf"test_torch_refusals.py:\d+ .*: {name} reads the value"):
        exact_law(program)


def test_comparisons_with_numbers_of_others_are_decided():
    quarter = torch.tensor([0.25, 1.0])
    law = {(True, False): 0.75, (False, False): 0.25}
    check_law(lambda: quarter < random.random(), law)
    check_law(lambda: random.random() > quarter, law)
    check_law(lambda: torch.lt(quarter, random.random()), law)
    check_law(lambda: bool(torch.rand(()) < random.random()), coin(0.5))


def test_tensors_of_what_is_known_are_made_as_ever():
    real = torch.tensor, torch.from_numpy
    check_law(lambda: (tensor([1, 2]) + torch.from_numpy(np.ones(2))).tolist(), {(2.0, 3.0): 1.0})
    assert (torch.tensor, torch.from_numpy) == real
    assert tensor is torch.tensor
