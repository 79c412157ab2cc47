"""What a probe found wrong as data to be drawn: single thresholds, and the law that all of them add up to."""

import numpy as np

from tokenlaw.spec.generation_contracts import BLOCK
from tokenlaw.spec.shown_numbers import UNSEEN
from tokenlaw.stats.probing_cases import Contexts
from tokenlaw.stats.probing_judge import Right
from tokenlaw.stats.probing_law import Difference
from tokenlaw.stats.probing_questions import ACCEPTANCE, Answers, Questions
from tokenlaw.stats.probing_search import Thresholds
from tokenlaw.stats.shown_laws import ShownLaw

MOST_THRESHOLDS, MOST_CELLS = 3, 10
"""Thresholds that are shown, and outcomes of the law that they add up to."""

_HOW = "No sampling: numbers were given, and the thresholds found at which decisions change."


def shown_thresholds(
    contexts: Contexts, thresholds: Thresholds, right: Right, wrong: Answers, close: Answers, claims: str
) -> list[ShownLaw]:
    """The wrong thresholds that are farthest off, of those that are known closely, as laws of two outcomes.

    Where there is no threshold there is no law, and none is shown that is off by too little to be seen.
    """
    exact, distance = np.minimum(right.value, 1.0), right.distance(thresholds)
    telling = np.flatnonzero(wrong & close & np.isfinite(distance) & (distance > UNSEEN * exact))
    farthest = telling[np.argsort(-distance[telling], kind="stable")]
    return [
        _shown_threshold(contexts, thresholds, which, float(exact[which]), claims)
        for which in farthest[:MOST_THRESHOLDS].tolist()
    ]


def _shown_threshold(
    contexts: Contexts, thresholds: Thresholds, which: int, exact: float, claims: str
) -> ShownLaw:
    what, where, names = _named(contexts, thresholds.questions, which, claims)
    found = float(thresholds.values[which])
    outcomes = [
        {"outcome": name, "exact": right, "found": value}
        for name, right, value in zip(names, (exact, 1 - exact), (found, 1 - found), strict=True)
    ]
    others = {"outcomes": 0, "exact": 0.0, "found": 0.0}
    return {"what": what, "where": where, "how": _HOW, "outcomes": outcomes, "others": others}


def _named(
    contexts: Contexts, questions: Questions, which: int, claims: str
) -> tuple[str, str, tuple[str, str]]:
    """What a threshold is about, where it is, and the outcomes below it and from it on."""
    context, place = int(questions.context[which]), int(questions.place[which])
    token, rival = int(questions.token[which]), int(questions.rival[which])
    head = contexts.named(context)
    if rival != ACCEPTANCE:
        where = f"{head}, behind the accepted {list(contexts.drafts[context][:place])}"
        return "law of two tokens beside each other", where, (f"token {token}", f"token {rival}")
    where = f"{head}, draft {token} at position {place}"
    if claims == BLOCK:
        return "law of passing with a prefix of drafts", where, ("the prefix passes", "it does not pass")
    return "law of acceptance", where, ("accepted", "rejected")


def shown_composed(contexts: Contexts, apart: Difference, *, completed: bool) -> list[ShownLaw]:
    """The law that thresholds add up to; none where a part of it isn't known."""
    found, exact = apart.laws
    if not np.isfinite(found).all():
        return []
    context, _ = apart.place
    possible = (found > 0) | (exact > 0)
    order = np.argsort(-np.abs(found - exact), axis=None, kind="stable")
    chosen = [cell for cell in order.tolist() if possible.flat[cell]][:MOST_CELLS]
    rest = possible.copy()
    rest.flat[chosen] = False

    def name(cell: int) -> str:
        place = list(map(int, np.unravel_index(cell, found.shape)))
        if completed:
            return f"completed to {place}"
        accepted, token = place
        return f"emitted {[*contexts.drafts[context][:accepted], token]}"

    outcomes = [
        {"outcome": name(cell), "exact": float(exact.flat[cell]), "found": float(found.flat[cell])}
        for cell in chosen
    ]
    others = {
        "outcomes": int(rest.sum()),
        "exact": float(exact[rest].sum()),
        "found": float(found[rest].sum()),
    }
    what = "completed law" if completed else "law of a row with these drafts"
    where = apart.where(contexts, completed=completed)
    return [{"what": what, "where": where, "how": _HOW, "outcomes": outcomes, "others": others}]
