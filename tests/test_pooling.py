"""Pooled cells are heavy enough, keep the counts, and say what they hide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.stats.pooling import LEAST_EXPECTED, group_by, pool_cells


def laws(smallest: int = 1) -> st.SearchStrategy[np.ndarray]:
    """Laws of up to 60 cells over many orders of magnitude, some cells impossible."""
    weight = st.one_of(st.just(0.0), st.floats(1e-9, 1.0))
    weights = st.lists(weight, min_size=smallest, max_size=60).filter(lambda values: sum(values) > 0)
    return weights.map(lambda values: np.array(values) / sum(values))


@given(laws(), st.integers(1, 10**6), st.floats(0.5, 200))
def test_every_group_is_heavy_enough_unless_it_is_the_only_one(
    law: np.ndarray, samples: int, least: float
) -> None:
    grouping = pool_cells(law, samples, least=least)
    expected = samples * grouping.law[grouping.law > 0]
    assert len(expected) == 1 or expected.min() >= least * (1 - 1e-9)


@given(laws(), st.integers(1, 10**6))
def test_heavy_cells_stay_single_but_for_one_that_takes_what_is_left(law: np.ndarray, samples: int) -> None:
    grouping = pool_cells(law, samples)
    sizes = np.bincount(grouping.labels)
    heavy = samples * law >= LEAST_EXPECTED
    assert np.count_nonzero(sizes[grouping.labels[heavy]] > 1) <= 1


@given(laws(), st.integers(1, 10**6))
def test_groups_are_contiguous_in_order_of_probability(law: np.ndarray, samples: int) -> None:
    labels = pool_cells(law, samples).labels[np.argsort(-law, kind="stable")]
    assert set(np.diff(labels)) <= {0, 1}


@given(laws(), st.integers(1, 10**4), st.data())
def test_counts_are_kept_and_impossible_cells_stay_apart(
    law: np.ndarray, samples: int, data: st.DataObject
) -> None:
    counts = np.array(data.draw(st.lists(st.integers(0, 99), min_size=len(law), max_size=len(law))))
    grouping = pool_cells(law, samples)
    pooled = grouping.pool(counts)
    assert pooled.sum() == counts.sum()
    assert pooled[grouping.law == 0].sum() == counts[law == 0].sum()
    assert grouping.law.sum() == pytest.approx(1)


@given(laws(2), laws(2), st.integers(1, 10**5))
def test_at_most_the_pooled_mass_of_a_distance_is_lost(
    law: np.ndarray, other: np.ndarray, samples: int
) -> None:
    size = min(len(law), len(other))
    law, other = law[:size] + 1e-12, other[:size] + 1e-12
    law, other = law / law.sum(), other / other.sum()
    grouping = pool_cells(law, samples)
    seen = np.abs(np.bincount(grouping.labels, other) - grouping.law).sum() / 2
    assert seen >= np.abs(other - law).sum() / 2 - grouping.pooled_mass - 1e-9


def test_few_samples_leave_one_group() -> None:
    grouping = pool_cells(np.array([0.5, 0.3, 0.2]), samples=19)
    assert grouping.labels.tolist() == [0, 0, 0]
    assert grouping.pooled_mass == 1


def test_nothing_is_pooled_where_all_cells_are_heavy() -> None:
    grouping = pool_cells(np.array([0.25, 0.75]), samples=80)
    assert grouping.labels.tolist() == [1, 0]
    assert grouping.pooled_mass == 0


def test_bad_input_is_refused() -> None:
    law = np.array([0.5, 0.5])
    with pytest.raises(ValueError, match=r"sum to 0\.9"):
        pool_cells(np.array([0.5, 0.4]), 10)
    with pytest.raises(ValueError, match="number of samples"):
        pool_cells(law, float("nan"))
    with pytest.raises(ValueError, match="least expected count"):
        pool_cells(law, 10, least=0)
    with pytest.raises(ValueError, match="3 counts, but 2 cells"):
        pool_cells(law, 10).pool(np.array([1, 2, 3]))
    with pytest.raises(ValueError, match="3 labels, but the law has 2"):
        group_by(np.array([0, 1, 1]), law)
    with pytest.raises(ValueError, match="start at 0"):
        group_by(np.array([0, -1]), law)
