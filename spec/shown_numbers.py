"""Numbers as reports show them."""

from decimal import ROUND_CEILING, Context

ROUNDING = 1e-9
"""Share of a number that rounding of doubles may have added to it."""

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


def deviation_seen(tv: float, *, of_a_law: bool) -> str:
    """From which deviation on a check would have been refuted: total variation of a law, or share of rows.

    >>> deviation_seen(0.153, of_a_law=True), deviation_seen(0.027, of_a_law=False)
    ('TV >= 0.16', 'a share >= 0.027')
    """
    return f"{'TV' if of_a_law else 'a share'} >= {rounded_up(tv)}"
