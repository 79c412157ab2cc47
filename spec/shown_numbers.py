"""Numbers as reports show them."""

from collections.abc import Collection
from decimal import ROUND_CEILING, Context

ROUNDING = 1e-9
"""Share of a number that rounding of doubles may have added to it."""

EXACT_DIGITS = 17
"""With so many digits no two doubles look the same."""

UNSEEN = 1e-6
"""Share of a probability that neither a picture nor three digits show."""


def rounded_up(value: float, digits: int = 2) -> str:
    """A few digits, never below the value but for rounding: no promise is bolder than what was found.

    Parameters
    ----------
    value : 0 or above, finite.
    digits : significant ones that are shown.

    >>> rounded_up(0.0412), rounded_up(0.03), rounded_up(3.01e-8), rounded_up(0.0)
    ('0.042', '0.03', '3.1e-08', '0')
    >>> rounded_up(0.009931, digits=3)
    '0.00994'
    """
    context = Context(prec=digits, rounding=ROUND_CEILING)
    return f"{float(context.create_decimal_from_float(value * (1 - ROUNDING))):.{digits}g}"


def deviation_seen(tv: float, statistics: Collection[str]) -> str:
    """From which deviation on a check would have been refuted: total variation of a law, or share of rows.

    Parameters
    ----------
    tv : the deviation.
    statistics : names of what the check has counted; those of laws have e-values, or a part of alpha.

    >>> deviation_seen(0.153, {"ledger", "power"}), deviation_seen(0.027, {"power"})
    ('TV >= 0.16', 'a share >= 0.027')
    """
    what = "a share" if {"ledger", "log_e"}.isdisjoint(statistics) else "TV"
    return f"{what} >= {rounded_up(tv)}"


def told_apart(one: float, other: float, digits: int = 12) -> tuple[str, str]:
    """Two different numbers in so many digits that they are seen to differ, these at least.

    >>> told_apart(0.5, 0.25), told_apart(0.3, 0.1 + 0.2)
    (('0.5', '0.25'), ('0.29999999999999999', '0.30000000000000004'))
    """
    shown = [(f"{one:.{count}g}", f"{other:.{count}g}") for count in range(digits, EXACT_DIGITS + 1)]
    return next((pair for pair in shown if pair[0] != pair[1]), shown[0])
