"""Claims about the law of a speculative step, and which of them imply which."""

from collections.abc import Iterable, Mapping

PROTOCOL, SUPPORT, MARGINAL, COMPLETED = "protocol", "support", "marginal", "completed"
BLOCK_JOINT, TEXTBOOK_JOINT = "block", "textbook"

MEANINGS: Mapping[str, str] = {
    TEXTBOOK_JOINT: "accepted length and tokens have the joint law of chain rejection sampling",
    BLOCK_JOINT: "accepted length and tokens have the joint law of block verification",
    COMPLETED: "extended by target-only sampling, the emitted tokens have the target-only law",
    MARGINAL: "the first token on its own has its exact law",
    SUPPORT: "no impossible token is emitted",
    PROTOCOL: "every row emits 1 to n + 1 tokens of the vocabulary",
}
"""Every claim in words, the strongest first."""

IMPLIES: Mapping[tuple[str, str], str] = {
    (
        TEXTBOOK_JOINT,
        COMPLETED,
    ): "chain rejection sampling keeps the law of the target (Leviathan et al. 2023)",
    (BLOCK_JOINT, COMPLETED): "block verification keeps the law of the target (Sun et al. 2024)",
    (COMPLETED, MARGINAL): "the law of a sequence has that of its first token",
    (MARGINAL, SUPPORT): "what has probability 0 in the law of a token isn't emitted",
    (SUPPORT, PROTOCOL): "what isn't a token of the vocabulary is impossible",
}
"""For a claim and one that follows from it, the reason. The two joint laws are different ones: neither
follows from the other."""


def implied(claim: str) -> frozenset[str]:
    """All claims that follow from one, itself included.

    >>> sorted(implied(COMPLETED))
    ['completed', 'marginal', 'protocol', 'support']
    """
    further = (implied(weaker) for stronger, weaker in IMPLIES if stronger == claim)
    return frozenset({claim}).union(*further)


def strongest(shown: Iterable[str], doubted: Iterable[str]) -> str | None:
    """The strongest claim that still stands.

    Parameters
    ----------
    shown : claims that were tested, and held.
    doubted : claims that were refuted or couldn't be decided; so are all that they would follow from.

    Returns
    -------
    One that was shown itself, and from which nothing doubted follows; None if there is none.

    >>> strongest({TEXTBOOK_JOINT, COMPLETED}, ())
    'textbook'
    >>> strongest({COMPLETED, SUPPORT}, {TEXTBOOK_JOINT})
    'completed'
    >>> strongest({TEXTBOOK_JOINT, SUPPORT}, {COMPLETED})
    'support'
    """
    doubts, tested = frozenset(doubted), frozenset(shown)
    return next((claim for claim in MEANINGS if claim in tested and not implied(claim) & doubts), None)
