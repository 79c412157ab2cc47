"""What mutation testing of how numbers are shown found untested: that no rounding shows, and what is seen."""

import pytest

from tokenlaw.html_data import Outcome
from tokenlaw.html_laws import verdict_of
from tokenlaw.spec.shown_numbers import deviation_seen, rounded_up, told_apart


@pytest.mark.parametrize("value", [0.03, 0.1 + 0.2, 0.042, 1.0, 7e-9])
def test_what_rounding_added_is_not_rounded_up(value: float) -> None:
    """A share of 1e-9 may be rounding, more isn't."""
    shown = rounded_up(value)
    assert float(shown) == pytest.approx(value)
    assert rounded_up(value * (1 + 9e-10)) == shown
    assert float(rounded_up(value * (1 + 2e-9))) > value * 1.001


def test_a_deviation_is_shown_with_two_digits_and_never_smaller_than_it_was() -> None:
    assert deviation_seen(0.0411, {"log_e"}) == "TV >= 0.042"
    assert deviation_seen(0.0411, {"samples"}) == "a share >= 0.042"


def test_equal_numbers_are_shown_alike() -> None:
    """In no more digits than were asked for, also where 17 were."""
    assert told_apart(0.1, 0.1, digits=17) == ("0.10000000000000001", "0.10000000000000001")
    assert told_apart(1 / 3, 1 / 3, digits=3) == ("0.333", "0.333")


@pytest.mark.parametrize(
    ("off", "verdict"), [(0.9e-6, ""), (-0.9e-6, ""), (1.1e-6, "too often"), (-1.1e-6, "too rare")]
)
def test_a_millionth_of_a_probability_is_not_seen(off: float, verdict: str) -> None:
    assert verdict_of(Outcome("a", 0.2, 0.2 * (1 + off))) == verdict
