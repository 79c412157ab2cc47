"""The search as a part of a run: its share of the budget, and its replay."""

from typing import Any

import pytest

from support.law_runs import Counting, audited, implementation
from tokenlaw.impl.faults import VERIFIER_FAULTS
from tokenlaw.impl.speculative import ChainVerifier
from tokenlaw.spec.verdicts import Verdict
from tokenlaw.stats.measures import COMPLETED, SUPPORT
from tokenlaw.stats.verifier_checks import SEARCHED, WIDE
from tokenlaw.stats.verifier_suite import VerifierSuite

BUDGET = 40_000


def alone(make: Any, **options: Any) -> Any:
    return audited(make, only=frozenset({SEARCHED}), budget=BUDGET, **options)[SEARCHED]


def test_what_is_not_asked_takes_no_rows() -> None:
    """Alone the search gets half of what the small checks leave; in company a thirtieth of the budget."""
    assert 14_000 < alone(ChainVerifier).operations <= BUDGET / 2
    company = audited(ChainVerifier, only=frozenset({SEARCHED, WIDE}), budget=BUDGET)
    assert company[SEARCHED].operations < 3_000
    assert company[WIDE].operations > 30_000


def test_a_fault_is_made_small_within_the_budget() -> None:
    verifier = Counting(VERIFIER_FAULTS["no_residual"].make())
    found = alone(lambda: verifier)
    assert found.verdict is Verdict.REFUTED
    assert found.message.startswith(("V = 2, K = 1", "V = 3, K = 1"))
    assert verifier.rows <= BUDGET


def test_a_replay_is_the_same_search() -> None:
    make = VERIFIER_FAULTS["no_residual"].make
    whole = audited(make, budget=BUDGET)[SEARCHED]
    found = alone(make) if whole.verdict is not Verdict.REFUTED else whole
    assert found.counterexample is not None
    (again,) = VerifierSuite().replay(implementation(make), found.counterexample)
    assert again.verdict is Verdict.REFUTED
    assert again.message.startswith(("V = 2, K = 1", "V = 3, K = 1"))


@pytest.mark.slow
def test_a_replay_has_the_part_of_alpha_that_the_search_had() -> None:
    """Alone the search has all of alpha, beside others a part: both times it ends where it ended."""
    make = VERIFIER_FAULTS["pos_shared_u"].make
    for beside in (frozenset[str](), frozenset({COMPLETED, SUPPORT})):
        found = audited(make, only=beside | {SEARCHED}, budget=BUDGET * (1 + 19 * len(beside)))[SEARCHED]
        assert found.verdict is Verdict.REFUTED
        assert found.counterexample is not None
        (again,) = VerifierSuite().replay(implementation(make), found.counterexample)
        assert again.verdict is Verdict.REFUTED
        assert found.statistics is not None
        assert again.statistics is not None
        for name in ("samples", "log_e"):
            assert again.statistics[name] == found.statistics[name]
