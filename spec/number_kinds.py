"""What counts as a number where somebody gives one: numbers of numpy do, True and False don't."""

from numbers import Integral, Real


def is_whole_number(value: object) -> bool:
    """Whether it is an int, or one of numpy's.

    >>> is_whole_number(3), is_whole_number(3.0), is_whole_number(True)
    (True, False, False)
    """
    return not isinstance(value, bool) and isinstance(value, Integral)


def is_real_number(value: object) -> bool:
    """Whether it is an int, a float or a fraction, or one of numpy's; NaN is one.

    >>> is_real_number(0.5), is_real_number("0.5"), is_real_number(1j), is_real_number(True)
    (True, False, False, False)
    """
    return not isinstance(value, bool) and isinstance(value, Real)
