"""Refuted laws as data to be drawn: what was counted, what it should be, and exact intervals."""

from typing import Any

import pytest
from scipy import stats

from support.law_runs import FirstToken, small_scenario
from tokenlaw.stats.measures import COMPLETED, LENGTH
from tokenlaw.stats.row_kinds import plain
from tokenlaw.stats.shown_laws import CONFIDENCE, MOST_IMPOSSIBLE, MOST_OUTCOMES, shown_gate
from tokenlaw.stats.trial import Trial


@pytest.fixture(scope="module")
def trial() -> Trial:
    """Rows of which each begins with token 0, whatever its law."""
    found = Trial(FirstToken(1.0), small_scenario((plain,)), claims="textbook", seed=0, device="cpu")
    found.run_stage(2_000.0, 1_000, lambda: None)
    return found


def outcomes(shown: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["outcome"]: one for one in shown["outcomes"]}


def test_all_outcomes_together_are_both_laws(trial: Trial) -> None:
    for check in (COMPLETED, LENGTH):
        shown = shown_gate(trial, check)
        for law in ("exact", "found"):
            whole = sum(one[law] for one in shown["outcomes"]) + shown["others"][law]
            assert whole == pytest.approx(1, abs=1e-9)
        counted = sum(one["count"] for one in shown["outcomes"])
        assert counted + shown["others"]["found"] * shown["counted"] == pytest.approx(shown["counted"])


def test_what_adds_most_to_the_total_variation_comes_first(trial: Trial) -> None:
    shown = shown_gate(trial, COMPLETED)["outcomes"]
    apart = [abs(one["found"] - one["exact"]) for one in shown]
    assert apart == sorted(apart, reverse=True)
    assert len(shown) <= MOST_OUTCOMES
    assert sum(not one["exact"] for one in shown) <= MOST_IMPOSSIBLE


def test_the_law_names_its_rows_and_its_samples(trial: Trial) -> None:
    """Half of the rows are of the kind; honest shares are out of these bounds with probability below 1e-40.

    Power: rows of the other kind that are counted as well, or half of the kind that isn't, are always
    out of them (1 - 1e-6).
    """
    shown = shown_gate(trial, COMPLETED)
    assert shown["what"] == "completed law"
    assert shown["where"].startswith("rows of kind 'plain")
    assert shown["where"].endswith("of scenario 'small'")
    kinds = len(trial.scenario.kinds)
    assert 0.7 < shown["counted"] * kinds / trial.samples < 1.3


def test_intervals_are_those_of_clopper_and_pearson(trial: Trial) -> None:
    shown = shown_gate(trial, COMPLETED)
    for one in shown["outcomes"]:
        test = stats.binomtest(one["count"], shown["counted"])
        expected = test.proportion_ci(confidence_level=CONFIDENCE, method="exact")
        assert (one["low"], one["high"]) == pytest.approx((expected.low, expected.high), abs=1e-9)
        assert one["found"] == one["count"] / shown["counted"]


def test_the_fault_is_visible(trial: Trial) -> None:
    """Of 2,000 rows none begins with a token whose probability is 0.84: nothing is left to chance.

    Of 900 rows or more, none among them, the interval ends below 0.01; without a fault such a token would be
    missed by all of them with probability 1e-700.
    """
    missing = [one for name, one in outcomes(shown_gate(trial, COMPLETED)).items() if "[0" not in name]
    assert missing
    assert all(one["count"] == 0 and one["high"] < one["exact"] for one in missing[:1])
