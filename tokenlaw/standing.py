"""The strongest claim about the laws of a verifier that an audit has tested and not refuted."""

from collections.abc import Iterable, Mapping

from tokenlaw.spec.claims import (
    BLOCK_JOINT,
    COMPLETED,
    MARGINAL,
    MEANINGS,
    PROTOCOL,
    SUPPORT,
    TEXTBOOK_JOINT,
    strongest,
)
from tokenlaw.spec.verdicts import Evidence, Verdict

CONTRACT = "verifier"

HELD_TO: Mapping[str, str] = {"textbook": TEXTBOOK_JOINT, "block": BLOCK_JOINT, "exact": COMPLETED}
"""What a verifier is held to, as a claim; ``approximate`` is none."""

SHOWS: Mapping[str, str] = {
    "law/protocol": PROTOCOL,
    "law/support": SUPPORT,
    "law/wide": MARGINAL,
    "law/completed": COMPLETED,
    "law/chi-square": COMPLETED,
}
"""Checks that show a claim if they hold, and refute it else."""

SHOWS_WHAT_IS_CLAIMED = ("law/joint", "law/proved", "law/probed")
"""Checks of the law that the verifier is held to."""

SPEAKS_AGAINST: Mapping[str, str] = {
    "law/length": TEXTBOOK_JOINT,
    "law/rejected": TEXTBOOK_JOINT,
    "law/bonus": TEXTBOOK_JOINT,
    "law/boundary": TEXTBOOK_JOINT,
    "law/prefixes": COMPLETED,
    "law/trees": COMPLETED,
}
"""Checks of part of a claim: they refute it, and don't show it."""

SPEAKS_AGAINST_WHAT_IS_CLAIMED = ("law/searched", "law/together")

APART = ("law/replay", "law/row-seeds", "law/rows", "law/calls", "law/drafts")
"""Checks that are about something else: seeds, independence, the drafter."""

_DOUBTFUL = (Verdict.REFUTED, Verdict.UNKNOWN)


def standing(evidence: Iterable[Evidence]) -> str | None:
    """The strongest claim that still stands, a key of `tokenlaw.spec.claims.MEANINGS`; None if none does.

    What wasn't exercised, isn't supported or isn't claimed shows nothing. A known deviation is a refutation.
    """
    rows = [row for row in evidence if row.check.contract == CONTRACT]
    claimed = _held_to(rows)
    shown, doubted = set[str](), set[str]()
    for row in rows:
        if row.verdict is Verdict.HOLDS:
            shown.add(_shown_by(row.check.id, claimed))
        elif row.verdict in _DOUBTFUL:
            doubted.add(_doubted_by(row.check.id, claimed))
    return strongest(shown, doubted)


def sentence(evidence: Iterable[Evidence]) -> str:
    """What to say of it; empty where no law of a verifier was asked about.

    >>> sentence([])
    ''
    """
    rows = [row for row in evidence if row.check.contract == CONTRACT and row.check.id not in APART]
    if not any(row.verdict in (Verdict.HOLDS, *_DOUBTFUL) for row in rows):
        return ""
    claim = standing(rows)
    if claim is None:
        return "strongest claim still standing: none"
    return f"strongest claim still standing: {claim} ({MEANINGS[claim]})"


def _held_to(rows: Iterable[Evidence]) -> str:
    """The claim of the verifier; empty where it isn't known, or is none."""
    told = (row.statistics["claims"] for row in rows if row.statistics and "claims" in row.statistics)
    return HELD_TO.get(next(told, ""), "")


def _shown_by(check: str, claimed: str) -> str:
    return claimed if check in SHOWS_WHAT_IS_CLAIMED else SHOWS.get(check, "")


def _doubted_by(check: str, claimed: str) -> str:
    if check in (*SHOWS_WHAT_IS_CLAIMED, *SPEAKS_AGAINST_WHAT_IS_CLAIMED):
        return claimed
    # These ask for the joint law where it is claimed: the text alone may still be right.
    if check in ("law/support", "law/wide") and claimed in (TEXTBOOK_JOINT, BLOCK_JOINT):
        return claimed
    return SHOWS.get(check) or SPEAKS_AGAINST.get(check, "")
