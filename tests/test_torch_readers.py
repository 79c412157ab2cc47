"""What reads the memory of tensors past Python is refused random numbers."""

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils import dlpack

from support.torch_laws import check_law, coin, draws
from tokenlaw.stats.enumeration import torch_overloads
from tokenlaw.stats.enumeration.errors import UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law

WEIGHTS = torch.tensor([0.5, 0.3, 0.2])
FLOATS = torch.FloatTensor


class OwnTensor(torch.Tensor):
    """A class of the program's own."""


def race(weights: torch.Tensor) -> torch.Tensor:
    """The usual way to draw an index by its weight."""
    return torch.argmax(weights / torch.empty_like(weights).exponential_(1.0))


def race_in(weights: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
    """The same in memory that is there."""
    return torch.argmax(weights / memory.exponential_())


def race_copied(weights: torch.Tensor) -> torch.Tensor:
    """The same with numbers that are copied."""
    memory = torch.zeros(3)
    memory.copy_(torch.rand(3))
    return torch.argmax(weights / memory)


class Sampler(torch.nn.Module):
    """The same in a module."""

    def forward(self, weights: torch.Tensor) -> torch.Tensor:
        """Draw an index."""
        return torch.argmax(weights / torch.empty_like(weights).exponential_(1.0))


class Scaled(torch.nn.Module):
    """Has memory of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(3))
        self.shift = torch.zeros(3)

    def forward(self, weights: torch.Tensor) -> torch.Tensor:
        """Scale and shift."""
        return weights * self.scale + self.shift


def first_of(many: list[torch.Tensor]) -> torch.Tensor:
    """One of a list."""
    return many[0] + 0


def below(weights: torch.Tensor) -> torch.Tensor:
    """Draws numbers that are compared in place of being written."""
    return torch.rand(1) < weights[1]


def drawn(weights: torch.Tensor) -> torch.Tensor:
    """Draws numbers that are decided at once."""
    return torch.multinomial(weights, 1)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # TorchScript is deprecated
    RACE, RACE_IN, COPIED, FIRST, BELOW, DRAWN = map(
        torch.jit.script, (race, race_in, race_copied, first_of, below, drawn)
    )
    MODULE, SCALED = torch.jit.script(Sampler()), torch.jit.script(Scaled())
    TRACED = torch.jit.trace(race, WEIGHTS, check_trace=False)
NESTED = torch.nn.Sequential(MODULE)


def noise(size: int = 3) -> torch.Tensor:
    """Uniform numbers in memory of the program's own."""
    return torch.empty(size).uniform_()


@pytest.mark.parametrize(
    "program",
    [
        lambda: RACE(WEIGHTS),
        lambda: TRACED(WEIGHTS),
        lambda: MODULE(WEIGHTS),
        lambda: MODULE.forward(WEIGHTS),
        lambda: NESTED(WEIGHTS),
        lambda: RACE_IN(WEIGHTS, torch.empty(3)),
        lambda: COPIED(WEIGHTS),
    ],
)
def test_scripted_functions_may_not_write_random_numbers(program):
    with pytest.raises(
        UndecidableError, match=r"test_torch_readers.py:\d+ .*inside a function in C\+\+"
    ) as refused:
        exact_law(lambda: int(program()))
    assert "call the function of Python that was scripted" in str(refused.value)


def fill(module: Any, name: str) -> torch.Tensor:
    """Write noise into what a scripted module holds, and call it."""
    getattr(module, name).uniform_()
    return module(WEIGHTS)


@pytest.mark.parametrize(
    "program", [lambda: FIRST([noise()]), lambda: fill(SCALED, "scale"), lambda: fill(SCALED, "shift")]
)
def test_scripted_functions_may_not_be_given_them(program):
    with pytest.raises(UndecidableError, match="a scripted function reads random numbers"):
        exact_law(program)


def test_other_scripted_functions_go_on_working():
    def beside_noise() -> bool:
        u = noise(1)
        return bool(u < FIRST([WEIGHTS])[1])

    check_law(beside_noise, coin(0.30000001192092896))
    check_law(lambda: BELOW(WEIGHTS), {(True,): 0.30000001192092896, (False,): 0.699999988079071})
    check_law(lambda: DRAWN(WEIGHTS).item(), draws(WEIGHTS))


def test_kernels_in_cpp_are_noticed(monkeypatch: pytest.MonkeyPatch):
    """This one races in memory that no Python sees: were it not replaced, it would be refused."""
    monkeypatch.setattr(torch_overloads, "INTO_OUT", {})
    monkeypatch.setattr(torch_overloads, "random_kernels", lambda devices: ())
    with pytest.raises(UndecidableError, match=r"inside a function in C\+\+"):
        exact_law(lambda: torch.multinomial(WEIGHTS, 1, out=torch.empty(1, dtype=torch.int64)))


def with_data(value: torch.Tensor) -> torch.Tensor:
    """A tensor whose data are set."""
    tensor = torch.zeros(3)
    tensor.data = value
    return tensor


def by_storage() -> list[int]:
    """Bytes of memory that the program holds."""
    tensor = torch.empty(3)
    storage = tensor.untyped_storage()
    tensor.uniform_()
    return storage.tolist()


@pytest.mark.parametrize(
    ("message", "program"),
    [
        ("setting torch.Tensor.data", lambda: with_data(torch.rand(3)) < 0.5),
        ("setting torch.Tensor.data", lambda: with_data(noise()) < 0.5),
        ("storage the program holds", by_storage),
        (r"torch.Tensor\(\) reads memory", lambda: torch.Tensor(noise()) < 0.5),
        ("dlpack reads memory", lambda: torch.from_dlpack(dlpack.to_dlpack(noise())) < 0.5),
        ("torch._to_dlpack reads memory", lambda: torch._C._to_dlpack(torch.rand(1))),
        ("torch._make_subclass reads", lambda: torch.Tensor._make_subclass(torch.Tensor, noise()) < 0.5),
        ("torch.Tensor.as_subclass reads", lambda: noise().as_subclass(OwnTensor) < 0.5),
        ("torch.Tensor.as_subclass reads", lambda: torch.rand(3).as_subclass(OwnTensor) < 0.5),
        ("torch.Tensor.set_ reads", lambda: torch.zeros(3).set_(noise()) < 0.5),
        ("torch.swap_tensors reads", lambda: torch.utils.swap_tensors(noise(), torch.ones(3))),
        ("torch.frombuffer reads", lambda: torch.frombuffer(np.random.rand(2), dtype=torch.float64) < 0.5),
        ("format O", lambda: memoryview(noise().numpy())[0] < 0.5),
        (r"__float__ .*; use \.item\(\)", lambda: float(torch.rand(()))),
        ("isn't sorted", lambda: torch.searchsorted(torch.tensor([0.5, math.nan]), torch.rand(1))),
    ],
)
def test_readers_are_refused(message: str, program: Callable[[], Any]) -> None:
    with pytest.raises(UndecidableError, match=rf"test_torch_readers.py:\d+ .*{message}"):
        exact_law(program)


@pytest.mark.parametrize(
    "legacy", [torch.FloatTensor, pytest.param(torch.autograd.Variable, id="Variable"), lambda x: FLOATS(x)]
)
def test_legacy_constructors_that_share_memory_are_refused(legacy: Callable[[Any], Any]) -> None:
    """What is written through them would be overlooked, and what is read through them was never drawn."""

    def program() -> bool:
        memory = torch.empty(2).uniform_()
        return bool(legacy(memory)[0] < 0.5)

    with pytest.raises(UndecidableError, match=r"torch\.\w+.*\(\) reads memory in which"):
        exact_law(program)


def test_legacy_types_stay_types() -> None:
    def program() -> tuple[bool, Any, Any, list[float]]:
        coin = bool(torch.rand(()) < 0.5)
        whole = torch.ones(2, dtype=torch.int64)
        made = torch.FloatTensor([0.5, 0.25])
        return coin, isinstance(whole, torch.LongTensor), whole.type(torch.DoubleTensor).dtype, made.tolist()

    assert set(exact_law(program).probabilities) == {
        (coin, True, torch.float64, (0.5, 0.25)) for coin in (True, False)
    }


def test_what_stands_for_a_type_can_be_copied():
    check_law(lambda: (copy.copy(torch.FloatTensor)([0.5]).item(), bool(torch.rand(()) < 0.25)), {
        (0.5, True): 0.25, (0.5, False): 0.75
    })  # fmt: skip


def test_copies_stay_undecided():
    law = {(True,): 0.25, (False,): 0.75}
    for make in (torch.tensor, torch.as_tensor, torch.asarray):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a tensor is copied by `tensor`
            check_law(lambda make=make: make(noise(1)) < 0.25, law)


def test_tensors_of_a_class_of_the_program_can_be_written_into():
    check_law(lambda: bool(torch.empty(()).as_subclass(OwnTensor).uniform_() < 0.25), coin(0.25))


def test_nothing_stays_replaced():
    names = ("__new__", "data", "as_subclass", "set_", "_make_subclass")
    before = torch.to_dlpack, torch.frombuffer, torch.tensor, [name in vars(torch.Tensor) for name in names]
    exact_law(lambda: bool(torch.rand(()) < 0.5))
    assert before == (
        torch.to_dlpack, torch.frombuffer, torch.tensor, [name in vars(torch.Tensor) for name in names],
    )  # fmt: skip
    assert torch.equal(with_data(WEIGHTS), torch.Tensor(WEIGHTS.tolist()))
    assert type(WEIGHTS.as_subclass(OwnTensor)) is OwnTensor
