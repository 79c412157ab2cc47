"""The worst cells are found, with exact tails and honest multiplicity."""

import numpy as np
import pytest
from scipy import stats

from support.known_laws import zipf
from tokenlaw.stats.binomial import lower_tail, smaller_tail, upper_confidence, upper_tail
from tokenlaw.stats.cells import worst_cells


@pytest.mark.parametrize("trials", [0, 1, 7, 300])
@pytest.mark.parametrize("probability", [1e-9, 0.03, 0.5, 0.99])
def test_tails_agree_with_sums_of_probabilities(trials: int, probability: float) -> None:
    successes = np.arange(trials + 1.0)
    mass = stats.binom.pmf(successes, trials, probability)
    lower, upper = np.cumsum(mass), np.cumsum(mass[::-1])[::-1]
    for found, exact in (
        (lower_tail(successes, float(trials), probability), lower),
        (upper_tail(successes, float(trials), probability), upper),
    ):
        normal = exact > 1e-290
        assert found[normal] == pytest.approx(exact[normal], rel=1e-9, abs=0)
        assert (found[~normal] < 1e-289).all()


def test_the_confidence_bound_inverts_the_tail() -> None:
    bound = upper_confidence(np.array([0.0, 3.0, 9.0]), 10.0, 1e-6)
    assert lower_tail(np.array([0.0, 3.0, 9.0]), 10.0, bound) == pytest.approx(1e-6, rel=1e-9, abs=0)
    assert upper_confidence(10.0, 10.0, 1e-6) == 1


def test_the_chosen_cells_are_the_worst_of_all() -> None:
    rng = np.random.default_rng(3)
    law = zipf(5000)
    counts = rng.multinomial(100_000, rng.dirichlet(law * 20_000))
    p_values = np.minimum(1, 2 * 5000 * smaller_tail(counts.astype(float), 100_000.0, law))
    found = worst_cells(counts, law, most=10)
    assert [cell.p_value for cell in found] == pytest.approx(np.sort(p_values)[:10], rel=1e-9, abs=0)
    for cell in found:
        assert cell.p_value == pytest.approx(p_values[cell.cell], rel=1e-9, abs=0)
        assert (cell.observed, cell.expected) == (counts[cell.cell], pytest.approx(100_000 * law[cell.cell]))


def test_the_first_cell_is_the_worst_of_all_though_deviances_order_differently() -> None:
    rng, law = np.random.default_rng(18), zipf(300)
    for _ in range(200):
        counts = rng.multinomial(2000, law)
        least = smaller_tail(counts.astype(float), 2000.0, law).min()
        assert worst_cells(counts, law, most=1)[0].p_value == pytest.approx(
            min(1, 600 * least), rel=1e-9, abs=0
        )


def test_one_wrong_cell_among_a_hundred_thousand_is_named() -> None:
    """Missed with probability below 1e-9: the light cell gains 1000 draws where 1 is expected."""
    law = zipf(100_000)
    wrong = law.copy()
    wrong[70_000] += 0.001
    counts = np.random.default_rng(4).multinomial(10**6, wrong / wrong.sum())
    worst = worst_cells(counts, law)
    assert len(worst) == 8
    assert worst[0].cell == 70_000
    assert worst[0].p_value < 1e-100


def test_an_impossible_draw_comes_first() -> None:
    worst = worst_cells(np.array([900, 100, 1]), np.array([0.5, 0.5, 0.0]))
    assert (worst[0].cell, worst[0].observed, worst[0].p_value) == (2, 1, 0)
    assert len(worst) == 3


def test_a_certain_cell_deviates_in_no_way() -> None:
    assert worst_cells(np.array([5, 0]), np.array([1.0, 0.0]))[0].p_value == 1


def test_false_alarms_at_five_percent() -> None:
    """False alarm 1e-6: at most 5 % of 1000 worst p-values are below 0.05 (binomial).

    Power: without the factor for cells and sides nearly all of them are.
    """
    rng = np.random.default_rng(5)
    law = zipf(50)
    alarms = sum(worst_cells(rng.multinomial(500, law), law, most=1)[0].p_value <= 0.05 for _ in range(1000))
    assert 0 < alarms <= stats.binom.isf(1e-6, 1000, 0.05)


def test_bad_input_is_refused() -> None:
    law = np.array([0.5, 0.5])
    with pytest.raises(ValueError, match="at least one cell, not 0"):
        worst_cells(np.array([1, 2]), law, most=0)
    with pytest.raises(ValueError, match="whole number"):
        worst_cells(np.array([-1, 2]), law)
