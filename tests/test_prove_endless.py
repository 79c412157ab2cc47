"""Programs that go on and on: how far they are followed, and what is told on the way."""

import random
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace

import pytest

from support.program_proofs import proof
from support.sampled_programs import target_only
from tokenlaw import prove_enumeration
from tokenlaw.prove_enumeration import Bounds, Named
from tokenlaw.prove_programs import prove_program
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.enumeration import choices
from tokenlaw.stats.enumeration.errors import NotRepeatableError
from tokenlaw.stats.enumeration.exact_law import exact_law, repeat_path
from tokenlaw.stats.enumeration.law import NEGLIGIBLE

HALF = Fraction(1, 2)


def test_a_rate_is_told_once_a_second_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(prove_enumeration, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def slowly() -> list[int]:
        clock[0] += 0.25
        return target_only()

    told: list[str] = []
    prove_program(Named(slowly, "slowly"), None, Bounds(), lambda what, done, total: told.append(what))
    paths = [what for what in told if what.startswith("slowly: paths ")]
    assert paths[0] == "slowly: paths 2"
    assert paths[-1] == "slowly: paths 27, 4 a second"
    assert any(what.startswith("slowly: plain runs ") for what in told)


def test_a_loop_without_end_is_proved_up_to_rounding_or_left_open_between_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choices, "MOST_CHOICES", 500)

    def endless(half: float | Fraction) -> Callable[[], int]:
        def program() -> int:
            tosses = 0
            while random.random() < half:
                tosses += 1
            return min(tosses, 2)

        return program

    def bounded(half: float | Fraction) -> Callable[[], int]:
        return lambda: next((tosses for tosses in range(2) if random.random() >= half), 2)

    found = proof(endless(0.5), bounded(0.5))
    assert found.verdict is Verdict.HOLDS
    assert "of the probability unexplored, which is less than rounding can tell)" in found.message
    exact = proof(endless(HALF), bounded(HALF))
    assert exact.verdict is Verdict.UNKNOWN
    assert "TV is between 0 and " in exact.message
    assert "what is left may have no end; allow a --tolerance" in exact.message
    assert proof(endless(HALF), bounded(HALF), tolerance=1e-12).verdict is Verdict.HOLDS


def test_a_program_without_a_finished_path_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "MOST_CHOICES", 50)

    def going_on() -> int:
        tosses = 0
        while random.random() < Fraction(2, 3):
            tosses += 1
        return tosses

    open_ = proof(going_on, going_on, max_paths=1)
    assert open_.verdict is Verdict.UNKNOWN
    assert "TV is between 0 and 1 (1 path, 1 of the probability unexplored)" in open_.message
    assert "emits no token" in proof(going_on, max_paths=1).message
    assert "1 of the probability unexplored" in proof(going_on, None, max_paths=1).message


@pytest.mark.parametrize("half", [0.5, HALF])
def test_a_loop_without_end_is_left_once_the_rest_does_not_matter(
    half: float | Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left is counted, and not a bit more is claimed."""
    monkeypatch.setattr(choices, "MOST_CHOICES", 500)

    def program() -> int:
        tosses = 0
        while random.random() < half:
            tosses += 1
        return min(tosses, 1)

    law = exact_law(program)
    assert law.paths < 1_000
    assert 0 < law.unexplored <= NEGLIGIBLE
    assert law.endless
    assert law.probabilities[1] == half - law.unexplored
    assert not law.complete


def test_a_slow_loop_is_followed_until_the_rest_does_not_matter() -> None:
    """The spare paths after coming close to all aren't enough here."""

    def program() -> int:
        tosses = 0
        while random.random() < 0.95:
            tosses += 1
        return min(tosses, 1)

    assert exact_law(program).endless


def test_a_finite_law_is_complete_however_little_its_last_paths_weigh() -> None:
    rare = Fraction(1, 10**20)
    law = exact_law(lambda: tuple(random.random() < rare for _ in range(3)))
    assert (law.paths, law.complete, law.endless) == (8, True, False)
    assert law.probabilities[(True, True, True)] == rare**3


def test_a_path_that_leads_to_something_else_by_now_is_refused() -> None:
    later = [False]

    def program() -> tuple[bool, bool]:
        return random.random() < HALF, later[0]

    law = exact_law(program)
    lines = {outcome: last[0].line(last[1]) for outcome, last in law.examples.items() if last}
    assert len(lines) == 2
    for outcome, line in lines.items():
        repeat_path(program, line, outcome)
    later[0] = True
    for outcome, line in lines.items():
        with pytest.raises(NotRepeatableError, match="keeps state"):
            repeat_path(program, line, outcome)
