"""What a check that holds would have seen, in words."""

from collections.abc import Sequence

from tokenlaw.spec.shown_numbers import rounded_up
from tokenlaw.stats.measures import SUPPORT
from tokenlaw.stats.power import MISS
from tokenlaw.stats.verifier_checks import BOUNDARY, CALLS, PREFIXES, PROTOCOL, REPLAY, ROW_SEEDS, ROWS

NO_FIGURE = "No smallest deviation is known of a test with a tolerance; law/chi-square promises one."

_OF_A_LAW = ("any law at TV >= {} from the exact one", "kinds of rows")

_OF_PAIRS = ("a share >= {} of rows that begin as copies of others", "comparisons")

_DEVIATIONS = {
    SUPPORT: ("a mass >= {} on impossible outcomes", "kinds of rows"),
    PREFIXES: (
        "any law at TV >= {} from the exact one, of a token and the class of those before it",
        "scenarios",
    ),
    ROWS: _OF_PAIRS,
    CALLS: _OF_PAIRS,
}
"""What the total variation of a check is about, and of what there are several."""

ONE_BY_ONE = {
    PROTOCOL: ("rows", "illegal answers"),
    REPLAY: ("rows asked twice", "other tokens"),
    ROW_SEEDS: ("rows with seeds asked again in other company", "other tokens"),
    BOUNDARY: ("decisions that rounding leaves certain", "wrong ones"),
}
"""Checks without chance: what each looks at one by one, and what is wrong with one that refutes. How many
there were is the first of the events that exercise the check."""


def deviation(check: str, tv: float) -> str:
    """What the check is refuted by, if it is as large as this."""
    what, _ = _DEVIATIONS.get(check, _OF_A_LAW)
    return what.format(rounded_up(tv))


def promised(check: str, samples: int, visible: Sequence[float], alpha: float) -> str:
    """The sentence of a check by samples.

    Parameters
    ----------
    visible : for each law that was tested, the smallest total variation that would have been refuted; some
        are below 1.
    alpha : the check's part.
    """
    told = [tv for tv in visible if tv < 1]
    rest, (_, where) = len(visible) - len(told), _DEVIATIONS.get(check, _OF_A_LAW)
    return (
        f"With {samples} samples {deviation(check, max(told))}, in any of {len(told)} "
        f"{where}, would have been refuted with probability >= {1 - MISS} (alpha {alpha:.2g}); in the "
        f"best of them from {rounded_up(min(told))} on"
        + (f". Of {rest} more {where} there were too few samples to promise anything." if rest else ".")
    )


def promised_one_by_one(check: str, count: int, share: float) -> str:
    """The sentence of a check without chance, which looked at so many and would have seen such a share."""
    what, wrong = ONE_BY_ONE[check]
    return (
        f"With {count} {what}, {wrong} in a share >= {rounded_up(share)} of them, each independently, would "
        f"have been refuted with probability >= {1 - MISS}."
    )
