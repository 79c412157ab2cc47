"""Exact laws against the spec: of rows whose drafts are verified, by the definitions, without sampling."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from tokenlaw.spec.block_verification import block_verification
from tokenlaw.spec.generation_contracts import BLOCK, TEXTBOOK
from tokenlaw.spec.laws import Tokens, collect
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.sampling import target_only_law
from tokenlaw.spec.speculation import chain_verification
from tokenlaw.spec.steps import step_law
from tokenlaw.stats.chain_laws import KindLaws
from tokenlaw.stats.enumeration.law import Law
from tokenlaw.stats.law_pairs import LawPair, tv_between
from tokenlaw.stats.proving_cases import Case
from tokenlaw.stats.proving_programs import Illegal

Rows = tuple[Tokens | Illegal, ...]
"""What each of some rows emitted."""

COMPLETED, JOINT = "completed law", "joint law of accepted length and tokens"

RULES = {TEXTBOOK: chain_verification, BLOCK: block_verification}
"""The rule whose joint law a claim promises; others promise the completed law only."""


@dataclass(frozen=True)
class Comparison(LawPair[Rows]):
    """A law of the program, given the kinds of its rows, and the exact one.

    Attributes
    ----------
    what : `COMPLETED` or `JOINT`.
    kinds, names : numbers and names of the kinds of the rows.
    """

    what: str
    kinds: tuple[int, ...]
    names: tuple[str, ...]


def compared(law: Law, case: Case, laws: Sequence[KindLaws], claims: str) -> list[Comparison]:
    """Every law that is claimed, for every kind of row, or for the group of rows.

    Parameters
    ----------
    law : of `tokenlaw.stats.proving_programs.Outcome`.
    laws : of each kind of the case.
    """
    kinds = [sum(case.group, ())] if case.group else [(kind,) for kind in range(len(laws))]
    rule = None if case.parents else RULES.get(claims)
    found = []
    for chosen in kinds:
        part = _part(law, chosen, len(kinds))
        left, neglected = float(law.unexplored) * len(kinds), float(law.neglected) * len(kinds)
        models = [laws[kind] for kind in chosen]
        names = tuple(case.scenario.kinds[kind].name for kind in chosen)
        target = independent([target_only_law(target_model(one), (), one.length + 1) for one in models])
        whole = completed(part, models)
        bounds = tv_between(whole, target, left, neglected)
        found.append(Comparison(whole, target, *bounds, COMPLETED, chosen, names))
        if rule is not None:
            joint = independent([_joint(rule, one) for one in models])
            bounds = tv_between(part, joint, left, neglected)
            found.append(Comparison(part, joint, *bounds, JOINT, chosen, names))
    return found


def _part(law: Law, kinds: tuple[int, ...], of: int) -> dict[Rows, float]:
    """The law of the rows, given their kinds, which are some of so many that are equally probable."""
    outcomes: Any = law.probabilities.items()
    return {rows: float(weight) * of for (drawn, rows), weight in outcomes if drawn == kinds}


def _joint(rule: Callable[..., Any], laws: KindLaws) -> dict[Tokens, float]:
    if not laws.length:
        return target_only_law(target_model(laws), (), 1)
    models = {"target": target_model(laws), "draft": draft_model(laws)}
    step = step_law(rule, **models, prompt=(), draft_length=laws.length)
    return collect((outcome.tokens, weight) for outcome, weight in step.items())


def independent(laws: Sequence[Mapping[Tokens, float]]) -> dict[Rows, float]:
    """Joint law of independent rows.

    >>> independent([{(0,): 0.25, (1,): 0.75}, {(5,): 1.0}])
    {((0,), (5,)): 0.25, ((1,), (5,)): 0.75}
    """
    return {
        tuple(tokens for tokens, _ in rows): prod(weight for _, weight in rows)
        for rows in product(*(law.items() for law in laws))
    }


def completed(law: Mapping[Rows, float], laws: Sequence[KindLaws]) -> dict[Rows, float]:
    """The law with every row extended by target-only sampling to one token more than it may have drafts."""
    for row, one in enumerate(laws):
        model, length = target_model(one), one.length + 1
        longer: list[tuple[Rows, float]] = []
        for rows, weight in law.items():
            emitted = rows[row] if row < len(rows) else Illegal("")
            if isinstance(emitted, Illegal):
                longer.append((rows, weight))
                continue
            left = length - len(emitted)
            rests = target_only_law(_after(model, emitted), (), left) if left else {(): 1.0}
            for rest, more in rests.items():
                longer.append(((*rows[:row], emitted + rest, *rows[row + 1 :]), weight * more))
        law = collect(longer)
    return dict(law)


def _after(model: LanguageModel[float], tokens: Tokens) -> LanguageModel[float]:
    return lambda more: model(tokens + more)


def target_model(laws: KindLaws) -> LanguageModel[float]:
    """The target as a language model: position and token before say everything."""
    return _model(laws.target)


def draft_model(laws: KindLaws) -> LanguageModel[float]:
    """The draft likewise."""
    return _model(laws.draft)


def _model(table: Any) -> LanguageModel[float]:
    rows = table.tolist()
    contexts = table.shape[1]
    return lambda tokens: rows[len(tokens)][tokens[-1] % contexts if tokens else 0]
