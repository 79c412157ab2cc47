"""What a run announces before it asks a verifier can be run again, though nothing was refuted there yet."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import pytest

from support.fakes import TARGETS
from support.law_runs import audited, implementation
from tokenlaw import runner
from tokenlaw.counterexamples import in_words
from tokenlaw.impl.speculative import ChainVerifier, TreeVerifier
from tokenlaw.protocol import Limits
from tokenlaw.spec.announcing import listening
from tokenlaw.spec.generation_contracts import TEXTBOOK, TreeBatch, VerifyBatch
from tokenlaw.spec.suites import Settings
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.stats.law_book import SEARCH_NAME, WHOLE_RUN
from tokenlaw.stats.measures import COMPLETED
from tokenlaw.stats.places import Place
from tokenlaw.stats.probing_cases import PROBE_NAME
from tokenlaw.stats.tree_trial import TREE_NAMES
from tokenlaw.stats.verifier_checks import PROBED, PROTOCOL, PROVED, REPLAY, SEARCHED, TREES, WIDE
from tokenlaw.stats.verifier_suite import VerifierSuite

BUDGET = 12_000


class EndOfProcess(BaseException):
    """Nothing stops it, as nothing stops the end of a process."""


def announced(make: Callable[[], Any]) -> list[dict[str, Any]]:
    """Places of a run, in order; ends where the verifier does."""
    heard: list[dict[str, Any]] = []
    with listening(heard.append), contextlib.suppress(EndOfProcess):
        audited(make, budget=BUDGET)
    return heard


def replayed(make: Callable[[], Any], place: dict[str, Any]) -> dict[str, Evidence]:
    """Evidence of the checks that were given rows."""
    rows = VerifierSuite().replay(implementation(make), place)
    return {row.check.id: row for row in rows if row.operations}


class Dying(ChainVerifier):
    """Ends the process, as a crash in compiled code does, on this vocabulary."""

    def __init__(self, vocabulary: int) -> None:
        self.vocabulary = vocabulary

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        if batch.shape[2] == self.vocabulary:
            raise EndOfProcess
        return super().verify(batch, seed=seed, uniforms=uniforms)


@pytest.mark.parametrize(
    ("vocabulary", "checks"),
    [(4, {REPLAY}), (16, {COMPLETED}), pytest.param(4101, {WIDE}, marks=pytest.mark.slow)],
)
def test_the_last_place_of_a_run_that_died_is_where_it_dies_again(vocabulary: int, checks: set[str]) -> None:
    place = announced(lambda: Dying(vocabulary))[-1]
    assert (place["check"], place["asked"]) == ("", {})
    with pytest.raises(EndOfProcess):
        VerifierSuite().replay(implementation(lambda: Dying(vocabulary)), place)
    healed = replayed(ChainVerifier, place)
    assert checks <= set(healed)
    assert {row.verdict for row in healed.values()} <= {Verdict.HOLDS, Verdict.NOT_EXERCISED}


def test_trees_and_the_search_can_be_run_again_too() -> None:
    places = {place["scenario"]: place for place in announced(TreeVerifier)}
    tree, found = places[TREE_NAMES[3]], places[SEARCH_NAME]
    assert set(replayed(TreeVerifier, tree)) >= {PROTOCOL, TREES}
    assert set(replayed(TreeVerifier, found)) >= {PROTOCOL, SEARCHED}


class Wrong(TreeVerifier):
    """Emits what is no token on this vocabulary, and in trees if the vocabulary is 0."""

    def __init__(self, vocabulary: int) -> None:
        self.vocabulary = vocabulary

    def verify(self, batch: VerifyBatch, *, seed: int, uniforms: Any = None) -> Any:
        emitted = super().verify(batch, seed=seed, uniforms=uniforms)
        return emitted + 10_000 * (batch.shape[2] == self.vocabulary)

    def verify_tree(self, batch: TreeBatch, *, seed: int) -> Any:
        return super().verify_tree(batch, seed=seed) + 10_000 * (self.vocabulary == 0)


@pytest.mark.parametrize(
    ("vocabulary", "check", "scenario"),
    [
        (4101, WIDE, "wide vocabulary"),
        (0, TREES, TREE_NAMES[0]),
        pytest.param(2, SEARCHED, SEARCH_NAME, marks=pytest.mark.slow),
    ],
)
def test_a_broken_protocol_is_run_again_alone_and_holds_once_it_is_mended(
    vocabulary: int, check: str, scenario: str
) -> None:
    found = audited(lambda: Wrong(vocabulary), seed=1, budget=6_000, only=frozenset({PROTOCOL, check}))
    place = found[PROTOCOL].counterexample
    assert place is not None
    assert place["scenario"] == scenario
    (again,) = VerifierSuite().replay(implementation(lambda: Wrong(vocabulary)), place)
    assert (again.verdict, again.message) == (Verdict.REFUTED, found[PROTOCOL].message.split("\n")[0])
    (mended,) = VerifierSuite().replay(implementation(TreeVerifier), place)
    assert mended.verdict is Verdict.HOLDS


def test_a_place_in_words_leaves_out_what_says_nothing() -> None:
    place = announced(ChainVerifier)[-1]
    assert in_words(place).startswith(f"part of a run: scenario {SEARCH_NAME}, requests ")
    assert "check" not in in_words(place)
    assert "asked" not in in_words(place)


def place_of(check: str, scenario: str, requests: int) -> dict[str, Any]:
    return Place.under(Settings(), scenario, requests, 0, TEXTBOOK, check=check, looks=1).to_data()


@pytest.mark.slow
def test_a_slow_verifier_is_replayed_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """In more time than may pass between two signs of life: it was taken for a hang before."""
    monkeypatch.setenv("PYTHONPATH", str(TARGETS))
    started, quiet = time.monotonic(), 1.5
    place = place_of(WIDE, "wide vocabulary", 60_000)
    report = runner.replay(place, "fake_verifiers:Slow", limits=Limits(quiet=quiet))
    assert [(row.check.id, row.verdict) for row in report.evidence] == [(WIDE, Verdict.HOLDS)]
    assert time.monotonic() - started > quiet


@pytest.mark.parametrize(
    ("check", "scenario", "requests"),
    [
        (PROBED, PROBE_NAME, 24_000),
        (PROVED, "proof: one of 3 tokens drafted", 600),
        (COMPLETED, WHOLE_RUN, 6_000),
    ],
)
def test_every_kind_of_replay_gives_signs_of_life(check: str, scenario: str, requests: int) -> None:
    heard: list[tuple[str, int, int]] = []
    VerifierSuite().replay(
        implementation(ChainVerifier),
        place_of(check, scenario, requests),
        progress=lambda *event: heard.append(event),
    )
    assert len(heard) > 3
    assert all(done <= total for _, done, total in heard)
