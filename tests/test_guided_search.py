"""The part of the search that hypothesis leads."""

import math
from random import Random
from typing import Any

import pytest

from tokenlaw.impl.faults import VERIFIER_FAULTS
from tokenlaw.impl.speculative import ChainVerifier
from tokenlaw.spec.generation_contracts import TEXTBOOK
from tokenlaw.stats.guarded import CrashError, Guarded
from tokenlaw.stats.guided_search import climb
from tokenlaw.stats.search import SearchResult, search

NEEDED = 23.5


def guided(verifier: Any, seed: int, examples: int = 30) -> SearchResult:
    return search(
        verifier,
        claims=TEXTBOOK,
        seed=seed,
        examples=1,
        guided=examples,
        rows=1_500,
        device="cpu",
        alive=lambda: None,
        needed=NEEDED,
        own_drafter=False,
    )


def test_an_exact_verifier_stands() -> None:
    """False alarm: exp(-23.5) = 6e-11 a search, by Markov's inequality."""
    for seed in range(2):
        result = guided(ChainVerifier(), seed, examples=15)
        assert result.log_e < NEEDED
        assert result.examples <= 16


@pytest.mark.parametrize("fault", ["no_residual", "reuse_u", "bonus_draft"])
def test_faults_are_found(fault: str) -> None:
    """Seeded; each was found with nine of ten seeds or more."""
    result = guided(VERIFIER_FAULTS[fault].make(), seed=1)
    assert result.log_e >= NEEDED
    assert "times" in result.finding


def test_the_same_seed_gives_the_same_choices() -> None:
    def chosen() -> list[float]:
        seen: list[float] = []

        def ask(choices: Random) -> float:
            seen.append(choices.random())
            return 0.0

        climb(ask, 20, seed=3)
        return seen

    first = chosen()
    assert first == chosen()
    assert len(set(first)) > 5


def test_it_climbs() -> None:
    """Sums of ten dice from 0 to 9: chance alone reaches 75 in 0.09 of 400 examples."""
    best = 0.0

    def ask(choices: Random) -> float:
        nonlocal best
        size = float(sum(choices.randint(0, 9) for _ in range(10)))
        best = max(best, size)
        return size

    climb(ask, 400, seed=1)
    assert best >= 75


def test_it_ends_early_and_passes_exceptions_on() -> None:
    sizes: list[float | None] = [1.0, 2.0, None, 3.0]
    climb(lambda choices: sizes.pop(0) if choices.random() >= 0 else None, 10, seed=0)
    assert sizes == [3.0]

    class Raises:
        claims = TEXTBOOK

        def verify(self, batch: Any, *, seed: int) -> Any:
            raise RuntimeError("broken")

    def ask(_: Random) -> float:
        Guarded(Raises()).verify(type("Batch", (), {"num_draft_tokens": []}), seed=0)
        return math.inf

    with pytest.raises(CrashError, match="broken"):
        climb(ask, 3, seed=0)
