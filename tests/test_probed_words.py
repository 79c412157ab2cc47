"""What a probe has found beside what is right: in digits that show the difference."""

import math

import pytest

from tokenlaw.spec.shown_numbers import told_apart
from tokenlaw.stats.probing_words import _below, _compared


@pytest.mark.parametrize("one", [1.0, 0.1, 1e-300, 3e17, -2.5])
@pytest.mark.parametrize("towards", [math.inf, -math.inf])
def test_neighbouring_doubles_are_told_apart(one: float, towards: float) -> None:
    other = math.nextafter(one, towards)
    shown = told_apart(one, other)
    assert shown[0] != shown[1]
    assert [float(text) for text in shown] == pytest.approx([one, other], rel=1e-15)


def test_no_more_digits_than_that_takes() -> None:
    assert told_apart(1 / 3, 0.25) == ("0.333333333333", "0.25")
    assert told_apart(1 / 3, 1 / 3) == ("0.333333333333", "0.333333333333")


def test_a_threshold_and_odds_differ_from_what_is_right() -> None:
    right = 0.3
    found = right + 1e-15
    assert _below(found, found, right) != _below(right, right, found)
    assert _compared(found, right, 2, "has") != _compared(right, found, 2, "has")
    assert _compared(0.75, 0.5, 2, "has") == "has 3 times the probability of token 2"
