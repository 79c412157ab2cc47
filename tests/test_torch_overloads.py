"""Every overload of every random operator of torch is decided or refused; none draws unseen."""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from support.torch_laws import check_law, draws
from tokenlaw.stats.enumeration import torch_overloads
from tokenlaw.stats.enumeration.errors import UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.law import Law
from tokenlaw.stats.enumeration.noise_book import NoiseBook
from tokenlaw.stats.enumeration.tape import Tape
from tokenlaw.stats.enumeration.torch_draws import TorchDraws
from tokenlaw.stats.enumeration.torch_overloads import FUSED, all_kernels, random_kernels

WEIGHTS = torch.tensor([0.5, 0.3, 0.2])
DRAWS_NOTHING = {"_fused_sdp_choice", "_scaled_dot_product_flash_attention_for_cpu"}
"""Kernels for the CPU that torch calls random, and that have no dropout there."""
ELSEWHERE = ("_fused_dropout", "gru", "lstm", "rnn_", "_nested", "_triton", "_philox", *FUSED)
"""Operators with arguments that can't be made up here; dropout of recurrent layers is tested below."""
GIVEN: dict[str, Any] = {
    **{
        "size": [2],
        "n": 3,
        "high": 3,
        "low": 0,
        "from": 0,
        "to": 2,
        "p": 0.5,
        "train": True,
        "training": True,
    },
    **{"num_samples": 1, "replacement": False, "generator": None, "prob": 0.5, "std": 1.0, "mean": 0.0},
    **{"lambd": 1.0, "lower": 0.1, "upper": 0.3, "median": 0.0, "sigma": 1.0, "count": torch.ones(2)},
}
"""Arguments by their names."""


def tagged() -> Iterator[Any]:
    """What torch itself calls random."""
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        packet, _, overload = name.removeprefix("aten::").partition(".")
        if name.startswith("aten::") and not any(part in packet for part in ELSEWHERE):
            operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
            if torch.Tag.nondeterministic_seeded in operator.tags:
                yield operator


def argument(operator: Any, asked: Any) -> Any:
    """Something that an operator can be called with."""
    if asked.name == "self" and "int" in str(operator) and "randint_like" not in str(operator):
        return torch.ones(2)
    if str(asked.type) == "Tensor":
        integer = asked.is_out and operator._schema.name in ("aten::multinomial", "aten::randperm")
        if asked.name == "high":
            return torch.tensor(3)
        if asked.name == "out1":
            return torch.zeros(2, dtype=torch.bool)
        feature = "feature" in operator._schema.name
        return torch.full(
            (2, 2) if feature else (2,), 1 if integer else 0.5, dtype=torch.int64 if integer else None
        )
    return GIVEN[asked.name]


def outcome(found: Any) -> Any:
    """What is seen of numbers, decided or not."""
    return (
        tuple(outcome(part) for part in found) if isinstance(found, list | tuple) else (found < 0.3).tolist()
    )


@pytest.mark.parametrize("operator", list(tagged()), ids=str)
def test_every_overload_is_decided_or_refused(operator):
    def program() -> Any:
        arguments = operator._schema.arguments
        asked = [one for one in arguments if one.name in GIVEN or not one.has_default_value()]
        return outcome(
            operator(
                *[argument(operator, one) for one in asked if not one.kwarg_only],
                **{one.name: argument(operator, one) for one in asked if one.kwarg_only},
            )
        )

    program()  # which needn't be a program that torch can't run
    found = law_or_refusal(program)
    if isinstance(found, Law):
        assert sum(found.probabilities.values()) == pytest.approx(1)
        assert len(found.probabilities) > 1
    else:
        assert re.search("draws numbers of which no use|is too many to enumerate", found)


def law_or_refusal(program: Callable[[], Any]) -> Law | str:
    """The law, or why there is none."""
    try:
        return exact_law(program)
    except UndecidableError as refusal:
        return str(refusal)


def test_every_kernel_of_its_own_is_replaced():
    """Also those that no test calls: a new one of torch is refused by its name."""
    kernels = all_kernels(TorchDraws(NoiseBook(Tape())), ("CPU",))
    random = set(random_kernels(("CPU",)))
    assert {"multinomial.out", "native_dropout", "uniform_"} < random
    assert random - set(kernels) == DRAWS_NOTHING


def test_an_unknown_kernel_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch_overloads, "INTO_OUT", {})
    with pytest.raises(UndecidableError, match=r"torch.multinomial.out draws numbers"):
        exact_law(lambda: torch.multinomial(WEIGHTS, 1, out=torch.empty(1, dtype=torch.int64)))


def into(make: Callable[..., Any], *args: Any, dtype: torch.dtype = torch.int64, **options: Any) -> Any:
    """What is written into a tensor given as ``out``."""
    out = torch.zeros(1, dtype=dtype)
    assert make(*args, out=out.resize_(0), **options) is out
    return out


THREE = dict.fromkeys(itertools.permutations(range(3)), 1 / 6)


def noise() -> torch.Tensor:
    """Exponential noise of rate one."""
    return torch.empty(3).exponential_()


def both(make: Callable[..., Any], *args: Any) -> Any:
    """Positions that are written into the second of two tensors."""
    values, places = torch.empty(0), torch.empty(0, dtype=torch.int64)
    make(*args, out=(values, places))
    return places


@pytest.mark.parametrize(
    ("program", "law"),
    [
        (lambda: into(torch.multinomial, WEIGHTS, 1)[0], draws(WEIGHTS)),
        (lambda: into(torch.bernoulli, WEIGHTS[1:2], dtype=torch.float32)[0], {1.0: 0.3, 0.0: 0.7}),
        (lambda: into(torch.randperm, 3), THREE),
        (lambda: into(torch.randint, 0, 2, (1,))[0], {0: 0.5, 1: 0.5}),
        (lambda: (into(torch.rand, 1, dtype=torch.float32) < 0.25)[0], {True: 0.25, False: 0.75}),
        (lambda: both(torch.topk, WEIGHTS / noise(), 1)[0], draws(WEIGHTS)),
        (lambda: both(torch.max, WEIGHTS / noise(), 0), draws(WEIGHTS)),
        (lambda: both(torch.sort, torch.rand(3)), THREE),
        (lambda: into(torch.argmax, WEIGHTS / noise()), draws(WEIGHTS)),
        (lambda: into(torch.lt, torch.rand(1), 0.25, dtype=torch.bool)[0], {True: 0.25, False: 0.75}),
        (
            lambda: (into(torch.add, torch.rand(1), 1, dtype=torch.float32) < 1.25)[0],
            {True: 0.25, False: 0.75},
        ),
        (lambda: torch.native_dropout(torch.ones(1), 0.25, True)[0] > 1, {(True,): 0.75, (False,): 0.25}),
        (lambda: torch.native_dropout(torch.ones(1), 0.25, False)[1], {(True,): 1.0}),
    ],
)
def test_what_is_written_into_out_has_the_same_law(program, law):
    check_law(program, {key: pytest.approx(weight, abs=1e-7) for key, weight in law.items()})


def test_a_tensor_can_be_given_as_out_in_every_run():
    buffer = torch.empty(1)

    def program() -> bool:
        torch.rand(1, out=buffer)
        return bool(torch.mul(buffer, 2, out=buffer) < 0.5)

    check_law(program, {True: 0.25, False: 0.75})


@pytest.mark.parametrize(
    ("message", "program"),
    [
        ("writes integers into a tensor", lambda: into(torch.multinomial, WEIGHTS, 1, dtype=torch.float32)),
        ("writes torch.int64 into a tensor", lambda: into(torch.argmin, noise(), dtype=torch.float32)),
        ("changes a shape", lambda: torch.rand(2, out=torch.empty(1).uniform_())),
        ("of random numbers has no exact", lambda: into(torch.cumsum, torch.rand(2), 0, dtype=torch.float32)),
    ],
)
def test_what_out_cannot_take_is_refused(message, program):
    with pytest.raises(UndecidableError, match=message):
        exact_law(program)


def test_a_draw_that_is_not_seen_is_noticed_in_any_run():
    """Also where the last run, by whose end the generator would show it, doesn't do it."""
    generator = torch.Generator().manual_seed(3)
    torch.rand(1, generator=generator)
    state = generator.get_state()  # that of a generator that somebody has drawn from

    def program() -> bool:
        if first := bool(torch.rand(()) < 0.5):
            torch.default_generator.set_state(state)
        return first

    with pytest.raises(UndecidableError, match="by an operation that isn't seen here"):
        exact_law(program)
