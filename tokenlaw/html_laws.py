"""Laws as paired bars: what should come above what came, with the interval of what was measured."""

from dataclasses import dataclass

from tokenlaw.html_data import Outcome, ShownLaw
from tokenlaw.spec.shown_numbers import UNSEEN


@dataclass(frozen=True)
class Bar:
    """One outcome: lengths in percent of the width of the figure, and numbers in words.

    An interval whose upper end is at 100 runs out of the picture.

    ``verdict`` says what the picture shows, for who can't see it, and beside its colour: ``impossible``,
    ``too often``, ``too rare`` or nothing.
    """

    outcome: str
    exact: float
    found: float
    low: float | None
    high: float | None
    exact_told: str
    found_told: str
    interval_told: str
    verdict: str


@dataclass(frozen=True)
class LawFigure:
    """A law, ready to be drawn."""

    heading: str
    caption: str
    bars: tuple[Bar, ...]
    others: tuple[str, str, str] | None
    path: tuple[str, ...]
    proved: bool


def figure(law: ShownLaw) -> LawFigure:
    """The figure of a law; outcomes stay in their order, the most telling first."""
    # Intervals of rare outcomes may run out of the picture: they would make all else too small to see.
    longest = max((max(one.exact, one.found) for one in law.outcomes), default=0.0)
    highest = max((one.high or 0.0 for one in law.outcomes), default=0.0)
    largest = min(max(longest, 1.02 * highest), 1.5 * longest) or 1.0
    bars = tuple(_bar(one, largest) for one in law.outcomes)
    proved = law.counted is None
    others = None
    if law.others.outcomes != 0 and law.others.exact is not None and law.others.found is not None:
        number = "possible outcomes" if law.others.outcomes is None else f"{law.others.outcomes:,} more"
        others = number, probability(law.others.exact), probability(law.others.found)
    return LawFigure(law.what, _caption(law, proved=proved), bars, others, law.path, proved)


def _caption(law: ShownLaw, *, proved: bool) -> str:
    where = f"{law.where[:1].upper()}{law.where[1:]}. " if law.where else ""
    if proved:
        how = law.how or "Both laws are exact: every path of the random numbers was run."
        return f"{where}{how} First what adds most to the total variation."
    interval = f"; lines are {law.confidence:.1%} intervals (exact binomial)" if law.confidence else ""
    return (
        f"{where}{law.counted:,} samples{interval}. What speaks most against the law, first what adds most "
        "to the total variation."
    )


def _bar(one: Outcome, largest: float) -> Bar:
    def length(value: float) -> float:
        return round(100 * min(max(value / largest, 0.0), 1.0), 2)

    interval = one.low is not None and one.high is not None
    count = "" if one.count is None else f" ({one.count:,}\u00d7)"
    return Bar(
        one.outcome,
        length(one.exact),
        length(one.found),
        length(one.low) if one.low is not None and interval else None,
        length(one.high) if one.high is not None and interval else None,
        "impossible" if not one.exact else probability(one.exact),
        probability(one.found) + count,
        f"{probability(one.low or 0.0)} to {probability(one.high or 0.0)}" if interval else "",
        verdict_of(one),
    )


def verdict_of(one: Outcome) -> str:
    """What is wrong with an outcome; with an interval only what lies outside; else all but rounding.

    >>> verdict_of(Outcome("a", 0.0, 0.1)), verdict_of(Outcome("a", 0.2, 0.1, 10, 0.05, 0.3))
    ('impossible', '')
    >>> verdict_of(Outcome("a", 0.2, 0.1, 1000, 0.08, 0.12)), verdict_of(Outcome("a", 0.2, 0.3))
    ('too rare', 'too often')
    >>> verdict_of(Outcome("a", 0.2, 0.2 + 1e-16))
    ''
    """
    if not one.exact and one.found:
        return "impossible"
    if one.low is None and abs(one.found - one.exact) <= UNSEEN * one.exact:
        return ""
    low = one.found if one.low is None else one.low
    high = one.found if one.high is None else one.high
    if one.exact < low:
        return "too often"
    return "too rare" if one.exact > high else ""


def probability(value: float) -> str:
    """A probability with three digits.

    >>> probability(0.12345), probability(1.0), probability(3.21e-9)
    ('0.123', '1', '3.21e-09')
    """
    return f"{value:.3g}"
