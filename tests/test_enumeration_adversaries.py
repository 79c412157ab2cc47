"""Programs that would get a wrong law in silence, or leave something behind, written on purpose."""

import copy
import importlib
import math
import multiprocessing
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokenlaw.stats.enumeration.errors import EnumerationError, UndecidableError
from tokenlaw.stats.enumeration.exact_law import exact_law

GENERATOR = np.random.default_rng(5)


def unbound(*_: Any) -> Any:
    raise RuntimeError("nothing is bound")


Unbound = type("Unbound", (), {"__class__": property(unbound), "__getattr__": unbound})
"""Stands for something that isn't there yet, as proxies of web frameworks do."""


class Plain:
    """Has no equality of its own."""


PROXY = Unbound()


def one_each(*generators: Any) -> list[bool]:
    return [bool(generator.random() < 0.5) for generator in generators]


def legacy(*seeds: Any) -> list[bool]:
    return [bool(np.random.RandomState(seed).rand() < 0.5) for seed in seeds]


def seeded(*seeds: Any) -> list[bool]:
    return one_each(*(np.random.default_rng(seed) for seed in seeds))


REPEATED: dict[str, Callable[[], Any]] = {
    "integers of two kinds": lambda: seeded(0, np.int64(0)),
    "a list and an array": lambda: seeded([1, 2], np.array([1, 2])),
    "a sequence of seeds": lambda: seeded(3, np.random.SeedSequence(3)),
    "a bit generator": lambda: seeded(3, np.random.PCG64(3)),
    "two equal bit generators": lambda: one_each(
        *(np.random.Generator(np.random.PCG64(3)) for _ in range(2))
    ),
    "a legacy state": lambda: legacy(4, np.int64(4)),
    "a copied generator": lambda: one_each(GENERATOR, copy.deepcopy(GENERATOR)),
    "a copied state": lambda: one_each(*[copy.copy(np.random.RandomState(1))] * 2),
    "equal numbers": lambda: one_each(random.Random(1), random.Random(True)),
}


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_random_numbers_are_refused(name: str) -> None:
    with pytest.raises(UndecidableError, match="repeat"):
        exact_law(REPEATED[name])


def test_different_seeds_are_independent() -> None:
    law = exact_law(lambda: [*seeded(1, 2, [1, 2]), *legacy(1, 2), *one_each(random.Random(1))])
    assert set(map(float, law.probabilities.values())) == {2.0**-6}


def in_a_thread(function: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function).result()


def unseen_thread() -> list[bool]:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.extend(seeded(1)))
    thread.start()
    thread.join()
    return found


def toss() -> bool:
    return random.random() < 0.5


def in_a_process() -> Any:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as processes:
        return processes.submit(toss).result()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "program", [lambda: in_a_thread(lambda: seeded(1)), lambda: in_a_thread(lambda: legacy(1)), unseen_thread]
)
def test_generators_made_in_another_thread(
    program: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread ends without a traceback, which would be ours: of this exception threads print none."""
    ended: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", ended.append)
    with pytest.raises(UndecidableError, match="another thread"):
        exact_law(program)
    assert {one.exc_type for one in ended} <= {SystemExit}


@pytest.mark.filterwarnings("ignore")
def test_another_process() -> None:
    with pytest.raises(UndecidableError, match="another process"):
        exact_law(in_a_process)


@pytest.mark.parametrize("outcome", [Plain(), (_ for _ in ())])
def test_outcomes_that_equal_only_themselves(outcome: object) -> None:
    with pytest.raises(EnumerationError, match="can't be compared"):
        exact_law(lambda: [toss(), outcome])


def test_no_outcome_is_one() -> None:
    assert exact_law(lambda: None).probabilities == {None: 1}
    assert exact_law(lambda: 3 if toss() else None).probabilities == {3: 0.5, None: 0.5}


def test_outcomes_that_are_equal() -> None:
    keys = exact_law(lambda: dict.fromkeys(random.sample("ab", 2)))
    assert len(keys.probabilities) == 1
    assert len(exact_law(lambda: [math.inf - math.inf if toss() else math.nan]).probabilities) == 1


@pytest.mark.parametrize("cast", [lambda noise: noise.astype(np.float16), lambda noise: noise[0].astype("e")])
def test_casts_that_round(cast: Callable[[Any], Any]) -> None:
    with pytest.raises(UndecidableError, match="a cast to float16"):
        exact_law(lambda: bool(np.all(cast(np.random.rand(2)) < 0.3)))


HALF = np.float64(0.5)
WITH_NUMBERS_OF_NUMPY: dict[str, tuple[Callable[[], Any], float]] = {
    "difference": (lambda: HALF - random.random() > 0, 0.5),
    "product": (lambda: HALF * np.random.rand() < 0.1, 0.2),
    "quotient": (lambda: HALF / random.random() > 2, 0.25),
    "sum": (lambda: np.float32(2) + np.random.rand(2)[0] < 2.25, 0.25),
    "power": (lambda: HALF ** random.random() < HALF**HALF, 0.5),
    "integer": (lambda: np.int64(3) * random.random() < 1, 1 / 3),
    "range": (lambda: np.random.uniform(0, HALF) < 0.1, 0.2),
}


@pytest.mark.parametrize("name", WITH_NUMBERS_OF_NUMPY)
def test_numbers_of_numpy_come_first(name: str) -> None:
    program, known = WITH_NUMBERS_OF_NUMPY[name]
    assert float(exact_law(program).probabilities[True]) == pytest.approx(known, abs=1e-12)


def test_weighted_order_by_powers() -> None:
    """u ** (1 / w), where one weight is one, draws without replacement by the weights."""
    weights = [1, 2, 3]
    law = exact_law(lambda: sorted(range(3), key=lambda item: -(random.random() ** (1 / weights[item]))))
    for first, second, _ in law.probabilities:
        known = weights[first] / 6 * weights[second] / (6 - weights[first])
        assert law.probabilities[first, second, 3 - first - second] == pytest.approx(known, abs=1e-12)


def test_objects_that_cant_be_looked_into() -> None:
    law = exact_law(lambda: PROXY is None or toss())
    assert law.probabilities == {True: 0.5, False: 0.5}


def test_a_failed_beginning_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    before = random.random, math.log, np.random.rand
    with monkeypatch.context() as patched:
        patched.setattr("tokenlaw.stats.enumeration.sources.python_random._substitute", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            exact_law(toss)
    assert (random.random, math.log, np.random.rand) == before


def test_modules_that_are_imported_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "imported_while_a_law_is_enumerated"
    (tmp_path / f"{name}.py").write_text(
        "from math import log\nfrom random import choice, random\n"
        "from numpy.random import default_rng, rand\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    law = exact_law(lambda: importlib.import_module(name).random() < 0.25)
    module = sys.modules.pop(name)
    assert law.probabilities[True] == 0.25
    assert (module.log, module.choice, module.random) == (math.log, random.choice, random.random)
    assert (module.default_rng, module.rand) == (np.random.default_rng, np.random.rand)
