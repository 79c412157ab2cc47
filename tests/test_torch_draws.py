"""Random operators of torch that draw whole values, against closed forms."""

import math

import numpy as np
import pytest
import torch

from support.known_laws import independent
from support.torch_laws import check_law, coin, draws
from tokenlaw.stats.enumeration.exact_law import exact_law, exact_laws

WEIGHTS = torch.tensor([0.1, 0.2, 0.3, 0.4])
SEEDED = torch.Generator().manual_seed(7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_multinomial_draws_from_its_weights(dtype):
    weights = torch.tensor([3.0, 0.0, 1.0, 5.0], dtype=dtype)
    check_law(lambda: torch.multinomial(weights, 1).item(), draws(weights))


def test_multinomial_of_rows_and_with_a_generator():
    rows = torch.tensor([[1.0, 3.0], [2.0, 0.0]])
    check_law(
        lambda: torch.multinomial(rows, 1, generator=SEEDED)[:, 0],
        independent(draws([1.0, 3.0]), draws([1.0])),
    )


def test_multinomial_with_replacement():
    check_law(
        lambda: torch.multinomial(WEIGHTS, 2, replacement=True), independent(draws(WEIGHTS), draws(WEIGHTS))
    )


def test_multinomial_without_replacement_leaves_the_others():
    shares = WEIGHTS.double() / WEIGHTS.double().sum()
    expected = {
        (i, j): (shares[i] * shares[j] / (1 - shares[i])).item() for i in range(4) for j in range(4) if i != j
    }
    check_law(lambda: torch.multinomial(WEIGHTS, 2), expected)


@pytest.mark.parametrize("weights", [[0.0, 0.0], [-1.0, 2.0], [math.nan, 1.0], [math.inf, 1.0]])
def test_multinomial_raises_what_torch_raises(weights):
    with pytest.raises(RuntimeError) as real:
        torch.multinomial(torch.tensor(weights), 1)
    law = exact_law(lambda: torch.multinomial(torch.tensor(weights), 1))
    assert [str(outcome) for outcome in law.probabilities] == [f"raises RuntimeError: {real.value}"]


@pytest.mark.parametrize(
    ("program", "law"),
    [
        (lambda: torch.bernoulli(torch.tensor([0.25, 1.0])), {(0.0, 1.0): 0.75, (1.0, 1.0): 0.25}),
        (lambda: torch.empty(1).bernoulli_(0.25), {(0.0,): 0.75, (1.0,): 0.25}),
        (lambda: torch.empty(1).bernoulli_(torch.tensor([0.25])), {(0.0,): 0.75, (1.0,): 0.25}),
        (lambda: torch.bernoulli(torch.ones(1), 0.25), {(0.0,): 0.75, (1.0,): 0.25}),
        (lambda: torch.randint(2, 4, (2,))[0], {2: 0.5, 3: 0.5}),
        (lambda: torch.randint_like(torch.ones(1), 2), {(0.0,): 0.5, (1.0,): 0.5}),
        (lambda: torch.empty(1, dtype=torch.int64).random_(2), {(0,): 0.5, (1,): 0.5}),
        (lambda: torch.randperm(3)[0], {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}),
        (
            lambda: torch.nn.functional.dropout(torch.ones(2), 0.25),
            {
                (a, b): (0.25 if a == 0 else 0.75) * (0.25 if b == 0 else 0.75)
                for a in (0, 4 / 3)
                for b in (0, 4 / 3)
            },
        ),
    ],
)
def test_draws_from_few_values_are_decided_at_once(program, law):
    check_law(lambda: tuple(round(v, 6) for v in np.atleast_1d(program()).tolist()), {
        tuple(round(v, 6) for v in np.atleast_1d(key).tolist()): weight for key, weight in law.items()
    })  # fmt: skip


@pytest.mark.parametrize(
    ("distribution", "function", "law"),
    [
        (lambda: torch.distributions.Categorical(WEIGHTS), torch.Tensor.item, draws(WEIGHTS)),
        (lambda: torch.distributions.Bernoulli(0.25), torch.Tensor.item, {1.0: 0.25, 0.0: 0.75}),
        (lambda: torch.distributions.Uniform(0.0, 2.0), lambda x: bool(x < 0.5), coin(0.25)),
        (lambda: torch.distributions.Exponential(2.0), lambda x: bool(x > 0.5), coin(math.exp(-1))),
    ],
)
def test_distributions_come_down_to_the_same_operators(distribution, function, law):
    check_law(lambda: function(distribution().sample()), law)


def test_rows_of_a_batch_follow_paths_of_their_own():
    law = exact_laws(lambda: list((torch.rand(3, 2) < 0.25).sum(1).tolist()), rows=3)
    assert law.probabilities == pytest.approx({0: 9 / 16, 1: 6 / 16, 2: 1 / 16})
    law = exact_laws(lambda: torch.multinomial(WEIGHTS.expand(3, 4), 1)[:, 0].tolist(), rows=3)
    assert law.probabilities == pytest.approx(draws(WEIGHTS))
