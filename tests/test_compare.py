"""``tokenlaw compare``: what is worse between two reports, and what is only different."""

from dataclasses import replace
from typing import Any

import pytest

from support.pages import compared, evidence, holding_law, report_of
from tokenlaw.comparing import Change, State, meaning
from tokenlaw.controls import Control, Kind
from tokenlaw.html_data import KNOWN
from tokenlaw.spec.contracts import BLOCK_MANAGER, VERIFIER
from tokenlaw.spec.suites import Settings
from tokenlaw.spec.verdicts import Evidence, Verdict

HOLDS, REFUTED, UNKNOWN = map(str, (Verdict.HOLDS, Verdict.REFUTED, Verdict.UNKNOWN))
NOT_EXERCISED, NOT_SUPPORTED = str(Verdict.NOT_EXERCISED), str(Verdict.NOT_SUPPORTED)


def law(evidence_kind: str, samples: int, tv: float | None) -> Evidence:
    """A law that holds, with so much behind it."""
    statistics: dict[str, Any] = {"samples": samples, "evidence": evidence_kind}
    if tv is not None:
        statistics["power"] = {"tv": tv, "probability": 0.999}
    return evidence("law/joint", Verdict.HOLDS, contract=VERIFIER, statistics=statistics)


def only_row(old: Evidence, new: Evidence) -> tuple[Change, tuple[str, ...]]:
    (row,) = compared(report_of(old), report_of(new)).rows
    return row.change, row.notes


MEANINGS: dict[Change, list[tuple[str | None, str | None]]] = {
    Change.WORSE: [
        *((HOLDS, new) for new in (REFUTED, UNKNOWN, NOT_EXERCISED, NOT_SUPPORTED, None)),
        *((old, UNKNOWN) for old in (NOT_SUPPORTED, NOT_EXERCISED)),
        *((None, new) for new in (REFUTED, NOT_EXERCISED)),
        (KNOWN, REFUTED),
        ("killed", "missed"),
        ("silent", "alarmed"),
        ("killed", None),
    ],
    Change.BETTER: [
        *((old, HOLDS) for old in (REFUTED, NOT_EXERCISED, NOT_SUPPORTED)),
        ("missed", "killed"),
    ],
    Change.CHANGED: [(HOLDS, KNOWN), (REFUTED, KNOWN), (REFUTED, UNKNOWN)],
    Change.GONE: [(REFUTED, None)],
    Change.NEW: [(None, HOLDS), (None, NOT_SUPPORTED)],
    Change.SAME: [(REFUTED, REFUTED), (HOLDS, HOLDS)],
}


@pytest.mark.parametrize(
    ("old", "new", "expected"), [(*pair, change) for change, pairs in MEANINGS.items() for pair in pairs]
)
def test_what_a_change_of_a_verdict_means(old: str | None, new: str | None, expected: Change) -> None:
    states = [None if word is None else State(word) for word in (old, new)]
    assert meaning(*states) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (law("proved", 0, None), law("sampled", 900, 0.1), (Change.WEAKER, ("proved -> sampled",))),
        (law("sampled", 900, 0.1), law("probed", 0, None), (Change.STRONGER, ("sampled -> probed",))),
        (
            law("sampled", 900, 0.04),
            law("sampled", 200, 0.1),
            (Change.WEAKER, ("smallest deviation seen: TV 0.04 -> 0.1",)),
        ),
        (
            law("sampled", 900, 0.04),
            law("sampled", 900, None),
            (Change.WEAKER, ("smallest deviation seen: TV 0.04 -> none",)),
        ),
        (
            law("sampled", 900, 0.04),
            law("sampled", 9_000, 0.01),
            (Change.STRONGER, ("smallest deviation seen: TV 0.04 -> 0.01",)),
        ),
        (law("sampled", 900, 0.04), law("sampled", 880, 0.0405), (Change.SAME, ())),
        (
            replace(evidence("kv/content", Verdict.HOLDS), operations=12_000),
            replace(evidence("kv/content", Verdict.HOLDS), operations=3_000),
            (Change.WEAKER, ("12,000 -> 3,000 operations",)),
        ),
        (
            replace(evidence("kv/content", Verdict.HOLDS), operations=12_000),
            replace(evidence("kv/content", Verdict.HOLDS), operations=11_000),
            (Change.SAME, ()),
        ),
    ],
)
def test_evidence_may_change_while_a_verdict_stays(
    old: Evidence, new: Evidence, expected: tuple[Change, tuple[str, ...]]
) -> None:
    assert only_row(old, new) == expected


def test_nothing_is_worse_where_evidence_is_weaker() -> None:
    found = compared(report_of(law("proved", 0, None)), report_of(law("sampled", 9, 0.9)))
    assert (found.status, found.summary()) == (0, "1 weaker")


def test_a_refutation_is_told_with_its_message() -> None:
    old = report_of(evidence("kv/content", Verdict.HOLDS))
    new = report_of(evidence("kv/content", Verdict.REFUTED, "expected 8\nfound 9"))
    (row,) = compared(old, new).rows
    assert (row.group, row.verdicts, row.notes) == (BLOCK_MANAGER, "holds -> refuted", ("expected 8",))


def test_a_known_deviation_is_no_refutation() -> None:
    old = report_of(evidence("kv/content", Verdict.REFUTED, "torn"))
    new = report_of(evidence("kv/content", Verdict.REFUTED, "torn", known="rewrite planned"))
    assert compared(old, new).status == 0
    assert compared(new, old).status == 1


def test_a_control_that_fails_is_worse_and_one_that_is_left_out_is_not() -> None:
    sound = replace(report_of(holding_law()), controls=(Control(VERIFIER, Kind.BROKEN, Verdict.REFUTED),))
    failed = replace(report_of(holding_law()), controls=(Control(VERIFIER, Kind.BROKEN, Verdict.HOLDS),))
    (row,) = compared(sound, failed).changed()
    assert (row.change, row.check, row.verdicts) == (Change.WORSE, "controls", "holds -> void")
    assert row.notes == ("failed: broken wrapper",)
    without = compared(sound, report_of(holding_law()))
    assert without.status == 0
    assert {one.what: (one.old, one.new) for one in without.differences} == {"controls": (VERIFIER, "none")}


def test_everything_in_which_the_runs_differ_is_named() -> None:
    old = report_of(holding_law())
    new = replace(
        report_of(holding_law()),
        target=replace(old.target, version="1.1", capabilities={BLOCK_MANAGER: ()}),
        seed=6,
        profile="ci",
        settings=Settings("cuda", "exact", 1e-6, 500, 0.01),
        versions={"python": "3.12", "torch": "2.13"},
        command="tokenlaw audit mine:make --only 'law/*'",
    )
    assert {one.what: (one.old, one.new) for one in compared(old, new).differences} == {
        "version of the target": ("1.0", "1.1"),
        "profile": ("dev", "ci"),
        "seed": ("5", "6"),
        "device": ("cpu", "cuda"),
        "claims": ("default", "exact"),
        "alpha": ("1e-09", "1e-06"),
        "budget": ("default", "500"),
        "tolerance": ("0.0", "0.01"),
        "selected": ("", "--only 'law/*'"),
        "capabilities of block-manager": ("fork", "none"),
        "python": ("3.11", "3.12"),
        "torch": ("", "2.13"),
    }
    assert compared(old, old).differences == ()
