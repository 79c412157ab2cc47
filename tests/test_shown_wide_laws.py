"""Refuted laws of wide vocabularies, prefixes and probes as data to be drawn: numbers, names, the page."""

from typing import Any

import msgspec
import pytest

from support.html_pages import Page
from support.law_runs import audited
from support.pages import page_of
from support.probed_verifiers import probed
from tokenlaw.html_data import ShownLaw
from tokenlaw.html_laws import figure
from tokenlaw.impl.faults import VERIFIER_FAULTS
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.spec.generation_contracts import BLOCK, EXACT, TEXTBOOK
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.stats.row_kinds import many_drafts, wide
from tokenlaw.stats.scenarios import make_scenario
from tokenlaw.stats.shown_wide_laws import MOST_CELLS, shown_prefixes, shown_wide
from tokenlaw.stats.verifier_checks import PREFIXES, PROBED, WIDE
from tokenlaw.stats.wide_trial import BANDS, FIRST_TOKEN, LAST_TOKEN, TAILS, WideTrial

OPTIONS: dict[str, Any] = {"drafts": 2, "share": 1.0, "seed": 0, "ragged": False, "wide": True}
LARGE = make_scenario("large", (wide,), vocabulary=512, **OPTIONS)
MANY = make_scenario("many", (many_drafts,), vocabulary=32, **OPTIONS)


def trial_of(scenario: Any) -> WideTrial:
    trial = WideTrial(ChainVerifier(), scenario, claims=TEXTBOOK, seed=1, device="cpu")
    trial.run(4_000.0, 1_000, lambda: None)
    return trial


@pytest.fixture(scope="module")
def trial() -> WideTrial:
    return trial_of(LARGE)


def assert_whole(shown: dict[str, Any]) -> None:
    """Few outcomes, which make both laws with the rest."""
    assert 0 < len(shown["outcomes"]) <= MOST_CELLS
    for law in ("exact", "found"):
        whole = sum(one[law] for one in shown["outcomes"]) + shown["others"][law]
        assert whole == pytest.approx(1, abs=1e-9)


def laws_of(row: Evidence) -> list[dict[str, Any]]:
    assert row.statistics is not None
    return list(row.statistics.get("laws_shown", ()))


def test_a_wide_law_that_is_refuted_is_drawn() -> None:
    """`fp16_cumsum`: tokens of some residual are drawn several times as often as they should be.

    Ten of them came 59 to 78 times in 199,000 rows, where 7 to 12 were expected: no interval of 99.9 percent
    around so many holds 12.
    """
    row = audited(VERIFIER_FAULTS["fp16_cumsum"].make, only=frozenset({WIDE}), budget=200_000)[WIDE]
    assert row.verdict is Verdict.REFUTED
    (shown,) = laws_of(row)
    assert shown["what"] == "law of the last token by accepted drafts"
    assert shown["where"] == "rows of scenario 'wide vocabulary'"
    assert_whole(shown)
    bars = figure(msgspec.convert(shown, ShownLaw)).bars
    assert {bar.verdict for bar in bars} <= {"too often", "impossible"}
    assert all(bar.outcome.startswith("0 drafts accepted, then token ") for bar in bars)
    words = Page(page_of(row)).words()
    assert "Law of the last token by accepted drafts: exact and found" in words
    assert f"{shown['counted']:,} samples; lines are 99.9% intervals (exact binomial)" in words


def test_what_holds_has_nothing_to_be_drawn() -> None:
    asked = frozenset({WIDE, PREFIXES, PROBED})
    rows = audited(ChainVerifier, only=asked, budget=60_000)
    assert {row.verdict for row in rows.values()} == {Verdict.HOLDS}
    assert not any(laws_of(row) for row in rows.values())


@pytest.mark.parametrize(
    ("what", "law", "name"),
    [
        (FIRST_TOKEN, "law of the first token", "first token "),
        (BANDS, "law of the first token by bands of probability", "one of "),
        (TAILS, "law of the first token by bands of probability", "one of "),
        (LAST_TOKEN, "law of the last token by accepted drafts", ""),
    ],
)
def test_each_way_of_counting_names_its_outcomes(trial: WideTrial, what: str, law: str, name: str) -> None:
    shown = shown_wide(trial, {what: 1.0, "another": 0.0})
    assert shown["what"] == law
    assert all(one["outcome"].startswith(name) for one in shown["outcomes"])
    assert_whole(shown)
    assert len({one["outcome"] for one in shown["outcomes"]}) == len(shown["outcomes"])


def test_bands_say_how_many_tokens_they_have(trial: WideTrial) -> None:
    """No token is twice as probable as another of its band."""
    for one in shown_wide(trial, {BANDS: 1.0})["outcomes"]:
        words = one["outcome"].split()
        size, least, most = int(words[2]), float(words[-3]), float(words[-1])
        assert 0.99 * size * least <= one["exact"] <= 1.01 * size * most


def test_a_class_of_prefixes_is_drawn_with_the_names_of_its_finding() -> None:
    prefixes = trial_of(MANY).prefixes
    shown = shown_prefixes(prefixes, "many")
    assert_whole(shown)
    place, worst, *_ = prefixes.finding().split("\n")
    where = shown["where"].removeprefix("scenario 'many', tokens ")
    assert place.startswith(f"  {where}, ")
    assert worst.split(":")[0].strip() in {one["outcome"] for one in shown["outcomes"]}


def test_thresholds_that_are_off_are_drawn_as_laws_of_two_outcomes() -> None:
    """Each ratio is 1.003 times what it should be; nothing is left to chance."""
    row = audited(VERIFIER_FAULTS["ratio_x1.003"].make, only=frozenset({PROBED}))[PROBED]
    *decisions, composed = laws_of(row)
    assert len(decisions) == 3
    for shown in decisions:
        accepted, rejected = shown["outcomes"]
        assert (accepted["outcome"], rejected["outcome"]) == ("accepted", "rejected")
        assert accepted["found"] == pytest.approx(1.003 * accepted["exact"], rel=1e-9)
        assert_whole(shown)
    assert composed["what"] == "law of a row with these drafts"
    assert_whole(composed)
    words = Page(page_of(row)).words()
    assert "Law of acceptance: exact and found" in words
    assert "No sampling: numbers were given" in words
    assert "every path" not in words


@pytest.mark.parametrize(
    ("fault", "claims", "law", "outcome"),
    [
        ("bonus_draft", TEXTBOOK, "law of two tokens beside each other", "token "),
        ("bonus_draft", EXACT, "completed law", "completed to ["),
        ("ratio_x1.003", BLOCK, "law of passing with a prefix of drafts", "the prefix passes"),
    ],
)
def test_what_a_probe_draws_follows_from_the_claim(fault: str, claims: str, law: str, outcome: str) -> None:
    verifier = VERIFIER_FAULTS[fault].make()
    verifier.claims = claims
    found, _ = probed(verifier)
    assert found.findings
    assert found.shown[0]["what"] == law
    assert found.shown[0]["outcomes"][0]["outcome"].startswith(outcome)
    for shown in found.shown:
        assert_whole(shown)
    assert max(abs(one["found"] - one["exact"]) for one in found.shown[0]["outcomes"]) > 1e-3
