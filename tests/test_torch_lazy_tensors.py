# ruff: noqa: PLW0108 - a bound method would draw once, a lambda draws in each run
"""Undecided tensors never give a wrong law: memory that is shared, refusals by name, nothing left behind."""

import contextlib
import math
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from support.torch_laws import check_law, coin, independent
from tokenlaw.stats.enumeration.errors import NotRepeatableError, UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.torch_draws import REFUSED

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
    assert "thread" in message or "test_torch_lazy_tensors.py:" in str(refusal.value)


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


ADVANCED = torch.Generator().manual_seed(3)
torch.rand(1, generator=ADVANCED)


@pytest.mark.parametrize("draws_again", [True, False])
def test_draws_past_the_kernels_are_noticed(draws_again):
    """What another operator leaves behind in the generator's state, a real draw stands for here."""

    def program() -> bool:
        torch.default_generator.set_state(ADVANCED.get_state())
        return bool(torch.rand(1) < 0.5) if draws_again else True

    with pytest.raises(UndecidableError, match="isn't seen here"):
        exact_law(program)


def test_real_randomness_is_back_afterwards():
    torch.manual_seed(11)
    expected = (
        torch.rand(3),
        torch.empty(3).exponential_(),
        torch.randn(2),
        torch.multinomial(torch.ones(9), 4),
    )
    torch.manual_seed(11)

    def program() -> bool:
        torch.manual_seed(0)
        torch.randint(3, (1,))
        if torch.rand(1) < 0.5:
            raise ValueError("as programs do")
        return True

    law = exact_law(program)
    assert sorted(map(str, law.probabilities)) == ["True", "raises ValueError: as programs do"]
    with pytest.raises(UndecidableError):
        exact_law(lambda: torch.randn(1))
    real = torch.rand(3), torch.empty(3).exponential_(), torch.randn(2), torch.multinomial(torch.ones(9), 4)
    assert all(torch.equal(one, other) for one, other in zip(real, expected, strict=True))


def test_generators_of_the_program_keep_their_state():
    generator = torch.Generator().manual_seed(5)
    before = generator.get_state()
    check_law(lambda: torch.rand(1, generator=generator) < 0.5, {(True,): 0.5, (False,): 0.5})
    assert torch.equal(generator.get_state(), before)


BUFFER = torch.zeros(2)


def test_a_buffer_may_outlive_a_run_but_not_its_numbers():
    check_law(lambda: BUFFER.uniform_() < 0.25, TWO_COINS)
    assert type(BUFFER) is torch.Tensor

    def stale() -> bool:
        found = bool(BUFFER[0] < 0.5)
        BUFFER.uniform_()
        return found

    with pytest.raises(NotRepeatableError, match=r"test_torch_lazy_tensors.py:\d+ .*earlier run"):
        exact_law(stale)
    assert type(BUFFER) is torch.Tensor
    assert math.isnan(BUFFER[0].item())


def test_the_memory_of_a_program_is_not_marked_as_shared():
    weights = torch.ones(2, dtype=torch.float64)
    exact_law(lambda: (weights / torch.empty(2, dtype=torch.float64).exponential_()).argmax())
    assert weights.untyped_storage().resizable()
