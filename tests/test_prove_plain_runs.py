"""Plain runs beside a proof: what a wrong law looks like from outside, and what is left as it was."""

import os
import random
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from support.program_proofs import proof
from support.sampled_programs import bonus_step, chain_step, target_law
from tokenlaw.prove_enumeration import Bounds, Named
from tokenlaw.prove_plain_runs import MOST_RUNS, plain_runs
from tokenlaw.prove_programs import prove_program
from tokenlaw.spec.suites import ignore
from tokenlaw.spec.verdicts import Verdict


def always(value: Any) -> Callable[[], Any]:
    return lambda: value


@pytest.fixture(autouse=True)
def _few_plain_runs() -> None:
    """As many as users get."""


class Held(NamedTuple):
    """A function in a place where nobody looks for it."""

    draw: Callable[[], float]


def warming_up() -> Callable[[], int]:
    calls = [0]

    def program() -> int:
        calls[0] += 1
        drawn = random.choice(range(4))
        return drawn if calls[0] > 6 else 0

    return program


def with_history() -> Callable[[], int]:
    history: list[int] = []

    def program() -> int:
        history.append(0)
        return random.randrange(2) if len(history) > 9 else 0 * random.randrange(2)

    return program


def alternating() -> Callable[[], list[int]]:
    calls = [0]

    def program() -> list[int]:
        calls[0] += 1
        return [random.choice([0, 1]), calls[0] // 2 % 2]

    return program


def from_a_tuple() -> Callable[[], int]:
    held = Held(random.Random(7).random)
    return lambda: int(held.draw() < 0.5)


def from_an_iterator() -> Callable[[], int]:
    numbers = iter(random.Random(7).random, None)
    return lambda: int(next(numbers) < 0.5)


def of_the_system() -> Callable[[], bool]:
    return lambda: os.urandom(1)[0] < 128


def of_the_clock() -> Callable[[], int]:
    return lambda: time.time_ns() // 1000 % 2


def of_the_kind() -> Callable[[], int]:
    """Python's own floats are answered otherwise."""

    def program() -> int:
        drawn = random.random()
        return int(drawn < 0.3) if type(drawn) is float else 7

    return program


@pytest.mark.parametrize(
    ("make", "spec"),
    [
        (warming_up, always(0)),
        (with_history, always(0)),
        (alternating, lambda: [random.choice([0, 1]), 0]),
        (from_a_tuple, always(1)),
        (from_an_iterator, always(1)),
        (of_the_system, always(True)),
        (of_the_clock, always(0)),
        (of_the_kind, always(7)),
    ],
)
@pytest.mark.parametrize("compared", [True, False])
def test_hidden_state_and_numbers_that_nobody_sees_are_never_proved(
    make: Callable[[], Any], spec: Callable[[], Any], compared: bool
) -> None:
    """A program that answers evenly is missed with a probability of 2^-50 at most."""
    found = proof(make(), spec if compared else None)
    assert found.verdict is Verdict.UNKNOWN, found.message
    assert "keeps state" in found.message


def test_what_cannot_happen_but_does_is_shown_with_its_numbers() -> None:
    found = proof(of_the_kind(), always(7))
    assert (
        "not decided: program has the law of spec: a plain run of program gave 0, which the" in found.message
    )
    assert "answers differently when numbers are undecided\n\n outcome (3 of 3)   plain runs" in found.message
    assert found.statistics is not None
    assert found.statistics["plain_runs_impossible"] == found.statistics["plain_runs"] == MOST_RUNS
    assert (found.statistics["tv_at_least"], found.statistics["tv_at_most"]) == (0, 1)


def test_a_refutation_by_a_law_that_is_not_the_programs_is_none() -> None:
    assert proof(of_the_kind(), always(1)).verdict is Verdict.UNKNOWN


def test_a_wrong_law_of_a_spec_that_is_a_program_counts_as_well() -> None:
    found = proof(always(7), of_the_kind())
    assert found.verdict is Verdict.UNKNOWN
    assert "a plain run of spec gave" in found.message


def seeded_in_part() -> list[int]:
    """Each draw is even over seeds; the first is always the same one in fact, which 50 runs show."""
    return [random.Random(7).randrange(8), random.randrange(2)]


def test_frequencies_that_differ_leave_it_open() -> None:
    found = proof(seeded_in_part, lambda: [random.randrange(8), random.randrange(2)])
    assert found.verdict is Verdict.UNKNOWN
    assert "plain runs of program don't have the frequencies of the enumerated law" in found.message
    assert "expected by the law" in found.message
    assert proof(seeded_in_part, None).verdict is Verdict.UNKNOWN


def test_frequencies_that_differ_do_not_undo_a_refutation_but_are_told() -> None:
    found = proof(seeded_in_part, lambda: [0, 0])
    assert found.verdict is Verdict.REFUTED
    assert "don't have the frequencies" in found.message


def test_a_fixed_seed_is_told() -> None:
    """The law over seeds is right; plain runs that all end alike, with a chance below 1e-9, give it away."""

    def seeded() -> Any:
        random.seed(7)
        return chain_step()

    found = proof(seeded, target_law)
    assert found.verdict is Verdict.HOLDS
    assert "plain runs of program all had the same outcome" in found.message
    assert found.statistics is not None
    assert found.statistics["plain_runs_alike"] > 2


def test_state_that_ends_in_one_outcome_is_no_fixed_seed() -> None:
    """All plain runs are alike; a path of another outcome is run again under the enumeration."""
    calls = [0]

    def program() -> int:
        calls[0] += 1
        drawn = random.randrange(8)
        return drawn if calls[0] < 12 else 0

    found = proof(program, lambda: random.randrange(8))
    assert found.verdict is Verdict.UNKNOWN
    assert "the same choices led to 1 and then to 0" in found.message


def test_plain_runs_that_agree_are_told() -> None:
    for found in (proof(chain_step, target_law), proof(chain_step, None)):
        assert "plain runs of program agree with its law (chi-square and binomial tests" in found.message
        assert found.statistics is not None
        assert found.statistics["plain_runs"] >= 50
    coin = proof(lambda: random.randrange(2), None)
    assert coin.statistics is not None
    assert coin.statistics["plain_runs_visible_tv"] == pytest.approx(0.106, abs=0.001)
    one = proof(always([0]), lambda tokens: [1.0])
    assert one.message.endswith("2,000 plain runs of program agree with its law")
    assert "plain runs" not in proof(bonus_step, target_law).message


@pytest.mark.parametrize("seeded", [False, True])
def test_generators_are_left_where_they_were(seeded: bool) -> None:
    own, of_numpy, of_torch = random.Random(1), np.random.default_rng(1), torch.Generator()

    def program() -> int:
        if seeded:
            random.seed(1), np.random.seed(1), torch.manual_seed(1)
        of_all = (
            own.randrange(2) + int(of_numpy.integers(2)) + int(torch.randint(2, (1,), generator=of_torch))
        )
        return of_all + random.randrange(2) + int(np.random.randint(2)) + int(torch.randint(2, (1,)))

    def states() -> list[Any]:
        of_global = [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()]
        return [*of_global, own.getstate(), of_numpy.bit_generator.state, of_torch.get_state().tolist()]

    before = states()
    assert len(plain_runs(program, 0.0, lambda done, planned: True).every) > 1
    assert states() == before


def test_slow_programs_are_run_less_often_and_a_stop_ends_it() -> None:
    def slow() -> int:
        time.sleep(0.1)
        return 0

    started = time.perf_counter()
    found = plain_runs(slow, 0.0, lambda done, planned: True)
    assert 3 <= found.every[0] <= 10
    assert time.perf_counter() - started < 10
    cut = plain_runs(always(0), 0.0, lambda done, planned: planned < 10 or done < 100)
    assert (cut.counts[0], cut.cut) == (100, True)
    stopped = prove_program(Named(always(0), "p"), None, Bounds(stopped=lambda: True), ignore)
    assert "plain runs" not in stopped.message
