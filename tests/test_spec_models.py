"""Table models, the exact law of target-only decoding, and sampling from it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tokenlaw.spec.models import TableModel, in_floats, random_table_model
from tokenlaw.spec.sampling import ProcessedModel, SamplingParameters, draw, sample, target_only_law


def test_target_only_law_is_the_chain_rule() -> None:
    model = random_table_model(3, 2, seed=11)
    law = target_only_law(model, (1, 2), 3)
    assert sum(law.values()) == 1
    assert all(law.values())
    for (first, second, third), probability in law.items():
        assert probability == model((1, 2))[first] * model((2, first))[second] * model((first, second))[third]


def test_target_only_law_with_parameters() -> None:
    model = ProcessedModel(lambda _: (0.5, 0.25, 0.25), SamplingParameters(top_k=1))
    assert target_only_law(model, (), 3) == {(0, 0, 0): 1.0}
    assert target_only_law(model, (), 0) == {(): 1.0}


def test_draw_gives_each_token_an_interval() -> None:
    law = tuple(Fraction(weight, 4) for weight in (0, 1, 0, 3, 0))
    below = math.nextafter(0.25, 0)
    assert [draw(law, uniform) for uniform in (0.0, below, 0.25, math.nextafter(1, 0))] == [1, 1, 3, 3]
    rounded_down = (0.5, 0.5 - 1e-10, 0.0)
    assert draw(rounded_down, math.nextafter(1, 0)) == 1


def test_each_sample_sees_the_prompt_and_the_tokens_before_it() -> None:
    counting = TableModel(1, {(): (1.0, 0.0), (0,): (0.0, 1.0), (1,): (1.0, 0.0)})
    assert sample(counting, (1,), 4, np.random.default_rng(0)) == (0, 1, 0, 1)


def test_samples_follow_the_law() -> None:
    """Fixed seed; each frequency is within five standard deviations."""
    model = in_floats(random_table_model(3, 1, seed=3))
    law, generator, count = target_only_law(model, (0,), 2), np.random.default_rng(7), 4000
    drawn = [sample(model, (0,), 2, generator) for _ in range(count)]
    assert set(drawn) <= set(law)
    for tokens, probability in law.items():
        deviation = math.sqrt(count * probability * (1 - probability))
        assert abs(drawn.count(tokens) - count * probability) <= 5 * deviation
    again = np.random.default_rng(7)
    assert drawn[:20] == [sample(model, (0,), 2, again) for _ in range(20)]


def test_random_models_have_zeros_ties_and_one_hot_rows() -> None:
    rows = [row for seed in range(20) for row in random_table_model(3, 1, seed).rows.values()]
    assert any(0 in row and 1 not in row for row in rows)
    assert any(max(row) == 1 for row in rows)
    assert any(0 < row[0] == row[1] for row in rows)
    assert random_table_model(3, 1, seed=0) != random_table_model(3, 1, seed=1)


def test_a_table_looks_at_the_last_tokens_only() -> None:
    model = random_table_model(3, 2, seed=4)
    assert model((0, 0, 1, 2)) == model.rows[(1, 2)]
    assert model((2,)) == model.rows[(2,)]
    longer = random_table_model(3, 3, seed=4)
    assert longer((1, 0)) == longer.rows[(1, 0)]
    assert random_table_model(3, 0, seed=4)((0, 1)) == random_table_model(3, 0, seed=4)(())


@pytest.mark.parametrize(
    ("order", "rows", "message"),
    [
        (-1, {(): (1.0,)}, "order of a table model must be at least 0, but is -1"),
        (0, {(0,): (1.0,)}, r"needs a row for the empty context \(\)"),
        (1, {(): (0.5, 0.5), (0,): (0.5, 0.5)}, r"missing: \[\(1,\)\], superfluous: \[\]"),
        (0, {(): (0.5, 0.5), (1,): (0.5, 0.5)}, r"missing: \[\], superfluous: \[\(1,\)\]"),
        (1, {(): (1.0,), (0,): (0.5, 0.5)}, r"row of context \(0,\) has 2 numbers for 1 tokens"),
        (0, {(): (0.5, 0.4)}, r"row of context \(\) sum to 0.9"),
    ],
)
def test_bad_tables_are_refused(
    order: int, rows: dict[tuple[int, ...], tuple[float, ...]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        TableModel(order, rows)
