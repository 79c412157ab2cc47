"""Functions of numpy with ``out`` and further arguments beside lazy arrays, and readers of memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.torch_laws import check_law
from tokenlaw.stats.enumeration.errors import UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.law import Raised

Vector = Any
rand: Callable[..., Vector] = np.random.rand


def into(function: Callable[..., Any], *arguments: Any, out: Vector, **options: Any) -> Any:
    """What a function writes into an array."""
    function(*arguments, out=out, **options)
    return out.tolist()


def integers(*shape: int) -> Vector:
    return np.zeros(shape, dtype=np.int64)


def draw() -> Vector:
    return np.random.rand(1, 2)


@pytest.mark.parametrize(
    ("program", "law"),
    [
        (lambda: into(np.argmax, draw(), axis=1, out=integers(1)), {(0,): 0.5, (1,): 0.5}),
        (lambda: into(draw().argmax, 1, out=integers(1)), {(0,): 0.5, (1,): 0.5}),
        (lambda: into(np.argmin, draw(), out=integers()), {0: 0.5, 1: 0.5}),
        (lambda: into(np.less, draw(), 0.25, out=np.zeros((1, 2), bool))[0][0], {True: 0.25, False: 0.75}),
        (lambda: into(np.floor, 2 * draw(), out=np.zeros((1, 2)))[0][0], {0.0: 0.5, 1.0: 0.5}),
        (lambda: (np.max(draw(), axis=0, out=draw()[0]) < 0.5).tolist()[0], {True: 0.5, False: 0.5}),
        (lambda: bool(np.max(draw(), initial=0.5) < 0.75), {True: 9 / 16, False: 7 / 16}),
        (lambda: bool(draw().max(initial=0.5) < 0.75), {True: 9 / 16, False: 7 / 16}),
        (lambda: bool(draw().min(initial=0.5, axis=1)[0] < 0.25), {True: 7 / 16, False: 9 / 16}),
        (lambda: np.zeros_like(draw(), shape=3).tolist(), {(0.0, 0.0, 0.0): 1}),
        (lambda: (np.random.uniform([0, 1], [2, 3]) < 1.5).tolist()[1], {True: 0.25, False: 0.75}),
    ],
)
def test_results_have_their_laws(program: Callable[[], Any], law: dict[Any, float]) -> None:
    check_law(program, law)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda: np.max(draw(), initial=0, where=[True, False]), "numpy.max isn't known here .*where"),
        (lambda: np.amax(draw(), initial=0, where=[True, False]), "numpy.a?max isn't known here .*where"),
        (lambda: into(np.argmax, draw(), out=np.zeros(())), "numpy.argmax with an `out` of float64"),
        (lambda: into(np.argmax, draw(), axis=1, out=integers(2)), "`out` of another shape"),
        (lambda: into(np.max, draw(), axis=0, out=np.zeros(2)), "`out` of float64 writes random numbers"),
        (lambda: into(np.add, draw(), 1, out=integers(1, 2)), "`out` of int64 writes random numbers"),
        (lambda: into(np.floor, draw(), out=integers(1, 2)), "`out` of int64 writes random numbers"),
        (lambda: into(np.cumsum, draw()[0], out=np.zeros(2)), r"float\(\)|sum of two random numbers"),
        (lambda: np.sort(draw(), order="field"), "sorting by fields"),
        (lambda: np.searchsorted([0.5, np.nan], np.random.rand()), "one is nan"),
        (lambda: bytes(draw().data), r"`\.data` of an array reads or writes"),
        (lambda: bytes(draw()), "`.__bytes__` of an array reads"),
        (lambda: draw().tobytes(), "`.tobytes` of an array reads"),
        (lambda: draw().ctypes, "`.ctypes` of an array reads"),
        (lambda: draw().view(np.int64), "can't read a random number"),
        (lambda: memoryview(draw())[0, 0], "can't read a random number"),
        (lambda: np.frombuffer(draw()), "numpy.frombuffer reads memory"),
    ],
)
def test_what_is_not_known_is_refused_by_name(program: Callable[[], Any], message: str) -> None:
    with pytest.raises(UndecidableError, match=rf"test_numpy_outs.py:\d+ .*{message}"):
        exact_law(program)


@pytest.mark.parametrize("bins", [[0.8, 0.5, 1.0], [[0.5]]])
def test_bins_that_numpy_refuses_are_still_refused_by_numpy(bins: Any) -> None:
    def program() -> int:
        return int(np.digitize(np.random.rand(), bins))

    with pytest.raises(ValueError, match=r".") as real:
        program()
    assert exact_law(program).probabilities == {Raised(f"ValueError: {real.value}"): 1}
