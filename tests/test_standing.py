"""The strongest claim that still stands: by implication, and only what was tested."""

from typing import Any

import pytest

import tokenlaw
from tokenlaw.impl.speculative.block import BlockVerifier
from tokenlaw.impl.speculative.chain import ChainVerifier
from tokenlaw.spec.claims import COMPLETED, IMPLIES, MEANINGS, SUPPORT, TEXTBOOK_JOINT, implied, strongest
from tokenlaw.spec.generation_contracts import CLAIMS
from tokenlaw.spec.verdicts import Check, Evidence, Severity, Verdict
from tokenlaw.standing import (
    APART,
    CONTRACT,
    HELD_TO,
    SHOWS,
    SHOWS_WHAT_IS_CLAIMED,
    SPEAKS_AGAINST,
    SPEAKS_AGAINST_WHAT_IS_CLAIMED,
    sentence,
    standing,
)
from tokenlaw.stats.verifier_checks import BY_ID

HOLDS, REFUTED, UNKNOWN = Verdict.HOLDS, Verdict.REFUTED, Verdict.UNKNOWN
QUICK: dict[str, Any] = {"budget": 20_000, "only": "law/[cjps]*", "raises": False}


def rows(claims: str, **verdicts: Verdict) -> list[Evidence]:
    """Rows of these checks of laws, of a verifier with this claim."""
    return [
        Evidence(BY_ID[f"law/{name.replace('_', '-')}"], verdict, statistics={"claims": claims})
        for name, verdict in verdicts.items()
    ]


def test_every_check_and_every_claim_has_a_place() -> None:
    placed = [*SHOWS, *SHOWS_WHAT_IS_CLAIMED, *SPEAKS_AGAINST, *SPEAKS_AGAINST_WHAT_IS_CLAIMED, *APART]
    assert sorted(placed) == sorted(BY_ID)
    assert {check.contract for check in BY_ID.values()} == {CONTRACT}
    assert {*HELD_TO, "approximate"} == set(CLAIMS)


def test_claims_are_in_the_order_of_what_they_imply() -> None:
    order = list(MEANINGS)
    assert all(order.index(stronger) < order.index(weaker) for stronger, weaker in IMPLIES)
    assert implied(TEXTBOOK_JOINT) == set(MEANINGS) - {"block"}


def test_nothing_stands_untested() -> None:
    assert strongest((), ()) is None
    assert strongest({SUPPORT}, ()) == SUPPORT


@pytest.mark.parametrize(
    ("claims", "verdicts", "expected"),
    [
        ("textbook", {"joint": HOLDS, "completed": HOLDS, "support": HOLDS}, "textbook"),
        ("block", {"joint": HOLDS, "completed": HOLDS}, "block"),
        ("exact", {"completed": HOLDS, "support": HOLDS}, "completed"),
        ("textbook", {"joint": REFUTED, "completed": HOLDS, "support": HOLDS}, "completed"),
        ("textbook", {"joint": HOLDS, "completed": HOLDS, "bonus": REFUTED}, "completed"),
        ("exact", {"completed": REFUTED, "wide": HOLDS, "support": HOLDS}, "marginal"),
        ("exact", {"completed": REFUTED, "support": HOLDS}, "support"),
        # What follows from a claim refutes it; so does what couldn't be decided.
        ("textbook", {"joint": HOLDS, "completed": REFUTED, "support": HOLDS}, "support"),
        ("exact", {"completed": HOLDS, "trees": UNKNOWN, "support": HOLDS}, "support"),
        ("exact", {"completed": HOLDS, "proved": REFUTED, "protocol": HOLDS}, "protocol"),
        # What the joint law makes impossible may be a text of the target.
        ("textbook", {"joint": HOLDS, "support": REFUTED, "completed": HOLDS}, "completed"),
        ("exact", {"support": REFUTED, "completed": HOLDS}, None),
        # Not exercised, or not supported, shows nothing.
        ("textbook", {"joint": Verdict.NOT_EXERCISED, "completed": Verdict.NOT_SUPPORTED}, None),
        ("exact", {"length": HOLDS, "searched": HOLDS}, None),
        ("approximate", {"protocol": HOLDS, "replay": HOLDS}, "protocol"),
        ("approximate", {"proved": HOLDS}, None),
    ],
)
def test_the_strongest_claim_of_an_audit(
    claims: str, verdicts: dict[str, Verdict], expected: str | None
) -> None:
    assert standing(rows(claims, **verdicts)) == expected


def test_other_contracts_and_other_questions_say_nothing() -> None:
    other = Check("kv/content", "K1", "Reads back.", "block-manager", Severity.WRONG_CONTENT)
    assert sentence([Evidence(other, HOLDS)]) == ""
    assert sentence(rows("exact", replay=REFUTED)) == ""
    assert sentence(rows("exact", completed=REFUTED)) == "strongest claim still standing: none"


def test_a_verifier_that_keeps_its_claim() -> None:
    """Exact, so refuted with probability 1e-9 at most."""
    report = tokenlaw.check_verifier(ChainVerifier(), **QUICK)
    assert report.to_data()["strongest_claim"] == TEXTBOOK_JOINT
    assert report.standing().startswith("strongest claim still standing: textbook (accepted length")


@pytest.mark.slow
def test_a_verifier_that_is_exact_in_another_way() -> None:
    """Block verification as chain rejection: another joint law, but the law of the target.

    Exact, so refuted as such with probability 1e-9 at most; its joint law is too far off to be missed.
    """
    options: dict[str, Any] = {"claims": "textbook", "budget": 60_000, "only": "law/[cj]*"}
    with pytest.raises(
        tokenlaw.Refuted, match=r"strongest claim still standing: completed \(extended"
    ) as found:
        tokenlaw.check_verifier(BlockVerifier(), **options)
    report = found.value.report
    verdicts = {row.check.id: row.verdict for row in report.evidence}
    assert (verdicts["law/joint"], verdicts["law/completed"]) == (REFUTED, HOLDS)
    assert report.to_data()["strongest_claim"] == COMPLETED
