"""Whether plain runs have the enumerated law: nothing that can't be, and all else as often as it should."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenlaw.prove_plain_runs import PlainRuns
from tokenlaw.stats.binomial import lower_tail, upper_tail
from tokenlaw.stats.chi_square import ChiSquare, chi_square
from tokenlaw.stats.enumeration.law import Law, Raised
from tokenlaw.stats.power import visible_by_chi_square

ALPHA = 1e-9
"""Probability that plain runs of the enumerated law are said to have another one."""

_TESTS = 3
"""Outcomes that can't be, Pearson's test and exact binomial tails share `ALPHA`."""


@dataclass(frozen=True)
class Agreement:
    """What plain runs say about an enumerated law.

    Attributes
    ----------
    runs : how many there were.
    law, counts : the law, and how often its outcomes came, with those it hasn't; what is raised is one
        outcome for each type of exception.
    stray : an outcome that came though the law says that it can't; None if there is none.
    strays : how often such outcomes came.
    alike : whether all runs had one outcome, though the law makes that less likely than `ALPHA`: then no
        frequencies are tested, since a program that sets the same seed is like that.
    p_value : an upper bound of the probability of such frequencies, or worse ones, under the law; None if
        they weren't tested.
    visible : total variation from which on these runs would have shown it with a probability of 0.999.
    """

    runs: int
    law: Law
    counts: Mapping[Hashable, int]
    stray: Hashable = None
    strays: int = 0
    alike: bool = False
    p_value: float | None = None
    visible: float = math.inf

    @property
    def impossible(self) -> bool:
        """Whether something came that can't."""
        return self.strays > 0

    @property
    def unlikely(self) -> bool:
        """Whether the frequencies are others."""
        return self.p_value is not None and self.p_value <= ALPHA

    @property
    def tested(self) -> bool:
        """Whether frequencies were."""
        return self.p_value is not None

    @property
    def statistics(self) -> dict[str, Any]:
        """For the report."""
        found: dict[str, Any] = {"plain_runs": self.runs}
        if self.alike:
            found["plain_runs_alike"] = self.runs
        if self.impossible:
            found["plain_runs_impossible"] = self.strays
        if self.tested:
            found["plain_runs_p_value"] = self.p_value
        return found | ({"plain_runs_visible_tv": self.visible} if self.visible < 1 else {})


def agreement(found: PlainRuns, law: Law) -> Agreement:
    """Compare plain runs with a law; its probabilities may have bounds.

    Examples
    --------
    >>> coin = Law({0: 0.5, 1: 0.5})
    >>> agreement(PlainRuns({}, {0: 990, 1: 1010}), coin).p_value
    1.0
    >>> agreement(PlainRuns({}, {0: 1200, 1: 800}), coin).unlikely
    True
    >>> agreement(PlainRuns({2: 1}, {0: 5, 1: 5}), coin).stray
    2
    >>> agreement(PlainRuns({}, {0: 50}), coin).alike
    True
    """
    law, every, counts = law.map(_kind), _kinds(found.every), _kinds(found.counts)
    runs = sum(every.values())
    strays = {outcome: count for outcome, count in every.items() if outcome not in law.probabilities}
    # Where something is left open, so much probability may belong to any outcome.
    left = float(law.unexplored + law.neglected)
    if strays and float(upper_tail(sum(strays.values()), runs, left)) <= ALPHA / _TESTS:
        stray = max(strays, key=strays.__getitem__)
        return Agreement(runs, law, every, stray, sum(strays.values()))
    if len(every) == 1 and not strays:
        # One seed for all runs: no frequencies can be tested.
        return Agreement(runs, law, every, alike=_chance_alike(law, every) <= ALPHA)
    if found.cut or not counts:
        return Agreement(runs, law, every)
    tails, pearson = _tails(law, counts), None if strays else _pearson(law, counts)
    smallest = tails if pearson is None else min(tails, pearson.p_value + pearson.samples * left)
    hides = pearson is None or pearson.samples * left > ALPHA / _TESTS / 2
    visible = math.inf if pearson is None or hides else _visible(pearson)
    return Agreement(runs, law, counts, p_value=min(1.0, _TESTS * smallest), visible=visible)


def _kind(outcome: Hashable) -> Hashable:
    """The outcome; of what is raised the type alone, since texts may tell of undecided numbers."""
    return Raised(outcome.message.partition(":")[0]) if isinstance(outcome, Raised) else outcome


def _kinds(counts: Mapping[Hashable, int]) -> dict[Hashable, int]:
    found: dict[Hashable, int] = {}
    for outcome, count in counts.items():
        found[_kind(outcome)] = found.get(_kind(outcome), 0) + count
    return found


def _chance_alike(law: Law, counts: Mapping[Hashable, int]) -> float:
    """The probability that all runs have one outcome, this one or one that is no likelier."""
    [(outcome, runs)] = counts.items()
    most = law.probabilities[outcome]
    return math.fsum(float(weight) ** runs for weight in law.probabilities.values() if weight <= most)


def _tails(law: Law, counts: Mapping[Hashable, int]) -> float:
    """The smallest binomial tail of an outcome, times the number of outcomes and sides (Bonferroni)."""
    runs, outcomes = float(sum(counts.values())), list(law.probabilities)
    seen = np.array([counts.get(outcome, 0) for outcome in outcomes], float)
    lower, upper = np.array([law.bounds(outcome) for outcome in outcomes], float).T
    smallest = min(upper_tail(seen, runs, upper).min(), lower_tail(seen, runs, lower).min())
    return float(2 * len(outcomes) * smallest)


def _pearson(law: Law, counts: Mapping[Hashable, int]) -> ChiSquare:
    """Pearson's test, which sees many small deviations as well."""
    weights = np.array([float(weight) for weight in law.probabilities.values()])
    seen = np.array([counts.get(outcome, 0) for outcome in law.probabilities])
    return chi_square(seen, weights / weights.sum())


def _visible(pearson: ChiSquare) -> float:
    """The total variation that Pearson's test sees."""
    return visible_by_chi_square(pearson.samples, pearson.cells, pearson.pooled_mass, ALPHA / _TESTS)
