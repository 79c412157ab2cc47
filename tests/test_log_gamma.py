"""The remainder of log gamma, and differences made of it, against sums of logarithms and against mpmath."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.stats.log_gamma import log_gamma_remainder

POSITIVE = st.floats(-12.0, 12.0).map(lambda exponent: 10.0**exponent)


def remainder(x: float) -> float:
    return float(log_gamma_remainder(np.array([x]))[0])


def difference(start: float, steps: float) -> float:
    """``lnΓ(start + steps) - lnΓ(start) - steps ln(start)``, its leading terms taken out by hand."""
    end = start + steps
    return end * math.log1p(steps / start) - steps + remainder(end) - remainder(start)


def precise_remainder(x: float) -> float:
    with mpmath.workdps(60):
        exact = mpmath.mpf(x)
        return float(mpmath.loggamma(exact) - exact * mpmath.log(exact) + exact)


def precise_difference(start: float, steps: float) -> float:
    with mpmath.workdps(60):
        first, more = mpmath.mpf(start), mpmath.mpf(steps)
        return float(mpmath.loggamma(first + more) - mpmath.loggamma(first) - more * mpmath.log(first))


@given(x=POSITIVE)
def test_the_remainder_is_right_to_fourteen_digits(x: float) -> None:
    assert remainder(x) == pytest.approx(precise_remainder(x), rel=1e-14, abs=5e-14)


@pytest.mark.parametrize("x", [1e-300, 1.0, np.nextafter(12.0, 0.0), 12.0, 2.0**52])
def test_the_remainder_at_the_ends_of_its_branches(x: float) -> None:
    assert remainder(x) == pytest.approx(precise_remainder(x), rel=1e-14, abs=5e-14)


@given(start=POSITIVE, steps=st.integers(0, 40))
def test_few_steps_are_a_sum_of_logarithms(start: float, steps: int) -> None:
    product = math.fsum(math.log1p(step / start) for step in range(steps))
    assert difference(start, steps) == pytest.approx(product, rel=1e-13, abs=1e-13)


@given(start=POSITIVE, steps=st.integers(0, 10**12))
def test_many_steps_lose_only_roundings_of_their_number(start: float, steps: int) -> None:
    rounding = 1e-15 * (steps + 100)
    assert difference(start, float(steps)) == pytest.approx(
        precise_difference(start, steps), rel=1e-14, abs=rounding
    )


@pytest.mark.parametrize(("start", "steps"), [(1e8, 1e6), (1e12, 1e12), (3.5, 1e12), (1e-10, 1e12)])
def test_it_beats_the_plain_formula_by_far(start: float, steps: float) -> None:
    exact = precise_difference(start, steps)
    plain = math.lgamma(start + steps) - math.lgamma(start) - steps * math.log(start)
    assert abs(difference(start, steps) - exact) <= max(abs(plain - exact), 1e-15 * exact)
    assert difference(start, steps) == pytest.approx(exact, rel=1e-12)


def test_any_shape_is_kept() -> None:
    table = np.array([[0.5, 20.0, 3.0], [1.0, 2.0, 4e5]])
    expected = [[precise_remainder(x) for x in row] for row in table]
    assert log_gamma_remainder(table) == pytest.approx(np.array(expected), abs=1e-13)
