"""Plain runs against a law, by their counts alone: what is unlikely, impossible, or one seed."""

from fractions import Fraction

import numpy as np
import pytest

from tokenlaw.prove_agreement import agreement
from tokenlaw.prove_plain_runs import PlainRuns
from tokenlaw.stats.enumeration.law import Law, Raised


def test_frequencies_of_a_right_law_are_refuted_as_rarely_as_is_said() -> None:
    """2,000 samples of 300, seeded: a p-value of at most 0.01 comes 20 times at most on average.

    More than 48 times it comes with a probability below 1e-7, and one of at most 1e-9 with one below 1e-5.
    """
    generator = np.random.default_rng(5)
    weights = np.array([0.5, 0.2, 0.1, 0.1, 0.05, 0.03, 0.01, 0.01])
    law = Law(dict(enumerate(weights.tolist())))
    samples = generator.multinomial(300, weights, size=2_000)
    found = [agreement(PlainRuns({}, dict(enumerate(sample.tolist()))), law) for sample in samples]
    p_values = np.array([each.p_value for each in found])
    assert (p_values <= 0.01).sum() <= 48
    assert not any(each.unlikely or each.impossible for each in found)


@pytest.mark.parametrize(
    ("counts", "impossible"), [({0: 50, 1: 49, 2: 1}, False), ({0: 40, 1: 40, 2: 20}, True)]
)
def test_what_was_left_open_may_be_any_outcome(counts: dict[int, int], impossible: bool) -> None:
    law = Law({0: 0.5, 1: 0.499}, unexplored=0.001)
    assert agreement(PlainRuns({}, counts), law).impossible == impossible
    assert agreement(PlainRuns({}, counts), Law({0: 0.5, 1: 0.5}, neglected=0.001)).impossible == impossible
    assert agreement(PlainRuns({}, counts), Law({0: 0.5, 1: 0.5})).impossible


def test_bounds_of_probabilities_are_tested_from_outside() -> None:
    law = Law({0: Fraction(1, 2), 1: Fraction(1, 4)}, unexplored=Fraction(1, 4))
    assert not agreement(PlainRuns({}, {0: 740, 1: 260}), law).unlikely
    assert agreement(PlainRuns({}, {0: 900, 1: 100}), law).unlikely


def test_what_is_raised_is_compared_by_its_type() -> None:
    law = Law({Raised("ValueError: 0.5 was drawn"): 0.5, 0: 0.5})
    found = agreement(PlainRuns({Raised("ValueError: 0.1 was drawn"): 1}, {0: 1}), law)
    assert not found.impossible
    assert agreement(PlainRuns({Raised("KeyError: 1"): 1}, {0: 1}), law).stray == Raised("KeyError")


def test_one_seed_in_all_runs_is_no_matter_of_frequencies() -> None:
    law = Law({0: 0.9, 1: 0.1})
    found = agreement(PlainRuns({}, {1: 50}), law)
    assert found.alike
    assert not found.unlikely
    assert not agreement(PlainRuns({}, {0: 50}), law).alike
    assert agreement(PlainRuns({}, {0: 200}), law).alike  # 0.9^200 is less than 1e-9


def test_what_was_left_out_may_be_the_reason_of_any_frequency() -> None:
    """Of 650 heads among 1,000 Pearson's test alone would say p = 2e-21."""
    found = agreement(PlainRuns({}, {0: 650, 1: 350}), Law({0: 0.5, 1: 0.5}, neglected=0.2))
    assert not found.unlikely
    assert agreement(PlainRuns({}, {0: 650, 1: 350}), Law({0: 0.5, 1: 0.5})).unlikely


def test_what_was_left_out_hides_what_pearson_would_see() -> None:
    shares = {0: 520, 1: 480}
    assert agreement(PlainRuns({}, shares), Law({0: 0.5, 1: 0.5})).visible < 0.2
    assert agreement(PlainRuns({}, shares), Law({0: 0.5, 1: 0.5}, neglected=1e-9)).visible == np.inf


def test_runs_that_were_cut_short_are_no_sample() -> None:
    """When they end may depend on what came; what can't be is told all the same."""
    law = Law({0: 0.5, 1: 0.5})
    assert not agreement(PlainRuns({}, {0: 900, 1: 100}, cut=True), law).tested
    assert agreement(PlainRuns({}, {0: 900, 2: 100}, cut=True), law).impossible
