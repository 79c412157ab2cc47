"""Races of exponential clocks: who rings first, decided exactly.

A decoder that draws a token as ``argmax(p / e)`` with exponential noise e, or as ``argmax(log p + g)`` with
Gumbel noise g = -log e, lets clocks race: clock i rings at e_i / p_i, the first one wins, with probability
p_i / (p_0 + p_1 + ...). One race is a draw from p. What needs care is a second race on the same clocks, as
when a draft's noise is used again to recover from its rejection: its winner depends on the first one.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from tokenlaw.stats.enumeration.choices import Weight
from tokenlaw.stats.enumeration.deciding import decide
from tokenlaw.stats.enumeration.second_races import NARROW, second_race
from tokenlaw.stats.enumeration.tape import Tape


@dataclass(slots=True)
class _Group:
    """Clocks whose times depend on each other, because they have raced.

    Attributes
    ----------
    races : every different race so far: its rates, and the clocks that rang first, in their order.
    leader : the only winner so far; None once two clocks have won something.
    ahead : clock j rings after at least ``ahead[j]`` times the leader's time.
    """

    races: "list[tuple[Mapping[Hashable, Weight], list[Hashable]]]"
    leader: Hashable | None
    ahead: "dict[Hashable, Weight]"


class Races:
    """Exponential clocks, named by anything hashable, and what is known of them.

    All clocks are independent and standard (rate one) in the beginning. A race that gives clock i the rate
    r_i (it rings at e_i / r_i) narrows the law of those that take part, exactly. Once different clocks have
    won different races of a group, one more race is only decided if it repeats one; else it is refused.

    Parameters
    ----------
    tape : decides.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._groups: dict[Hashable, _Group] = {}
        self._call: tuple[str, int, Mapping[Hashable, object]] = ("", 0, {})

    def first(
        self,
        rates: Mapping[Hashable, Weight],
        source: str,
        row: int = 0,
        names: Mapping[Hashable, object] | None = None,
    ) -> Hashable:
        """Which of the clocks rings first.

        Parameters
        ----------
        rates : of the clocks that take part; a clock with rate zero never rings. At least one is above zero.
        source : name of the operation, for people.
        row : row of a batch that the clocks belong to.
        names : what people call the clocks; by default what they are called here.

        Raises
        ------
        UndecidableError
            The clocks have raced before in a way that leaves no closed form.
        """
        rates = {
            clock: Fraction(rate) if isinstance(rate, int) else rate
            for clock, rate in rates.items()
            if rate > 0
        }
        if len(rates) == 1:
            return next(iter(rates))
        self._call = source, row, names or {}
        group = self._group(rates)
        if group is None:
            winner = self._choose(rates)
            ahead = {clock: rate / rates[winner] for clock, rate in rates.items()}
            self._enter(_Group([(rates, [winner])], winner, ahead))
            return winner
        known = _known(group, rates)
        if known is None:
            known = self._next_of_order(group, rates)
        return self._again(group, rates) if known is None else known

    def order(
        self,
        rates: Mapping[Hashable, Weight],
        count: int,
        source: str,
        row: int = 0,
        names: Mapping[Hashable, object] | None = None,
    ) -> list[Hashable]:
        """The clocks that ring first, second, ..., ``count`` of them: draws without replacement.

        Parameters
        ----------
        rates, source, row, names : as in `first`; at least ``count`` rates are above zero.
        """
        left = {clock: rate for clock, rate in rates.items() if rate > 0}
        found: list[Hashable] = []
        while len(found) < count:
            found.append(self.first(left, source, row, names))
            del left[found[-1]]
        return found

    def _choose(self, weights: Mapping[Hashable, Weight]) -> Hashable:
        source, row, names = self._call
        clocks = list(weights)
        values = [names.get(clock, clock) for clock in clocks]
        return clocks[decide(self._tape, list(weights.values()), source, row, values)]

    def _group(self, rates: Mapping[Hashable, Weight]) -> _Group | None:
        found = {id(group): group for clock in rates if (group := self._groups.get(clock)) is not None}
        if len(found) > 1:
            self._refuse("lets random numbers race that have been in separate races before")
        return next(iter(found.values()), None)

    def _refuse(self, why: str) -> NoReturn:
        self._tape.undecidable(self._call[0], why)

    def _enter(self, group: _Group) -> None:
        for clock in group.ahead:
            self._groups[clock] = group

    def _next_of_order(self, group: _Group, rates: Mapping[Hashable, Weight]) -> Hashable | None:
        """The next clock of an earlier race, without those that have rung: time starts afresh for them."""
        if len(group.races) > 1:
            return None
        earlier, winners = group.races[0]
        rest = {clock: rate for clock, rate in earlier.items() if clock not in winners}
        if not _proportional(rest, rates):
            return None
        winners.append(self._choose(rates))
        group.leader = None
        return winners[-1]

    def _again(self, group: _Group, rates: Mapping[Hashable, Weight]) -> Hashable:
        leader, ahead = group.leader, group.ahead
        if leader is None:
            self._refuse(
                "is one more race on the same random numbers, after two that different ones have won"
            )
        joint = second_race(ahead, leader, rates)
        winner = self._choose(joint)
        group.races.append((rates, [winner]))
        if winner == leader:
            for clock, rate in rates.items():
                group.ahead[clock] = max(ahead.get(clock, 0), rate / rates[leader])
        else:
            group.leader = None
            group.ahead.update({clock: 0 for clock in rates if clock not in ahead})
        self._enter(group)
        return winner


def _known(group: _Group, rates: Mapping[Hashable, Weight]) -> Hashable | None:
    """The winner of a race that repeats an earlier one, perhaps among fewer clocks but the winner."""
    for earlier, winners in group.races:
        if winners[0] in rates and _proportional({clock: earlier.get(clock, 0) for clock in rates}, rates):
            return winners[0]
        # The same clocks without the first ones that rang: the next one is known too.
        for number in range(1, len(winners)):
            rest = {clock: rate for clock, rate in earlier.items() if clock not in winners[:number]}
            if _proportional(rest, rates):
                return winners[number]
    return None


def _proportional(one: Mapping[Hashable, Weight], other: Mapping[Hashable, Weight]) -> bool:
    if one.keys() != other.keys() or not one:
        return False
    lead = next(iter(one))
    return all(_same(one[clock] * other[lead], other[clock] * one[lead]) for clock in one)


def _same(one: Weight, other: Weight) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return abs(float(one) - float(other)) <= NARROW * abs(float(one))
    return one == other
