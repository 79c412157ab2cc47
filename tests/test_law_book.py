"""Ledger and outcomes of a run: shares, verdicts, and what each of them says about its power."""

import math
from collections import Counter
from typing import Any

import pytest

from tokenlaw.spec.suites import Settings
from tokenlaw.spec.verdicts import Evidence, Verdict
from tokenlaw.stats.law_book import GATES, SEARCH_NAME, LawBook, shown_once
from tokenlaw.stats.law_outcome import LARGEST_LOG, LawOutcome, finite
from tokenlaw.stats.ledger import Kind
from tokenlaw.stats.measures import COMPLETED, DRAFTS, JOINT, SUPPORT
from tokenlaw.stats.places import Place
from tokenlaw.stats.scenarios import scenarios
from tokenlaw.stats.tree_trial import TREE_NAMES
from tokenlaw.stats.verifier_checks import (
    BY_ID,
    CHI_SQUARE,
    CLAIMED_BY,
    PREFIXES,
    PROTOCOL,
    TOGETHER,
    TREES,
    VERIFIER_CHECKS,
    WEIGHTS,
    WIDE,
)

SCENARIOS = scenarios(0, own_drafter=True, seeded=True)
PLACE = Place("mixed rows", 1000, 3, "textbook", looks=2)
ALL = frozenset(BY_ID)


def book(asked: frozenset[str] = ALL, watched: frozenset[str] = frozenset(), **settings: Any) -> LawBook:
    return LawBook(asked, SCENARIOS, Settings(**settings), watched)


def row(found: LawBook, check: str) -> Evidence:
    (evidence,) = [one for one in found.evidence() if one.check.id == check]
    return evidence


@pytest.mark.parametrize("asked", [ALL, frozenset({JOINT}), frozenset({COMPLETED, SUPPORT, WIDE})])
def test_the_parts_of_alpha_sum_to_alpha(asked: frozenset[str]) -> None:
    found = book(asked, alpha=1e-6)
    assert sum(found.alpha(check) for check in asked & set(WEIGHTS)) == pytest.approx(1e-6)
    parts = [part for one in found.evidence() if one.statistics for part in one.statistics.get("ledger", [])]
    assert sum(part["share"] for part in parts) == pytest.approx(1)
    for check in asked & GATES:
        assert sum(found.share(check, name) for name in names()) == pytest.approx(1)


def names() -> list[str]:
    return [*(scenario.name for scenario in SCENARIOS), *TREE_NAMES, SEARCH_NAME]


def test_every_check_is_claimed_and_numbered() -> None:
    assert set(CLAIMED_BY) == set(BY_ID) == {check.id for check in VERIFIER_CHECKS}
    assert len({check.rule for check in VERIFIER_CHECKS}) == len(VERIFIER_CHECKS)
    assert set(WEIGHTS) <= set(BY_ID)
    assert set(WEIGHTS) >= GATES


def test_a_check_is_asked_of_the_scenarios_that_it_is_about() -> None:
    found = book()
    assert found.share(WIDE, "wide vocabulary") == 1
    assert found.share(PREFIXES, "wide vocabulary") == found.share(PREFIXES, "many drafts") == 0.5
    assert found.share(WIDE, "many drafts") == found.share(JOINT, "many drafts") == 0
    assert found.share(JOINT, "wide vocabulary") == 0
    assert found.share(DRAFTS, "own drafts") == 1
    assert found.share(DRAFTS, "mixed rows") == 0
    assert found.share(TREES, TREE_NAMES[0]) == pytest.approx(1 / len(TREE_NAMES))


def test_evidence_is_the_average_over_scenarios() -> None:
    found = book()
    share, needed = found.share(JOINT, "mixed rows"), found.needed(JOINT)
    found.record(JOINT, "mixed rows", needed - math.log(share) - 0.1)
    assert not found.decided("mixed rows")
    assert str(row(found, JOINT).verdict) != "refuted"
    found.record(JOINT, "mixed rows", needed - math.log(share) + 0.1)
    assert found.decided("mixed rows")
    assert not found.decided("filters")
    assert str(row(found, JOINT).verdict) == "refuted"


def test_what_earlier_runs_showed_counts_along() -> None:
    found = book(continued={JOINT: {"log_e": 10.0}, COMPLETED: {"log_e": -3.0}})
    assert found.missing(JOINT) == pytest.approx(found.needed(JOINT) - 10)
    assert found.missing(COMPLETED) == pytest.approx(found.needed(COMPLETED) + 3)
    share = found.share(JOINT, "filters")
    found.record(JOINT, "filters", found.missing(JOINT) - math.log(share))
    assert found.decided("filters")
    statistics = row(found, JOINT).statistics
    assert statistics is not None
    assert statistics["log_e"] >= found.needed(JOINT)


def test_p_values_are_corrected_for_their_number_and_recorded_once() -> None:
    found = book(frozenset({SUPPORT, JOINT}))
    alpha = found.alpha(SUPPORT)
    for _ in range(9):
        found.tested(SUPPORT, 1.0, lambda: "never", PLACE)
    found.tested(SUPPORT, alpha / 5, lambda: "small", PLACE)
    assert str(row(found, SUPPORT).verdict) != "refuted"
    found = book(frozenset({SUPPORT, JOINT}))
    for _ in range(9):
        found.tested(SUPPORT, 1.0, lambda: "never", PLACE)
    found.tested(SUPPORT, alpha / 20, lambda: "small", PLACE)
    evidence = row(found, SUPPORT)
    assert (str(evidence.verdict), evidence.message) == ("refuted", "small")
    assert evidence.counterexample == {
        **PLACE.to_data(),
        "check": SUPPORT,
        "alpha": alpha,
        "asked": {SUPPORT: 0.0},
    }


def test_unclaimed_laws_are_watched_without_alpha_or_verdict() -> None:
    found = book(frozenset({COMPLETED}), frozenset({JOINT, PROTOCOL}))
    assert found.alpha(COMPLETED) == pytest.approx(1e-9)
    assert found.watched(JOINT) is None
    found.record(JOINT, "filters", 500.0)
    assert found.watched(JOINT) == pytest.approx(500 + math.log(found.share(JOINT, "filters")), abs=1e-6)
    assert not found.decided("filters")
    assert [one.check.id for one in found.evidence()] == [COMPLETED]


def test_a_crash_makes_unknown_what_was_asked_there() -> None:
    found = book()
    found.crash("broken", (JOINT, "law/none"))
    found.exercise({event: 1 for check in VERIFIER_CHECKS for event in check.exercised_by})
    assert {one.check.id for one in found.evidence() if str(one.verdict) == "unknown"} == {
        JOINT,
        TOGETHER,
    }
    assert row(found, JOINT).message == "broken"
    assert str(row(found, COMPLETED).verdict) == "holds"


def test_a_traceback_is_shown_once() -> None:
    trace = "Traceback (most recent call last):\n  no such kernel"
    messages = {
        COMPLETED: f"Scenario 'a': verify raised an exception.\n{trace}",
        JOINT: f"Scenario 'b': verify raised an exception.\n{trace}",
        SUPPORT: f"Scenario 'b': verify raised an exception.\n{trace} 2",
        WIDE: "Scenario 'c' was given up.",
        TREES: "Scenario 'd' was given up.",
    }
    rows = [Evidence(BY_ID[check], Verdict.UNKNOWN, message=text) for check, text in messages.items()]
    rows.append(Evidence(BY_ID[CHI_SQUARE], Verdict.REFUTED, message=messages[JOINT]))
    shown = {row.check.id: row.message for row in shown_once(rows)}
    brief = "Scenario 'b': verify raised an exception. (see law/completed)"
    assert shown == {**messages, JOINT: brief, CHI_SQUARE: messages[JOINT]}


def outcome(**changes: Any) -> Evidence:
    made = LawOutcome(BY_ID[JOINT], samples=500)
    made.exercised.update(BY_ID[JOINT].exercised_by)
    for name, value in changes.items():
        setattr(made, name, value)
    return made.evidence(None, refuted=False, alpha=1e-10)


def test_what_never_happened_is_told() -> None:
    made = LawOutcome(BY_ID[JOINT])
    made.exercised["rows"] = 5
    evidence = made.evidence(None, refuted=False, alpha=1e-10)
    assert str(evidence.verdict) == "not exercised"
    assert evidence.message == "never happened: rejections, bonus tokens, rejections at the last draft"


def test_a_verdict_carries_its_power() -> None:
    evidence = outcome(visible=[0.0412, 0.031, 1.0])
    assert str(evidence.verdict) == "holds"
    assert evidence.message == (
        "With 500 samples any law at TV >= 0.042 from the exact one, in any of 2 kinds of rows, would have "
        "been refuted with probability >= 0.999 (alpha 1e-10); in the best of them from 0.031 on. Of 1 more "
        "kinds of rows there were too few samples to promise anything."
    )
    assert evidence.statistics is not None
    assert evidence.statistics["power"] == {"tv": 0.0412, "probability": 0.999, "laws": 2}
    assert outcome().message == ""


@pytest.mark.parametrize(
    ("visible", "needed"),
    [
        (
            [2.5, 1.5],
            "about 1125 would be needed to refute any law at TV >= 1 from the exact one with probability "
            ">= 0.999: a budget 2.3 times as large.",
        ),
        ([math.inf], "more would be needed."),
    ],
)
def test_what_promises_nothing_is_no_pass(visible: list[float], needed: str) -> None:
    evidence = outcome(visible=visible)
    assert str(evidence.verdict) == "not exercised"
    assert evidence.message == f"500 samples promise to refute nothing (alpha 1e-10); {needed}"
    assert str(outcome(visible=[*visible, 0.9]).verdict) == "holds"
    unmeasured = outcome(visible=visible, unmeasured=1)
    assert str(unmeasured.verdict) == "holds"
    assert unmeasured.message.startswith("No smallest deviation is known")


def test_with_a_tolerance_only_a_lower_bound_of_what_is_needed_is_known() -> None:
    assert outcome(visible=[1.5], at_best=True).message == (
        "500 samples promise to refute nothing (alpha 1e-10); at least about 1125 would be needed to refute "
        "any law at all: a budget 2.3 times as large."
    )


def test_reports_hold_finite_numbers() -> None:
    assert (finite(math.inf), finite(-math.inf), finite(2.5)) == (LARGEST_LOG, -LARGEST_LOG, 2.5)
    found = book(frozenset({JOINT}))
    found.record(JOINT, "filters", math.inf)
    evidence = row(found, JOINT)
    assert evidence.statistics is not None
    assert evidence.statistics["log_e"] == LARGEST_LOG
    assert evidence.statistics["ledger"][0]["kind"] == Kind.GATE


def test_a_table_that_holds_says_how_far_off_it_can_be() -> None:
    outcome = LawOutcome(BY_ID[CHI_SQUARE], exercised=Counter(tables=2), samples=10, visible=[0.5])
    outcome.bounds = [(0.0, 0.021), (0.0012, 0.0304)]
    row = outcome.evidence(None, refuted=False, alpha=1e-9)
    assert "All of them are within TV 0.031 of the exact ones (confidence 1 - 1e-09)." in row.message
    assert row.statistics is not None
    assert (row.statistics["tv_at_least"], row.statistics["tv_at_most"]) == (0.0012, 0.0304)
