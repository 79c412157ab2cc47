"""The exact laws of a situation, and how far the law of a decoder is from them."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.requests import sample_law
from tokenlaw.stats.decoder_checks import LOGPROBS
from tokenlaw.stats.decoder_programs import Outcome, Part
from tokenlaw.stats.enumeration.law import Law
from tokenlaw.stats.law_pairs import LawPair, tv_between
from tokenlaw.stats.proving_laws import independent

Cell = Hashable
"""What a law is about: an outcome, or what it has in common with others."""

TOKENS, GIVEN, NUMBERS = (
    "joint law of all tokens",
    "joint law of what goes on from a fork, given the tokens before it",
    "law of log-probabilities",
)


@dataclass(frozen=True)
class Question:
    """A law that is asked for.

    Attributes
    ----------
    what : in words.
    group : what of an outcome the law is given; what is right has any law here. None if nothing is.
    cell : what of an outcome the law is about.
    law : the exact law, given a group.
    """

    what: str
    group: Callable[[Outcome], Hashable]
    cell: Callable[[Outcome], Cell]
    law: Callable[[Any], Mapping[Any, float]]

    @property
    def is_conditional(self) -> bool:
        """Whether the law is given something."""
        return self.what == GIVEN


def questions(check: str, plan: Sequence[Part], model: LanguageModel[float]) -> list[Question]:
    """The laws that are asked for in a case.

    Parameters
    ----------
    check : id of its check.
    plan : its parts; forks are all of one part, with no step between them.
    model : the target.
    """
    if check == LOGPROBS:
        return [Question(NUMBERS, _nothing, lambda outcome: outcome.remark, lambda group: {"": 1.0})]
    kept = [part for part in plan if not part.aborted]
    samples = [part for part in kept for _ in range(part.request.samples)]
    roots = [place for place, part in enumerate(samples) if part.origin is None]
    whole = independent([sample_law(model, samples[place].request) for place in roots])
    found = [Question(TOKENS, _nothing, lambda outcome: _cell(outcome, roots), lambda group: whole)]
    forks = [part for part in kept if part.origin is not None]
    if not forks:
        return found
    origin = plan[forks[0].origin or 0]
    going_on = [place for place, part in enumerate(samples) if part is origin or part.origin is not None]

    @cache
    def after(given: Any) -> Mapping[Any, float]:
        law = {} if given is None else sample_law(model, origin.request, given)
        return independent([law] * len(going_on))

    return [*found, Question(GIVEN, _given, lambda outcome: _cell(outcome, going_on), after)]


def _nothing(outcome: Outcome) -> None:
    return None


def _given(outcome: Outcome) -> Hashable:
    return None if outcome.remark else outcome.given[0]


def _cell(outcome: Outcome, places: Sequence[int]) -> Cell:
    """Some of the samples; what was no legal answer is a cell of its own, which is impossible."""
    return outcome.remark or tuple(outcome.tokens[place] for place in places)


Place = tuple[Hashable, Cell]
"""A group, and a cell in it."""


@dataclass(frozen=True)
class Comparison(LawPair[Place]):
    """The law of a decoder beside the exact one.

    Attributes
    ----------
    question : what both are the law of.
    """

    question: Question


def compared(law: Law, question: Question) -> Comparison:
    """How far the law of a decoder is from what a question asks for.

    Where a law is given something, the found probability of that stands on either side; it is known only if
    every path was run.
    """
    weights: Any = law.probabilities.items()
    found: dict[Place, float] = defaultdict(float)
    groups: dict[Hashable, float] = defaultdict(float)
    for outcome, weight in weights:
        group = question.group(outcome)
        found[group, question.cell(outcome)] += float(weight)
        groups[group] += float(weight)
    if not question.is_conditional:
        groups = defaultdict(float, {None: 1.0})
    exact = {
        (group, cell): mass * weight
        for group, mass in groups.items()
        for cell, weight in question.law(group).items()
    }
    left, neglected = float(law.unexplored), float(law.neglected)
    if question.is_conditional and left:
        return Comparison(found, exact, 0.0, 1.0, question)
    if question.is_conditional:
        neglected *= 2  # the found probability of what the law is given may be off as well
    return Comparison(found, exact, *tv_between(found, exact, left, neglected), question)
