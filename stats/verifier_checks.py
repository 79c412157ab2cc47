"""The checks of the verifier contract."""

from tokenlaw.spec.contracts import VERIFIER
from tokenlaw.spec.generation_contracts import BLOCK, CLAIMS, EXACT, TEXTBOOK
from tokenlaw.spec.verdicts import Check, Severity
from tokenlaw.stats.measures import BONUS, COMPLETED, DRAFTS, JOINT, LENGTH, REJECTED, SUPPORT

PROTOCOL, REPLAY, ROW_SEEDS, BOUNDARY = "law/protocol", "law/replay", "law/row-seeds", "law/boundary"
PROVED, PROBED = "law/proved", "law/probed"
CHI_SQUARE, ROWS, CALLS, WIDE, PREFIXES, TREES, SEARCHED, TOGETHER = (
    "law/chi-square",
    "law/rows",
    "law/calls",
    "law/wide",
    "law/prefixes",
    "law/trees",
    "law/searched",
    "law/together",
)

SMALL_CHECKS = (REPLAY, ROW_SEEDS, BOUNDARY, CALLS)
"""Checks that are asked before the scenarios."""

_EXACT = frozenset({TEXTBOOK, BLOCK, EXACT})
_ANY = frozenset(CLAIMS)

CLAIMED_BY = {
    PROTOCOL: _ANY,
    REPLAY: _ANY,
    ROW_SEEDS: _ANY,
    SUPPORT: _EXACT,
    COMPLETED: _EXACT,
    CHI_SQUARE: _EXACT,
    ROWS: _EXACT,
    CALLS: _EXACT,
    WIDE: _EXACT,
    PREFIXES: _EXACT,
    TREES: _EXACT,
    SEARCHED: _EXACT,
    TOGETHER: _EXACT,
    PROVED: _EXACT,
    PROBED: _EXACT,
    DRAFTS: _ANY,
    JOINT: frozenset({TEXTBOOK, BLOCK}),
    LENGTH: frozenset({TEXTBOOK}),
    REJECTED: frozenset({TEXTBOOK}),
    BONUS: frozenset({TEXTBOOK}),
    BOUNDARY: frozenset({TEXTBOOK}),
}
"""Which claims of a verifier each check is part of; what isn't claimed can't be refuted."""

TOLERANT = frozenset({PROTOCOL, REPLAY, ROW_SEEDS, COMPLETED, JOINT, CHI_SQUARE, TOGETHER, PROVED})
"""Checks that can be asked with a tolerance."""

WEIGHTS = {
    COMPLETED: 6.0,
    JOINT: 6.0,
    LENGTH: 2.0,
    REJECTED: 3.0,
    BONUS: 2.0,
    DRAFTS: 2.0,
    SUPPORT: 1.0,
    CHI_SQUARE: 2.0,
    ROWS: 1.0,
    CALLS: 1.0,
    WIDE: 1.0,
    PREFIXES: 1.0,
    TREES: 2.0,
    SEARCHED: 2.0,
}
"""Parts of alpha, relative to each other. A check that isn't here is decided without chance, or has the part
that others have together (`TOGETHER`)."""

GATES = frozenset({COMPLETED, JOINT, LENGTH, REJECTED, BONUS, DRAFTS, WIDE, PREFIXES, TREES, SEARCHED})
"""Checks that are decided by e-values; all others of `WEIGHTS` are by p-values."""


def _check(
    name: str,
    title: str,
    *,
    events: tuple[str, ...],
    severity: Severity = Severity.WRONG_LAW,
    needs: tuple[str, ...] = (),
) -> Check:
    rule = f"L{_NUMBERS.index(name) + 1}"
    return Check(name, rule, title, VERIFIER, severity, frozenset(needs), events)


_NUMBERS = (
    PROTOCOL,
    REPLAY,
    SUPPORT,
    COMPLETED,
    CHI_SQUARE,
    JOINT,
    LENGTH,
    REJECTED,
    BONUS,
    ROWS,
    CALLS,
    WIDE,
    SEARCHED,
    DRAFTS,
    ROW_SEEDS,
    BOUNDARY,
    TREES,
    TOGETHER,
    PREFIXES,
    PROVED,
    PROBED,
)

VERIFIER_CHECKS: tuple[Check, ...] = (
    _check(
        PROTOCOL,
        "Every row emits 1 to n + 1 tokens of the vocabulary from n drafts, and -1 after them.",
        events=("rows",),
        severity=Severity.CRASH,
    ),
    _check(
        REPLAY,
        "Equal batches and seeds give equal tokens.",
        events=("replayed rows",),
        severity=Severity.CRASH,
    ),
    _check(SUPPORT, "No outcome is emitted that the claimed law makes impossible.", events=("rows",)),
    _check(
        COMPLETED,
        "Extended by target-only sampling, the emitted tokens have the target-only law.",
        events=("rows", "rejections", "bonus tokens"),
    ),
    _check(
        CHI_SQUARE,
        "Pearson's chi-square of the completed law at the planned size, cells pooled.",
        events=("tables",),
    ),
    _check(
        JOINT,
        "Accepted length and tokens have the joint law of the rule that is claimed.",
        events=("rows", "rejections", "bonus tokens", "rejections at the last draft"),
    ),
    _check(LENGTH, "The number of accepted drafts has its exact law.", events=("rows", "rejections")),
    _check(
        REJECTED,
        "A rejected draft and the token that replaces it are independent, the latter of the residual law.",
        events=("rejections",),
    ),
    _check(BONUS, "After all drafts, the bonus token has the target's law.", events=("bonus tokens",)),
    _check(ROWS, "Rows of a batch are independent.", events=("pairs of rows",)),
    _check(CALLS, "Calls with other seeds are independent.", events=("pairs of calls",)),
    _check(
        WIDE,
        "A vocabulary of thousands has its exact law, its tail included.",
        events=("rows of a wide vocabulary", "rejections of a wide vocabulary"),
    ),
    _check(
        PREFIXES,
        "Where sequences are too many to count, each token has its exact law after every class of prefixes.",
        events=("tokens after hashed prefixes",),
    ),
    _check(
        SEARCHED,
        "The claimed law holds under the worst laws that a search finds.",
        events=("searched tables",),
    ),
    _check(
        DRAFTS,
        "The implementation's own drafter draws from the law that it is verified with.",
        events=("own drafts",),
        needs=("draft",),
    ),
    _check(
        ROW_SEEDS,
        "The tokens of a row with a seed don't depend on the rest of the batch.",
        events=("seeded rows",),
        severity=Severity.CROSS_SEQUENCE,
        needs=("row-seeds",),
    ),
    _check(
        BOUNDARY,
        "A draft is accepted if, and only if, its number is below p / q; never where p is 0.",
        events=("decisions", "accepted", "rejected"),
        needs=("uniforms",),
    ),
    _check(
        TREES,
        "With several candidates the completed law is target-only.",
        events=("trees", "second candidates"),
        needs=("trees",),
    ),
    _check(
        TOGETHER,
        "The laws hold together: small deviations from several of them don't add up.",
        events=("laws with evidence",),
    ),
    _check(
        PROVED,
        "In small situations, all paths of the random numbers together give the claimed law.",
        events=("paths",),
    ),
    _check(
        PROBED,
        "The thresholds of all decisions, found with numbers that are given, add up to the claimed law.",
        events=("thresholds", "evaluations"),
        needs=("uniforms",),
    ),
)
"""All of them, in the order of a report."""

BY_ID = {check.id: check for check in VERIFIER_CHECKS}
