"""Dyadic bands and cumulative tails of wide vocabularies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tokenlaw.stats.chi_square import chi_square
from tokenlaw.stats.tails import cumulative_tails, dyadic_exponents, probability_bands


@given(st.floats(5e-324, 1.0))
def test_an_exponent_brackets_its_probability(probability: float) -> None:
    exponent = int(dyadic_exponents(np.array([probability]))[0])
    assert np.ldexp(1.0, -exponent - 1) < probability or exponent == 1074
    assert probability <= np.ldexp(1.0, -exponent)


def wide_law() -> np.ndarray:
    """131072 cells, softmax of normal logits with standard deviation 3."""
    logits = 3 * np.random.default_rng(0).normal(size=131_072)
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def test_bands_of_a_wide_law() -> None:
    law = wide_law()
    bands = probability_bands(law)
    assert 30 < len(bands.law) < 60
    for band in range(len(bands.law)):
        inside = law[bands.labels == band]
        assert len(inside) == 0 or inside.max() <= 2 * inside.min()
    heaviest = [law[bands.labels == band].max() for band in np.unique(bands.labels)]
    assert (np.diff(heaviest) < 0).all()


def cut_below_24_bits(law: np.ndarray) -> np.ndarray:
    """What a uniform number of 24 bits does to the tail: it is never drawn."""
    cut = np.where(law < 2.0**-24, 0, law)
    return cut / cut.sum()


def test_a_cut_tail_is_found_where_the_study_found_it() -> None:
    """Tail cut at 2^-24 (TV 6.5e-4): 6e4 samples by the tails, 2.5e5 by bands.

    The study needs 2.8e4 to 3.9e4 and 1.1e5 to 1.7e5 for power 0.9. The tails can't miss: no draw at all is
    what they see. By the bands a miss has probability below 1e-3.
    """
    law = wide_law()
    wrong, rng = cut_below_24_bits(law), np.random.default_rng(9)
    worst = cumulative_tails(rng.multinomial(60_000, wrong), law)[0]
    assert (worst.observed, worst.largest_probability) == (0, 2.0**-24)
    assert worst.p_value < 1e-9
    bands = probability_bands(law)
    counts = rng.multinomial(250_000, wrong)
    assert chi_square(bands.pool(counts), bands.law).p_value < 1e-9


def test_tails_say_what_they_hold() -> None:
    law = np.array([0.5, 0.25, 0.125, 0.1, 0.025, 0.0])
    tails = {t.largest_probability: t for t in cumulative_tails(np.array([40, 20, 10, 8, 2, 0]), law)}
    assert sorted(tails) == [2.0**-5, 2.0**-3, 2.0**-2]
    assert [(tails[p].cells, tails[p].observed) for p in (0.25, 0.125, 0.03125)] == [(4, 40), (3, 20), (1, 2)]
    assert tails[0.125].expected == pytest.approx(20)
    assert tails[0.03125].p_value == 1


def test_a_missing_tail_has_the_probability_of_no_draw() -> None:
    law = np.array([0.9, 0.1])
    worst = cumulative_tails(np.array([100, 0]), law)[0]
    assert worst.p_value == pytest.approx(2 * 0.9**100, rel=1e-9, abs=0)


def test_one_band_has_no_tails() -> None:
    assert cumulative_tails(np.array([3, 4]), np.array([0.5, 0.5])) == []


def test_false_alarms_at_five_percent() -> None:
    """False alarm 1e-6: at most 5 % of 1000 smallest p-values are below 0.05 (binomial).

    Power: the tails are nested, so without the factor of 2 * 10 some 40 % of them are.
    """
    rng = np.random.default_rng(10)
    law = 1 / np.arange(1, 1000.0)
    law /= law.sum()
    alarms = sum(cumulative_tails(rng.multinomial(3000, law), law)[0].p_value <= 0.05 for _ in range(1000))
    assert 0 < alarms <= stats.binom.isf(1e-6, 1000, 0.05)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match=r"sum to 0\.75"):
        probability_bands(np.array([0.5, 0.25]))
    with pytest.raises(ValueError, match="both must be over the same cells"):
        cumulative_tails(np.array([1]), np.array([0.5, 0.5]))
