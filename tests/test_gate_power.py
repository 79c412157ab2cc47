"""The planned samples of the gate see what it sees worst as often as promised, and half of them don't.

Simulated with Poisson counts and the gate itself; counts that came before aren't judged again.
"""

import math

import numpy as np
import pytest
from scipy import stats

from tokenlaw.stats.gate_power import Spread, gate_miss, gate_samples
from tokenlaw.stats.gates import GammaPoissonGate
from tokenlaw.stats.planner import plan

BETA = 0.1
NEEDED = math.log(1e9)

BETWEEN = [(2, 0.5), (3, 0.3), (8, 0.9), (64, 0.1)]
GRID = [
    *((2, 0.01), (2, 0.9), (8, 0.01), (8, 0.4), (256, 0.3)),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in BETWEEN),
]
"""Few and many outcomes, small and large deviations; those between differ in the numbers only."""


def misses(law: np.ndarray, wrong: np.ndarray, samples: float, runs: int, seed: int) -> int:
    """In how many of `runs` the gate doesn't refute the law, with samples of the wrong one."""
    gate, generator, known = GammaPoissonGate(law), np.random.default_rng(seed), dict[bytes, bool]()
    for counts in (drawn := generator.poisson(samples * wrong, (runs, len(law)))):
        if counts.tobytes() not in known:
            known[counts.tobytes()] = gate.log_e(counts, samples) < NEEDED
    return sum(known[counts.tobytes()] for counts in drawn)


def laws_of(spread: Spread) -> tuple[np.ndarray, np.ndarray]:
    """The exact law and the wrong one, for whole numbers of cells."""
    (raised, high, up), (others, low, down) = spread.groups()
    sizes = [round(raised), round(others)]
    return np.repeat([high, low], sizes), np.repeat([high * up, low * down], sizes)


def worst_spread(cells: int, tv: float, samples: float) -> Spread:
    """The one that is likeliest to be missed, of 90 at most."""
    counts = sorted({min(max(1, round(cells * part / 8)), cells - 1) for part in range(1, 8)})
    masses = (1 - tv) * np.linspace(0.2, 0.9, 13)
    spreads = [Spread(cells, tv, float(mass), count) for mass in masses for count in counts]
    return max(spreads, key=lambda spread: gate_miss(samples, spread, 1e-9))


@pytest.mark.parametrize(("cells", "tv"), GRID)
def test_the_worst_spread_deviation_is_seen_as_promised_and_not_with_half(cells: int, tv: float) -> None:
    """Promised are 9 of 10; power of half of the samples is clearly below a half.

    False alarms: 400 runs, more misses than a binomial of probability 0.11 allows, 1e-6 a case. Half of the
    samples would see more than 60 of 100 by chance with probability below 0.03 even if they saw a half of the
    deviations, and below 1e-9 at the 0.3 that they do see. Power: a plan that misses a quarter fails with
    probability above 0.99, one that is twice too large always.
    """
    samples = gate_samples(tv, cells, beta=BETA)
    law, wrong = laws_of(worst_spread(cells, tv, samples))
    assert np.abs(wrong - law).sum() / 2 == pytest.approx(tv)
    assert misses(law, wrong, samples, 400, seed=1) <= stats.binom.isf(1e-6, 400, 1.1 * BETA)
    assert misses(law, wrong, samples / 2, 100, seed=2) >= 40


@pytest.mark.parametrize("cells", [1_000, 10_000])
def test_many_cells_with_less_than_one_sample_each(cells: int) -> None:
    """TV 0.5, half of the cells empty: 40 runs miss 4; more than 13 have a probability of 1e-4.

    With half of the samples less than 1 of 10 is seen; more than 10 of 20 have a probability below 1e-5.
    """
    samples = gate_samples(0.5, cells, beta=BETA)
    assert samples < cells
    law, wrong = laws_of(Spread(cells, 0.5, 0.5, cells // 2))
    assert misses(law, wrong, samples, 40, seed=3) <= 13
    assert misses(law, wrong, samples / 2, 20, seed=4) >= 10


def _spread(law: np.ndarray, tv: float) -> np.ndarray:
    heavy = np.cumsum(law) - law / 2 <= 0.5
    mass = law[heavy].sum()
    return law * np.where(heavy, 1 + tv / mass, 1 - tv / (1 - mass))


def _moved(law: np.ndarray, cell: int, move: float) -> np.ndarray:
    wrong = law * (1 - move / (1 - law[cell]))
    wrong[cell] = law[cell] + move
    return wrong


SHAPES = {
    "spread": _spread,
    "heaviest cell loses": lambda law, tv: _moved(law, 0, -tv),
    "rarest cell gains": lambda law, tv: _moved(law, len(law) - 1, tv),
    "two cells swap": lambda law, tv: law + tv * (np.arange(len(law)) == 1) - tv * (np.arange(len(law)) == 0),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("cells", "power"),
    [
        (8, 0.5),
        (64, 2.0),
        *(pytest.param(cells, 1.0, marks=pytest.mark.slow) for cells in (64, 256)),
    ],
)
def test_other_shapes_are_seen_at_least_as_often(cells: int, power: float, shape: str) -> None:
    """TV 0.1 under laws 1 / rank^power, the rarest outcome of which is expected less than once in some.

    False alarms: as above, 200 runs; power: a plan that misses a third fails with probability above 0.99.
    """
    law = 1 / np.arange(1, cells + 1) ** power
    law /= law.sum()
    wrong = SHAPES[shape](law, 0.1)
    assert np.abs(wrong - law).sum() / 2 == pytest.approx(0.1)
    samples = gate_samples(0.1, cells, beta=BETA)
    assert misses(law, wrong, samples, 200, seed=5) <= stats.binom.isf(1e-6, 200, BETA)


@pytest.mark.parametrize(("cells", "tv"), [(2, 0.02), (64, 0.005), (1_000, 0.001)])
def test_counts_of_many_samples_are_normal(cells: int, tv: float) -> None:
    """Where both ways to know the miss apply they agree: E is 10,000 and a little more, or less."""
    spread = Spread(cells, tv, 0.5, 0.5 * cells)
    below, above = (gate_miss(cells * 1e4 * factor, spread, 1e-9) for factor in (0.9999, 1.0001))
    assert below == pytest.approx(above, rel=0.05, abs=1e-9)


@pytest.mark.parametrize("cells", [2, 10**6])
def test_more_is_needed_for_smaller_deviations_errors_and_for_more_outcomes(cells: int) -> None:
    sizes = [gate_samples(tv, cells) for tv in (1.0, 0.5, 0.01, 1e-4)]
    assert sizes == sorted(sizes)
    usual = gate_samples(0.01, cells)
    assert gate_samples(0.01, cells, beta=0.5) < usual < gate_samples(0.01, cells, alpha=1e-12)
    assert usual < gate_samples(0.01, 2 * cells)
    assert plan(0.01, cells).gate == usual
