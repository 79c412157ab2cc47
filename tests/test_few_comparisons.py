"""Comparisons of a few uniforms take fewer steps, and decide what they would with all of them."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenlaw.stats.enumeration import lazy_tensor_comparing, lazy_tensors
from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.forms import EXPONENTIAL
from tokenlaw.stats.enumeration.noise_book import FEW, NoiseBook
from tokenlaw.stats.enumeration.tape import Tape

NAN = float("nan")
COMPARED = [
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    torch.lt,
    torch.greater_equal,
    torch.Tensor.gt,
]
BOUNDS = st.sampled_from([0.0, 0.25, 0.5, 1.0, -1.0, 2.0, NAN, float("inf")])

Comparison = Callable[[Any, Any], torch.Tensor]


def paths(program: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, int]:
    """The law with shortcuts, that without, and how many comparisons took one."""
    taken = 0

    def counted(shortcut: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def function(first: Any, second: Any) -> Any:
            nonlocal taken
            found = shortcut(first, second)
            taken += found is not None
            return found

        return function

    with monkeypatch.context() as patched:
        for name, shortcut in lazy_tensors.shortcuts.items():
            patched.setitem(lazy_tensors.shortcuts, name, counted(shortcut))
        quick = exact_law(program)
    with monkeypatch.context() as patched:
        patched.setattr(lazy_tensors, "shortcuts", {})
        slow = exact_law(program)
    return (quick.probabilities, quick.paths), (slow.probabilities, slow.paths), taken


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(COMPARED), BOUNDS, BOUNDS, st.booleans()), min_size=1, max_size=4),
    st.sampled_from([(2,), (2, 1), (1, 2)]),
)
def test_shortcuts_change_no_law(steps: list[tuple[Comparison, float, float, bool]], shape: Any) -> None:
    """Numbers are compared again and again, also with bounds that are decided, or that are no numbers."""

    def program() -> list[Any]:
        uniforms = torch.rand(shape)
        found = []
        for compare, low, high, turned in steps:
            bounds = torch.tensor([low, high]).reshape(shape)
            found.append(compare(bounds, uniforms) if turned else compare(uniforms, bounds))
        return [answers.tolist() for answers in found]

    with pytest.MonkeyPatch.context() as monkeypatch:
        quick, slow, taken = paths(program, monkeypatch)
    assert quick == slow
    assert taken >= len(steps)


@pytest.mark.parametrize(
    "bound", [0.3, 1, 0, True, torch.tensor(0.3), torch.tensor([0.3]), torch.tensor([[0.3]])]
)
@pytest.mark.parametrize("shape", [(), (2,), (1, 1)])
def test_bounds_of_other_shapes_and_kinds(
    bound: Any, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def program() -> Any:
        answers = torch.rand(shape) < bound
        return answers.dtype == torch.bool, tuple(answers.shape), answers.tolist()

    quick, slow, _ = paths(program, monkeypatch)
    assert quick == slow


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.rand(2).expand(2, 2),  # of another shape
        lambda: 1 - torch.rand(2),
        lambda: torch.rand(2).log(),
        lambda: torch.empty(2).exponential_(),
        lambda: torch.empty(2).uniform_(-1, 1),
        lambda: torch.rand(FEW + 1)[:2],
    ],
)
def test_what_takes_more_steps_goes_the_long_way(
    make: Callable[[], torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick, slow, taken = paths(lambda: (make() < torch.tensor([0.25, 0.5])).tolist(), monkeypatch)
    assert quick == slow
    assert taken == 0


def test_tensors_inside_of_a_transform_go_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = torch.tensor([0.25, 0.5])

    def program() -> Any:
        uniform = torch.rand(())
        return torch.vmap(lambda bound: uniform < bound)(bounds).tolist()

    quick, slow, taken = paths(program, monkeypatch)
    assert quick == slow == ({(True, True): 0.25, (False, True): 0.25, (False, False): 0.5}, 3)
    assert taken == 0


def test_one_number_with_several_bounds_is_decided_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = torch.tensor([0.25, 0.5, 0.25])
    quick, slow, taken = paths(lambda: (torch.rand(1).expand(3) < bounds).tolist(), monkeypatch)
    assert quick == slow == ({(True,) * 3: 0.25, (False, True, False): 0.25, (False,) * 3: 0.5}, 3)
    assert taken > 0


def test_only_numbers_as_they_were_drawn_are_plain() -> None:
    book = NoiseBook(Tape())
    book.fresh([0, 0], kind=EXPONENTIAL)
    book.fresh([0], scale=2.0)
    book.fresh([0], shift=1.0)
    book.fresh([0] * (FEW + 1))
    assert book.plain == {}
    [handle] = book.fresh([0])
    assert book.plain == {handle: book.read(np.array([handle])).variable.item()}


def test_every_ordering_has_a_shortcut() -> None:
    names = lazy_tensor_comparing.ORDERINGS
    assert len(lazy_tensors.shortcuts) == 2 * len([*names, *names.values()])


def test_numbers_of_an_earlier_run_are_refused() -> None:
    kept: list[torch.Tensor] = []

    def program() -> bool:
        kept.append(torch.rand(1))
        return bool(kept[0] < 0.5)

    with pytest.raises(Exception, match="earlier run"):
        exact_law(program)
