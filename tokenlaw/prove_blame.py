"""Which path of a program shows best that its law is wrong."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tokenlaw.prove_shapes import Line, Shape, Shaped, line_of, outcome_of
from tokenlaw.prove_spec import Completion, Sequences, tokens_of
from tokenlaw.prove_verdict import Comparison
from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.law import Law
from tokenlaw.stats.enumeration.narrative import narrate

_MOST_KINDS = 64
_MOST_READ = 200
_MOST_SUMS = 4_000_000
"""Numbers that may be added up to find what is at fault."""

_WORTH_TELLING = 0.1
"""Part of the total variation that something has to explain to be called the fault."""

_EXPLAINS = 0.75
"""Part of the total variation that the last tokens of paths must explain to be called the fault."""

_NOT_RARE = 0.05
"""Part of the largest share of an outcome from which on a path may stand for it."""

_SMALL = 1e-9
"""Part of the total variation that further paths of the same fault must explain."""

_Kind = tuple[Shape, int]
"""Paths of one shape with as many emitted tokens."""


@dataclass(frozen=True)
class Blame:
    """A path that shows the fault.

    Attributes
    ----------
    outcome : what it leads to.
    line : its choices.
    probability : of all paths of its kind that lead to this outcome.
    at_last : whether its last token, and that of all paths like it, is the fault, or most of it.
    last_token : total variation that would be left without these tokens; None if they aren't the fault, or
        if not every path was run.
    """

    outcome: Hashable
    line: Line
    probability: Weight
    at_last: bool = False
    last_token: float | None = None


def blamed(law: Law, comparison: Comparison, completion: Completion | None) -> Blame | None:
    """The path that shows best why a law is wrong; None if nothing happens too often.

    What can't happen under the spec comes first, by its shortest path. Then, for a law of the next token, a
    path whose last token is at fault, if leaving it out helps; paths that read as speculative steps, with
    their comparisons, are preferred. Else it is a path that leads often to the outcome with the largest
    excess, if possible one with a rejection.

    Parameters
    ----------
    law : of the program, with `tokenlaw.prove_shapes.Shaped` outcomes.
    comparison : of the program with its spec, completed where the spec is a law of the next token.
    completion : what did that; None where the spec is a program.
    """
    # Floats: which path is shown needs no exact arithmetic, which is slow.
    excess = {each.outcome: float(each.excess) for each in comparison.differences}
    worth = float(comparison.bounds[0]) * _WORTH_TELLING
    impossible = {each.outcome for each in comparison.impossible if each.program > worth}
    strays = [shaped for shaped in law.probabilities if outcome_of(shaped) in impossible]
    if strays:
        return _blame(law, min(strays, key=lambda shaped: len(line_of(law.examples.get(shaped)))))
    worst = max(excess, key=excess.__getitem__, default=None)
    if worst is None or excess[worst] <= 0:
        return None
    found = None if completion is None else _last_tokens(law, excess, completion)
    if found is None:
        return _blame(
            law,
            _likely(law, {shaped: _share(law, shaped, {worst}, completion) for shaped in law.probabilities}),
        )
    above = {outcome for outcome in excess if excess[outcome] > 0}
    guilty = sorted(
        (shaped for shaped in law.probabilities if _kind(shaped) in found.kinds),
        key=lambda shaped: float(law.probabilities[shaped]),
    )

    def telling(shaped: Any) -> tuple[bool, bool, float]:
        told = narrate(line_of(law.examples.get(shaped)), tokens_of(outcome_of(shaped)))
        has_comparisons = any("(" in words for words in told)
        return reads_as_step(told), has_comparisons, _share(law, shaped, above, completion)

    shown = _blame(law, max(guilty[-_MOST_READ:], key=telling))
    return replace(shown, at_last=True, last_token=found.left if law.complete else None)


def _likely(law: Law, shares: Mapping[Any, float]) -> Any:
    """What often leads to an outcome: a rejection, unless that is rare: its replacement may be wrong."""
    least = max(shares.values()) * _NOT_RARE
    often = sorted((shaped for shaped in shares if shares[shaped] >= least), key=shares.__getitem__)

    def telling(shaped: Any) -> tuple[bool, float]:
        told = narrate(line_of(law.examples.get(shaped)), outcome_of(shaped))
        return any("rejected" in words for words in told), shares[shaped]

    return max(often[-_MOST_READ:], key=telling)


def _blame(law: Law, shaped: Any) -> Blame:
    return Blame(outcome_of(shaped), line_of(law.examples.get(shaped)), law.probabilities[shaped])


def _kind(shaped: Any) -> _Kind | None:
    if not isinstance(shaped, Shaped):
        return None
    return shaped.shape, len(tokens_of(shaped.outcome))


def _share(law: Law, shaped: Any, outcomes: set[Hashable], completion: Completion | None) -> float:
    """How much of the probability of these outcomes comes from here."""
    weight, outcome = float(law.probabilities[shaped]), outcome_of(shaped)
    if completion is None:
        return weight if outcome in outcomes else 0.0
    return math.fsum(share for whole, share in completion([(outcome, weight)]).items() if whole in outcomes)


def reads_as_step(told: Sequence[str]) -> bool:
    """Whether a path is told as a speculative step: else the outcome comes last."""
    return not told[-1].startswith(("outcome", "raises"))


@dataclass(frozen=True)
class _LastTokens:
    """``left`` is the total variation if no path of these kinds had its last token."""

    kinds: frozenset[_Kind]
    left: float


def _last_tokens(law: Law, excess: Mapping[Hashable, float], completion: Completion) -> _LastTokens | None:
    """The kinds of paths whose last token is at fault; None if leaving it out doesn't help much."""
    kinds: dict[_Kind, list[tuple[Sequences, float]]] = {}
    for shaped, weight in law.probabilities.items():
        # Without its only token a path says nothing, and nothing is wrong with that.
        if (kind := _kind(shaped)) is not None and kind[1] > 1:
            kinds.setdefault(kind, []).append((tokens_of(outcome_of(shaped)), float(weight)))
    likely = sorted(kinds, key=lambda kind: math.fsum(weight for _, weight in kinds[kind]), reverse=True)
    most = min(_MOST_KINDS, math.isqrt(_MOST_SUMS // len(excess)) + 1)
    changes = {kind: _cut(kinds[kind], completion) for kind in likely[:most]}
    before = left = _above(excess)
    culprits: list[_Kind] = []
    while changes:
        tried = {kind: _above(_added(excess, change)) for kind, change in changes.items()}
        best = min(tried, key=tried.__getitem__)
        if left - tried[best] <= before * (_SMALL if culprits else _WORTH_TELLING):
            break
        excess, left = _added(excess, changes.pop(best)), tried[best]
        culprits.append(best)
    explains = before - left >= before * _EXPLAINS
    return _LastTokens(frozenset(culprits), left) if culprits and explains else None


def _cut(outcomes: list[tuple[Sequences, float]], completion: Completion) -> dict[Hashable, float]:
    """What changes if target-only decoding replaces the last token of these outcomes."""
    with_it = completion(outcomes)
    without = completion((tokens[:-1], weight) for tokens, weight in outcomes)
    return {each: float(without.get(each, 0) - with_it.get(each, 0)) for each in {**with_it, **without}}


def _added(excess: Mapping[Hashable, float], change: Mapping[Hashable, float]) -> dict[Hashable, float]:
    return {each: excess.get(each, 0) + change.get(each, 0) for each in {**excess, **change}}


def _above(excess: Mapping[Hashable, float]) -> float:
    """Total variation, or a lower bound of it where paths are left."""
    return math.fsum(max(each, 0.0) for each in excess.values())
