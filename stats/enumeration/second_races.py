"""The law of a second race of exponential clocks, in closed form."""

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction

from tokenlaw.stats.enumeration.choices import Weight

NARROW = 1e-12
"""Intervals of a ratio of two clocks that are relatively narrower than this come from rounding."""


def second_race(
    ahead: Mapping[Hashable, Weight], leader: Hashable, rates: Mapping[Hashable, Weight]
) -> dict[Hashable, Weight]:
    """Probability of each clock to win a race, and of what is known before: that no clock rings too early.

    With e_i the leader's time, known is e_j >= a_j e_i for all j. The leader wins with probability
    1 / sum_j max(a_j, r_j / r_i). For clock k to win, t = e_k / e_i must lie between a_k and r_k / r_i; given
    e_i = x and t, clock j rings after x max(a_j, t r_j / r_k), and integrating x out leaves the integral of
    dt / (1 + t + sum_j max(a_j, t r_j / r_k))^2.

    Parameters
    ----------
    ahead : the a_j; one for the leader.
    leader : the clock i.
    rates : the r_j, above zero.

    Returns
    -------
    For each clock with a rate its probability; they sum to 1 / sum_j a_j. Rational if all numbers are.
    """
    joint: dict[Hashable, Weight] = {}
    for clock, rate in rates.items():
        others = [
            (ahead.get(other, 0), rates.get(other, 0))
            for other in {**ahead, **rates}
            if other not in (clock, leader)
        ]
        own = rates.get(leader, 0)
        if clock == leader:
            joint[clock] = _inverse(1 + sum(max(bound, one / rate) for bound, one in others))
        else:
            upper = None if own == 0 else rate / own
            joint[clock] = _integral(
                ahead.get(clock, 0), upper, [(bound, one / rate) for bound, one in others]
            )
    return joint


def _integral(lower: Weight, upper: Weight | None, terms: Sequence[tuple[Weight, Weight]]) -> Weight:
    """The integral of dt / (1 + t + sum max(a, t b))^2 over the terms (a, b); no upper end if None."""
    if upper is not None and not upper > lower + (0 if isinstance(upper, Fraction) else NARROW * upper):
        return 0
    bent = [(bound / slope if slope > 0 else None, bound, slope) for bound, slope in terms]
    bends = sorted({bend for bend, _, _ in bent if bend is not None})
    edges = [lower, *(bend for bend in bends if bend > lower and (upper is None or bend < upper))]
    total: Weight = 0
    for start, end in zip(edges, [*edges[1:], upper], strict=True):
        # Between two bends the sum is height + slope t.
        height = 1 + sum(bound for bend, bound, _ in bent if bend is None or bend > start)
        slope = 1 + sum(slope for bend, _, slope in bent if bend is not None and bend <= start)
        at_start = height + slope * start
        if end is None:
            total += _inverse(slope * at_start)
        else:
            total += (end - start) / (at_start * (height + slope * end))
    return total


def _inverse(number: Weight) -> Weight:
    return Fraction(1) / number if isinstance(number, int | Fraction) else 1 / number
