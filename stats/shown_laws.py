"""A refuted law as plain data to be drawn: for each outcome how often it came, and how often it should."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tokenlaw.stats.binomial import upper_confidence
from tokenlaw.stats.cells import binomial_deviance
from tokenlaw.stats.chain_laws import completed
from tokenlaw.stats.counts import Counts
from tokenlaw.stats.findings import beyond_rounding, outcome_words, worst_kind
from tokenlaw.stats.measures import COMPLETED, JOINT
from tokenlaw.stats.scenario import Kind
from tokenlaw.stats.trial import KindResult, Trial

MOST_OUTCOMES, MOST_IMPOSSIBLE = 12, 5
"""Outcomes of a law that are shown, and how many of them may be ones that can't happen."""

CONFIDENCE = 0.999
"""Of the interval of each measured probability."""

ShownLaw = dict[str, Any]
"""``what`` and ``where``; ``counted`` samples; ``confidence``; ``outcomes``, each with ``outcome`` in words,
its ``exact`` and ``found`` probability, ``count``, and the bounds ``low`` and ``high`` of the found one;
``others``, all further outcomes together, whose number may be None. Of a proved law there are no counts and
no bounds, but maybe a ``path``: what happened, in words. A law that was found otherwise says so: ``how``."""

_WHAT = {
    COMPLETED: "completed law",
    JOINT: "joint law of accepted length and tokens",
    "law/length": "law of accepted drafts",
    "law/rejected": "law of rejected drafts and what replaces them",
    "law/bonus": "law of bonus tokens",
    "law/drafts": "law of drafts",
}


def shown_gate(trial: Trial, check: str) -> ShownLaw:
    """The kind of rows that speaks most against the law of a check."""
    _, kind, result = worst_kind(trial, check)
    measure, counts = result.measures.measures[check], result.measures.counts(check, result.counted)
    law = measure.law
    asked = np.asarray(law > 0)  # other cells don't count, but those that can't happen
    for cell in measure.impossible(counts):
        asked[cell] = True
    if beyond_rounding(check, result)[0]:
        asked |= measure.left_out
    return shown_law(_WHAT[check], _where(trial, kind), np.where(asked, counts, 0), law, _namer(check))


def shown_completed(trial: Trial, kind: Kind, result: KindResult) -> ShownLaw:
    """The completed law of a kind of rows."""
    law = completed(result.measures.laws)
    return shown_law(_WHAT[COMPLETED], _where(trial, kind), result.counted.completed, law, _namer(COMPLETED))


def shown_impossible(trial: Trial) -> ShownLaw:
    """What can't happen, of the kind of rows that emitted it first; all of the rest together."""
    pairs = zip(trial.scenario.kinds, trial.kinds, strict=True)
    kind, result = next((kind, result) for kind, result in pairs if result.impossible())
    outcomes = result.counted.outcomes
    seen, samples = np.where(result.measures.impossible, outcomes, 0), float(outcomes.sum())
    none = np.zeros(seen.shape)
    data = shown_law("support", _where(trial, kind), seen, none, _namer(JOINT), samples=samples)
    possible = {"outcomes": None, "exact": 1.0, "found": float(1 - seen.sum() / samples)}
    return data | {"others": possible}


def _namer(check: str) -> Callable[[list[int]], str]:
    return lambda place: outcome_words(check, place)


def _where(trial: Trial, kind: Kind) -> str:
    return f"rows of kind {kind.name!r} of scenario {trial.scenario.name!r}"


def shown_law(
    what: str,
    where: str,
    counts: Counts,
    law: np.ndarray,
    name: Callable[[list[int]], str],
    *,
    samples: float | None = None,
    most: int = MOST_OUTCOMES,
) -> ShownLaw:
    """A law beside its counts, both in one shape.

    Parameters
    ----------
    what, where : which law it is, and of what, in words.
    counts, law : the law may have any sum; it's compared as one that sums to one.
    name : a cell in words.
    samples : how many were counted, unless all of them are in the counts.
    most : outcomes that are shown.
    """
    observed = counts.astype(np.float64).ravel()
    total = float(observed.sum() if samples is None else samples)
    exact = law.ravel() / law.sum() if law.any() else law.ravel()
    chosen = _telling(observed, total, exact, most)
    low, high = _interval(observed[chosen], total)
    places = [list(map(int, np.unravel_index(cell, law.shape))) for cell in chosen]
    rest = np.ones(len(observed), dtype=bool)
    rest[chosen] = False
    rest &= (exact > 0) | (observed > 0)
    return {
        "what": what,
        "where": where,
        "counted": int(total),
        "confidence": CONFIDENCE,
        "outcomes": [
            {
                "outcome": name(place),
                "exact": float(exact[cell]),
                "found": float(observed[cell] / total),
                "count": int(observed[cell]),
                "low": float(below),
                "high": float(above),
            }
            for cell, place, below, above in zip(chosen, places, low, high, strict=True)
        ],
        "others": {
            "outcomes": int(rest.sum()),
            "exact": float(exact[rest].sum()),
            "found": float(observed[rest].sum() / total),
        },
    }


def _telling(observed: np.ndarray, total: float, exact: np.ndarray, most: int) -> list[int]:
    """Cells that speak most against the law; first what adds most to the total variation."""
    impossible = np.flatnonzero((exact == 0) & (observed > 0))
    possible = np.flatnonzero(exact > 0)
    often = impossible[np.argsort(-observed[impossible], kind="stable")]
    deviance = binomial_deviance(observed[possible], total, exact[possible])
    telling = possible[np.argsort(-deviance, kind="stable")]
    few = often[: MOST_IMPOSSIBLE if len(possible) else most]
    chosen = [*few, *telling[: most - len(few)]]
    return sorted(map(int, chosen), key=lambda cell: -abs(observed[cell] / total - exact[cell]))


def _interval(observed: np.ndarray, total: float) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of each probability, exact for a binomial number (Clopper and Pearson, 1934)."""
    alpha = (1 - CONFIDENCE) / 2
    high = upper_confidence(observed, total, alpha)
    low = 1 - upper_confidence(total - observed, total, alpha)
    return np.clip(low, 0.0, 1.0), high
