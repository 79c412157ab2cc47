"""The gate for laws after classes of prefixes: an e-value to the last digit, and what it sees."""

import itertools
import math

import numpy as np
import pytest
from scipy import special

from tokenlaw.stats.conditional_gate import class_log_es, conditional_log_e
from tokenlaw.stats.gates import DIRICHLET_CONCENTRATIONS

FIRST = np.array([0.7, 0.3])
SECOND = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]])
"""The law of a second token after each first one."""


def counted(rows: tuple[tuple[int, int], ...]) -> tuple[np.ndarray, np.ndarray]:
    """Counts and laws of rows of two tokens; the class of the second one is the first one."""
    counts, laws = np.zeros((2, 2, 3), dtype=np.int64), np.zeros((2, 2, 3))
    laws[0, :, :2], laws[1] = FIRST, SECOND
    for first, second in rows:
        counts[0, 0, first] += 1
        counts[1, first, second] += 1
    return counts, laws


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_the_mean_is_one_however_often_a_class_is_met(rows: int) -> None:
    """Summed over everything that can happen: how often a class is met depends on the first tokens."""
    mean = 0.0
    for tokens in itertools.product(itertools.product(range(2), range(3)), repeat=rows):
        mass = math.prod(FIRST[first] * SECOND[first, second] for first, second in tokens)
        mean += mass * math.exp(conditional_log_e(*counted(tokens)))
    assert mean == pytest.approx(1, abs=1e-12)


def test_the_mean_is_one_whatever_law_the_classes_have() -> None:
    """The first token isn't drawn from the law it is thought to have; its own counts are left out."""
    wrong, mean = np.array([0.05, 0.95]), 0.0
    for tokens in itertools.product(itertools.product(range(2), range(3)), repeat=3):
        mass = math.prod(wrong[first] * SECOND[first, second] for first, second in tokens)
        counts, laws = counted(tokens)
        mean += mass * math.exp(conditional_log_e(counts[1:], laws[1:]))
    assert mean == pytest.approx(1, abs=1e-12)


def test_each_class_has_the_likelihood_ratio_of_its_dirichlet_mixture() -> None:
    generator = np.random.default_rng(0)
    laws = generator.dirichlet(np.ones(6), 5)
    sizes = (1, 7, 40, 300, 0)
    counts = np.stack([generator.multinomial(size, law) for size, law in zip(sizes, laws, strict=True)])
    found = class_log_es(counts, laws)
    for at, concentration in enumerate(DIRICHLET_CONCENTRATIONS[:6]):
        shapes = concentration * laws
        exact = (special.gammaln(shapes + counts) - special.gammaln(shapes)).sum(-1)
        exact -= special.xlogy(counts, laws).sum(-1)
        total = counts.sum(-1)
        exact += special.gammaln(concentration) - special.gammaln(concentration + total)
        np.testing.assert_allclose(found[:, at], exact, rtol=1e-7, atol=1e-7)


def test_what_cannot_happen_refutes_and_nothing_says_nothing() -> None:
    counts, laws = counted(())
    assert conditional_log_e(counts, laws) == 0
    counts[0, 1, 2] = 1
    assert conditional_log_e(counts, laws) == math.inf
    with pytest.raises(ValueError, match=r"the counts have the shape \(1, 2, 3\), the laws \(2, 2, 3\)"):
        conditional_log_e(counts[1:], laws)


def test_one_class_one_position_or_all_may_be_wrong() -> None:
    """Each is found beside a hundred classes that are right, by 1e9; right ones have 1e-9 to be found."""
    generator = np.random.default_rng(1)
    laws = generator.dirichlet(np.full(8, 2.0), (5, 20))
    other = generator.dirichlet(np.full(8, 2.0), (5, 20))
    needed = 9 * math.log(10)

    def log_e(share: np.ndarray) -> float:
        mixed = laws + share[..., None] * (other - laws)
        return conditional_log_e(generator.multinomial(300, mixed), laws)

    share = np.zeros((5, 20))
    assert log_e(share) < needed
    assert log_e(share + 0.25) > needed
    share[2] = 0.4
    assert log_e(share) > needed
    share[2] = 0
    share[3, 7] = 1
    assert log_e(share) > needed
