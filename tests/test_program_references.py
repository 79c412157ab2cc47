"""What counts as the program whose names are searched, wherever its libraries are installed."""

import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy
import torch
from torch import Tensor

from tokenlaw.stats.enumeration import replacing
from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.replacing import LIBRARY_FOLDERS, references
from tokenlaw.stats.enumeration.torch_operands import refusing

PROBABILITIES = torch.tensor([0.5, 0.25, 0.25])
LAW = {(0,): 0.5, (1,): 0.25, (2,): 0.25}


def draw() -> list[int]:
    return [int(torch.multinomial(PROBABILITIES, 1))]


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of torch's deprecated names, when they are read
def test_a_program_is_proved_where_torch_is_taken_for_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-ins for torch's functions are then found as well, and go on calling the real ones."""
    monkeypatch.setattr(replacing, "LIBRARY_FOLDERS", ())
    monkeypatch.setattr(replacing, "SITE_FOLDERS", frozenset())
    before = torch.tensor
    assert exact_law(draw).probabilities == LAW
    assert torch.tensor is before
    assert torch.tensor([2]).tolist() == [2]


def test_what_stands_for_a_function_keeps_it() -> None:
    """The search leaves out what our own functions hold, beside a program of which it finds all."""

    def make(value: int) -> Tensor:
        return torch.full((1,), value)

    held = [value for _, _, value in references([refusing(make), draw])]
    assert not any(value is make for value in held)
    assert any(value is PROBABILITIES for value in held)


def test_the_function_of_ours_that_runs_a_program_is_searched() -> None:
    """It holds the program, whose own names for random functions are found through it."""
    drawn_by = random.random
    assert exact_law(lambda: drawn_by() < 0.25).probabilities == {True: 0.25, False: 0.75}


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_packages_of_another_environment_are_libraries(folder: str) -> None:
    path = Path("another", "lib", "python3.11", folder, "package", "module.py")
    names = {"__name__": "package.module", "__file__": str(path), "inside": object()}
    exec("def function(): return inside", names)
    held = [value for _, _, value in references(names["function"])]
    assert not any(value is names["inside"] for value in held)


@pytest.mark.parametrize("library", [torch, np, scipy])
def test_libraries_are_known_wherever_they_come_from(library: object) -> None:
    """Also from a folder of PYTHONPATH, beside the program: each has its own entry."""
    folder = os.path.join(os.path.dirname(str(vars(library)["__file__"])), "")
    assert folder in LIBRARY_FOLDERS


class Holders:
    """Holds functions that draw as static methods and in partial functions."""

    static = staticmethod(random.random)
    legacy = staticmethod(np.random.random_sample)
    called = partial(random.choice, [True, False])
    bare = partial(np.random.randint, 2)


HELD: dict[str, Callable[[], object]] = {
    "static": lambda: Holders.static() < 0.5,
    "static of numpy": lambda: bool(Holders().legacy() < 0.5),
    "partial": lambda: bool(Holders.called()),
    "partial of numpy": lambda: bool(Holders.bare()),
}


@pytest.mark.parametrize("name", HELD)
def test_functions_in_other_holders_are_found_and_put_back(name: str) -> None:
    before = [Holders.static, Holders.legacy, Holders.called.func, Holders.bare.func]
    assert exact_law(HELD[name]).probabilities == {True: 0.5, False: 0.5}
    assert before == [Holders.static, Holders.legacy, Holders.called.func, Holders.bare.func]
    assert isinstance(vars(Holders)["static"], staticmethod)
