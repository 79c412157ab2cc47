"""The planned samples of Pearson's test see a planted deviation as often as promised, and half of them don't.

The gate's: `test_gate_power`.
"""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from tokenlaw.stats.chi_square import honest_p_value, likelihood_ratio, pearson
from tokenlaw.stats.planner import Plan, noncentrality, plan, power_sentence, smallest_tv
from tokenlaw.stats.pooling import pool_cells

TABLE = {  # statistics study, section 3: N TV^2 at alpha 1e-6, 1e-9, 1e-12, each for beta 0.1 and 0.001
    2: (9.5, 15.9, 13.7, 21.2, 17.7, 26.1),
    8: (13.0, 20.5, 17.5, 26.1, 21.9, 31.3),
    64: (24.2, 35.4, 30.8, 43.0, 36.8, 49.9),
    256: (41.3, 57.9, 51.4, 69.0, 60.3, 78.7),
    4096: (144, 192, 175, 224, 201, 251),
    32768: (394, 516, 476, 600, 546, 670),
    131072: (780, 1018, 942, 1182, 1078, 1318),
}
LEVELS = [(alpha, beta) for alpha in (1e-6, 1e-9, 1e-12) for beta in (0.1, 0.001)]


@pytest.mark.parametrize("cells", TABLE)
def test_table_of_the_study(cells: int) -> None:
    figures = [noncentrality(cells - 1, alpha, beta) / 4 for alpha, beta in LEVELS]
    assert figures == pytest.approx(TABLE[cells], rel=0.005)
    # The product's p-value carries a safety factor, which costs a few percent.
    planned = [plan(1e-3, cells, alpha=alpha, beta=beta).chi_square * 1e-6 for alpha, beta in LEVELS]
    assert planned == pytest.approx(figures, rel=0.05)
    assert all(more > plain for more, plain in zip(planned, figures, strict=True))


def test_noncentrality_gives_the_power() -> None:
    for cells, (alpha, beta) in [(c, level) for c in (2, 300, 10**5) for level in LEVELS]:
        threshold = stats.chi2.isf(alpha, cells - 1)
        power = stats.ncx2.sf(threshold, cells - 1, noncentrality(cells - 1, alpha, beta))
        assert power == pytest.approx(1 - beta, rel=1e-6)


@pytest.mark.parametrize("cells", [2, 64, 10**5])
@pytest.mark.parametrize("tv", [1e-4, 0.01, 0.03])
def test_smallest_tv_inverts_the_plan(tv: float, cells: int) -> None:
    samples = plan(tv, cells).chi_square
    if samples > 20 * cells:
        assert smallest_tv(samples, cells) == pytest.approx(tv, rel=1e-3)
    assert smallest_tv(samples, cells) <= tv


def test_a_plan_names_the_test_that_needs_the_fewest_samples() -> None:
    fine, coarse = plan(0.01, 64), plan(0.5, 100_000)
    assert isinstance(fine, Plan)
    assert (fine.test, fine.samples) == ("chi-square", fine.chi_square)
    assert (coarse.test, coarse.samples) == ("gate", coarse.gate)
    assert fine.chi_square < fine.gate < 1.5 * fine.chi_square
    assert coarse.gate < coarse.chi_square / 300


def test_the_sentence_of_a_plan_says_which_laws_it_is_about() -> None:
    assert plan(0.01, 8).sentence == (
        "With 266626 samples any law at TV >= 0.01 from the exact one would have been refuted with "
        "probability >= 0.999 (alpha 1e-09), if each outcome of the exact law has probability >= 7.51e-05."
    )
    coarse = plan(0.5, 100_000)
    assert coarse.sentence == (
        f"With {coarse.gate} samples on average any law at TV >= 0.5 from the exact one would have been "
        "refuted by the gate with probability >= 0.999 (alpha 1e-09)."
    )


def test_every_cell_needs_its_samples() -> None:
    """With one sample less, everything may be wrong inside pairs of cells and nothing is seen."""
    samples = plan(0.9, 256).chi_square
    assert samples == 20 * 256
    law = np.full(256, 1 / 256)
    wrong = np.where(np.arange(256) % 2 == 0, 2 / 256, 0.0)
    full, short = pool_cells(law, samples), pool_cells(law, samples - 1)
    distances = [np.abs(np.bincount(one.labels, law - wrong)).sum() / 2 for one in (full, short)]
    assert distances == [0.5, 0.0]


@pytest.mark.parametrize("beta", [0.1, 0.001])
@pytest.mark.parametrize("tv", [0.2, 0.3, 0.4, 0.5])
def test_coarse_plans_for_two_cells_are_what_is_needed(tv: float, beta: float) -> None:
    """Exact power under all laws (a, 1 - a) that the plan is about: as promised, and not with half of it."""
    samples = plan(tv, 2, beta=beta).chi_square
    masses = np.linspace(0.1, 1 - tv, 30)
    masses = masses[np.minimum(masses, 1 - masses) >= 20 / samples]
    assert min(power_of_two(mass, tv, samples) for mass in masses) > 1 - 1.25 * beta
    assert min(power_of_two(mass, tv, samples // 2) for mass in masses) < 0.8


def power_of_two(mass: float, tv: float, samples: int) -> float:
    """Probability that (mass + tv, rest) is refuted at 1e-9 where (mass, rest) is exact; not if pooled."""
    if samples * min(mass, 1 - mass) < 20:
        return 0.0
    first = np.arange(samples + 1.0)
    counts, expected = np.stack([first, samples - first], 1), samples * np.array([mass, 1 - mass])
    p_values = honest_p_value(pearson(counts, expected), likelihood_ratio(counts, expected), expected)
    return float(stats.binom.pmf(first, samples, min(mass + tv, 1.0))[p_values <= 1e-9].sum())


@pytest.mark.parametrize("tv", [0.5, 0.6, 0.8, 0.95])
def test_smallest_tv_inverts_coarse_plans(tv: float) -> None:
    samples = noncentrality(1, 5e-10, 1e-3) / least_effect(tv)
    if samples >= 40:
        assert smallest_tv(samples, 2) == pytest.approx(tv, rel=1e-3)
    assert smallest_tv(40, 2, alpha=1e-300) == np.inf


def least_effect(tv: float) -> float:
    """Smaller of chi-square and twice the divergence, over laws of two groups; by search."""
    masses = np.linspace(1e-3, 1, 500)[:-1] * (1 - tv)
    wrong, exact = np.stack([masses + tv, 1 - masses - tv]), np.stack([masses, 1 - masses])
    return float(np.minimum(tv**2 / (masses * (1 - masses)), 2 * stats.entropy(wrong, exact)).min())


def dense_deviation(law: np.ndarray, tv: float) -> np.ndarray:
    """A law at exactly this total variation: half of the mass is raised, half lowered, evenly.

    The shape that Pearson's test sees worst: no other law at this distance has a smaller non-centrality.
    """
    mass = np.cumsum(law)
    side = np.arange(len(law)) % 2 == 0 if np.ptp(law) == 0 else mass <= 0.5
    up, down = law[side].sum(), law[~side].sum()
    return law * np.where(side, 1 + tv / up, 1 - tv / down)


def refuted(law: np.ndarray, wrong: np.ndarray, samples: int, runs: int, seed: int) -> int:
    """How many of `runs` samples from `wrong` are refuted at 1e-9."""
    counts = np.random.default_rng(seed).multinomial(samples, wrong, size=runs).astype(float)
    expected = samples * law
    p_values = honest_p_value(pearson(counts, expected), likelihood_ratio(counts, expected), expected)
    return int(np.count_nonzero(p_values <= 1e-9))


CELLS = [2, 256, *(pytest.param(between, marks=pytest.mark.slow) for between in (8, 64))]
"""Few and many: those between differ in the numbers only."""


@pytest.mark.parametrize("beta", [0.1, 0.001])
@pytest.mark.parametrize("cells", CELLS)
@pytest.mark.parametrize("tv", [0.1, 0.03, 0.01])
def test_a_planted_deviation_is_seen_as_promised(tv: float, cells: int, beta: float) -> None:
    """With the planned samples, and not with half of them, for uniform cells.

    False alarm 1e-6 a case: 2000 runs, more misses than a binomial of probability beta allows. Power: twice
    the promised misses (beta 0.1), or ten times (0.001), fail with probability above 0.999. With half of the
    samples at most three quarters are seen, clearly less than promised: the power is then 0.62 or less, and
    375 or more of 500 have probability 1e-9.
    """
    law = np.full(cells, 1 / cells)
    wrong = dense_deviation(law, tv)
    assert np.abs(wrong - law).sum() / 2 == pytest.approx(tv)
    samples = plan(tv, cells, beta=beta).chi_square
    misses = 2000 - refuted(law, wrong, samples, 2000, seed=15)
    assert misses <= stats.binom.isf(1e-6, 2000, beta)
    assert refuted(law, wrong, samples // 2, 500, seed=16) < 375


@pytest.mark.parametrize("shape", ["dense", "heavy", "light"])
@pytest.mark.parametrize("cells", [8, 64])
def test_other_shapes_are_seen_at_least_as_often(cells: int, shape: str) -> None:
    """TV 0.03 under a zipf law, spread, or moved from or to one cell; beta 0.01.

    An honest plan fails with probability below 1e-6, one that misses five times as often as promised with
    probability above 0.999.
    """
    law = 1 / np.arange(1, cells + 1)
    law /= law.sum()
    if shape == "dense":
        wrong = dense_deviation(law, 0.03)
    else:
        cell, move = (0, -0.03) if shape == "heavy" else (cells - 1, 0.03)
        wrong = law * (1 - move / (1 - law[cell]))
        wrong[cell] = law[cell] + move
    assert np.abs(wrong - law).sum() / 2 == pytest.approx(0.03)
    samples = plan(0.03, cells, beta=0.01).chi_square
    misses = 2000 - refuted(law, wrong, samples, 2000, seed=17)
    assert misses <= stats.binom.isf(1e-6, 2000, 0.01)


def test_sentence_names_the_pooled_mass() -> None:
    plain = power_sentence(270_000, 8)
    assert plain == (
        "With 270000 samples any law at TV >= 0.00994 from the exact one would have been refuted with "
        "probability >= 0.999 (alpha 1e-09)."
    )
    pooled = power_sentence(270_000, 8, pooled_mass=0.005)
    assert "TV >= 0.015 from" in pooled
    assert pooled.endswith("; 0.005 of that is the mass of pooled cells, where a fault may hide.")
    assert power_sentence(270_000, 8, beta=0.1).count("probability >= 0.9 ") == 1


def test_sentence_promises_nothing_where_nothing_is_seen() -> None:
    assert "promise to refute nothing" in power_sentence(40, 2, pooled_mass=0.9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tv": 0.0}, "total variation to plan for must be above 0 and at most 1, but is 0"),
        ({"tv": 1.5}, "at most 1, but is 1.5"),
        ({"tv": float("nan")}, "but is nan"),
        ({"cells": 1}, "1 cells leaves nothing to test"),
        ({"alpha": 0.0}, "alpha must be above 0 and below 1"),
        ({"beta": 1.0}, "beta must be above 0 and below 1"),
        ({"alpha": float("nan")}, "alpha must be"),
        ({"alpha": 0.9, "beta": 0.9}, "must sum to less than 1"),
    ],
)
def test_bad_plans_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(**{"tv": 0.1, "cells": 8, **arguments})


def test_bad_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="100 samples can't fill 8 pooled cells with 20 each"):
        smallest_tv(100, 8)
    with pytest.raises(ValueError, match="number of samples must be positive"):
        smallest_tv(-1, 8)
    with pytest.raises(ValueError, match="pooled mass must be from 0 to 1"):
        power_sentence(1000, 8, pooled_mass=-0.1)
    with pytest.raises(ValueError, match="at least one degree of freedom"):
        noncentrality(0, 0.1, 0.1)
