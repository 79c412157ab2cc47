"""A question of a probe and its threshold, in words."""

from math import inf

from tokenlaw.spec.generation_contracts import BLOCK
from tokenlaw.spec.shown_numbers import told_apart
from tokenlaw.stats.probing_cases import Contexts
from tokenlaw.stats.probing_judge import Right
from tokenlaw.stats.probing_questions import ACCEPTANCE
from tokenlaw.stats.probing_search import Thresholds

CLOSE = 1e-6
"""Thresholds that are known as closely as this are told as one number."""

CLOSEST = 1e-11
"""A wrong threshold as close as this to the right one is told by a number that is decided wrongly."""


def described(
    contexts: Contexts, thresholds: Thresholds, which: int, right: Right | None, claims: str
) -> str:
    """One question, what was found, and what is right where that is known."""
    value = None if right is None else float(right.value[which])
    if thresholds.questions.rival[which] == ACCEPTANCE:
        return _decision(contexts, thresholds, which, value, claims)
    return _race(contexts, thresholds, which, value)


def _decision(
    contexts: Contexts, thresholds: Thresholds, which: int, right: float | None, claims: str
) -> str:
    questions, yes, no = thresholds.questions, float(thresholds.yes[which]), float(thresholds.no[which])
    context, place = int(questions.context[which]), int(questions.place[which])
    head = f"{contexts.named(context)}: draft {int(questions.token[which])} at position {place} is"
    if thresholds.torn[which]:
        return f"{head} rejected at u = {no!r} and accepted at u = {yes!r}: there is no threshold"
    name = "its prefix must pass below" if claims == BLOCK else "p / q is"
    limit = "its threshold" if claims == BLOCK else "p / q ="
    if right is not None and abs(right - yes) < CLOSEST and yes >= right:
        return f"{head} accepted at u = {yes!r}, which isn't below {limit} {right!r}"
    if right is None:
        return f"{head} accepted {_below(yes, no)}"
    _, shown = told_apart((yes + no) / 2, right)
    return f"{head} accepted {_below(yes, no, right)}, but {name} {shown}"


def _race(contexts: Contexts, thresholds: Thresholds, which: int, right: float | None) -> str:
    questions, yes, no = thresholds.questions, float(thresholds.yes[which]), float(thresholds.no[which])
    context, place = int(questions.context[which]), int(questions.place[which])
    accepted, rival = list(contexts.drafts[context][:place]), int(questions.rival[which])
    head = f"{contexts.named(context)}: behind the accepted {accepted} token {int(questions.token[which])}"
    if thresholds.stray[which]:
        return f"{head} races against token {rival}, all others with the noise 2^60, and neither is emitted"
    if thresholds.torn[which]:
        noise = f"at the noise {no!r} and wins at {yes!r}, token {rival} having 1 minus that"
        return f"{head} loses against token {rival} {noise}"
    share = float(thresholds.values[which])
    if right is None:
        return f"{head} {_compared(share, share, rival, 'has')}"
    must = _compared(right, share, rival, "must have")
    return f"{head} {_compared(share, right, rival, 'has')}, but it {must}"


def _below(yes: float, no: float, beside: float | None = None) -> str:
    """For which numbers a draft is accepted; in digits that tell them apart from another."""
    if no > 1:
        return "at every number below 1"
    if yes < 0:
        return "at no number"
    if no - yes > CLOSE:
        return f"below a u between {yes:.12g} and {no:.12g}"
    middle = (yes + no) / 2
    return f"below u = {told_apart(middle, middle if beside is None else beside)[0]}" if yes else "at u = 0"


def _compared(share: float, beside: float, rival: int, has: str) -> str:
    """How probable a token is beside its rival, in digits that tell it apart from another share."""
    if share in (0.0, 1.0):
        return f"{has} all of the probability beside token {rival}" if share else f"{has} no probability"
    times = told_apart(_odds(share), _odds(beside))[0]
    return f"{has} {times} times the probability of token {rival}"


def _odds(share: float) -> float:
    return share / (1 - share) if share < 1 else inf
