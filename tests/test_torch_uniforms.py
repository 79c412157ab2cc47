"""Uniform and exponential numbers of torch: thresholds, functions, and what leaves a lazy tensor."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from support.torch_laws import check_law, coin, draws
from tokenlaw.stats.enumeration.exact_law import exact_law

WEIGHTS = torch.tensor([0.1, 0.2, 0.3, 0.4])
SEEDED = torch.Generator().manual_seed(7)


UNIFORMS: list[Callable[[], torch.Tensor]] = [
    lambda: torch.rand(1),
    lambda: torch.rand(1, generator=SEEDED, dtype=torch.float64),
    lambda: torch.rand((), requires_grad=True),
    lambda: torch.rand_like(torch.ones(1)),
    lambda: torch.empty(1).uniform_(),
    lambda: torch.rand(1, out=torch.empty(1)),
    lambda: torch.rand(3, 2)[1:2, 0],
    lambda: torch.rand(4).view(2, 2).t().unsqueeze(0)[0, 1, 0].clone().double().cpu(),
    lambda: torch.rand(2).expand(3, 2).reshape(-1)[5].detach().contiguous(),
    lambda: torch.cat([torch.ones(1), torch.rand(1)])[1],
    lambda: torch.stack([torch.rand(1), torch.rand(1)]).gather(0, torch.tensor([[1]]))[0],
    lambda: torch.where(torch.tensor([True]), torch.rand(1), torch.zeros(1)),
    lambda: torch.ones(2).masked_fill(torch.tensor([True, False]), torch.rand(()))[0],
    lambda: torch.rand(1).clamp_(min=1e-12),
]


@pytest.mark.parametrize("uniform", UNIFORMS)
@pytest.mark.parametrize("context", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_a_uniform_is_below_a_threshold_with_that_probability(uniform, context):
    threshold = torch.tensor(0.3, dtype=torch.float64)

    def program() -> bool:
        with context():
            return bool(uniform() < threshold)

    check_law(program, coin(0.3))


FUNCTIONS: list[tuple[Callable[[torch.Tensor], Any], float]] = [
    (lambda u: u <= 0.3, 0.3),
    (lambda u: torch.tensor(0.3) > u, torch.tensor(0.3).item()),
    (lambda u: u >= 0.7, 0.3),
    (lambda u: u * 4 < 1.0, 0.25),
    (lambda u: u * torch.tensor(0.5) < torch.tensor(0.125), 0.25),
    (lambda u: 1 - u < 0.25, 0.25),
    (lambda u: 3 - 2 * u > 2.5, 0.25),
    (lambda u: u.log() < math.log(0.25), 0.25),
    (lambda u: torch.log1p(-u) < math.log(0.25), 0.25),
    (lambda u: -torch.log2(u) > 2, 0.25),
    (lambda u: u.mul(2.0).sub_(0.5).neg_() > 0, 0.25),
    (lambda u: u**2 < 1 / 16, 0.25),
    (lambda u: u.sqrt() < 0.5, 0.25),
    (lambda u: 1 / u > 4, 0.25),
    (lambda u: (u.log() * 2).exp() < 1 / 16, 0.25),
    (lambda u: torch.minimum(u, torch.tensor(0.5)) < 0.25, 0.25),
    (lambda u: u.clamp(0.5, 0.75) > 0.6, 0.4),
    (lambda u: (4 * u).long() == 1, 0.25),
    (lambda u: (4 * u).floor() == 1, 0.25),
    (lambda u: (4 * u).ceil() == 1, 0.25),
    (lambda u: int(4 * u - 2) == 0, 0.5),
    (lambda u: torch.searchsorted(torch.tensor([0.25, 0.5]), u) == 1, 0.25),
    (lambda u: torch.bucketize(u, torch.tensor([0.25, 0.5]), right=True) == 1, 0.25),
    (lambda u: u.item() < 0.25, 0.25),
    (lambda u: u.reshape(1).tolist()[0] > 0.75, 0.25),
    (lambda u: u.detach().numpy() < 0.25, 0.25),
    (lambda u: (u < 0.5) & (u < 0.25), 0.25),
    (lambda u: u == 0.5, 0.0),
    (lambda u: u < torch.tensor(math.nan), 0.0),
    (lambda u: torch.isfinite(u), 1.0),
    (lambda u: u < torch.rand(()), 0.5),
]


@pytest.mark.parametrize(("function", "probability"), FUNCTIONS)
def test_functions_of_a_uniform(function, probability):
    check_law(lambda: bool(function(torch.rand(()))), coin(probability))


EXPONENTIALS: list[tuple[Callable[[torch.Tensor], Any], float]] = [
    (lambda e: e < 0.5, 1 - math.exp(-0.5)),
    (lambda e: e / 2 > 0.5, math.exp(-1)),
    (lambda e: e.log() < 0.0, 1 - math.exp(-1)),
    (lambda e: -e.log() < 0.0, math.exp(-1)),
    (lambda e: (-e).exp() < 0.25, 0.25),
    (lambda e: e.reciprocal() < 0.5, math.exp(-2)),
    (lambda e: e.clamp_(min=1e-30) > 1.0, math.exp(-1)),
]


@pytest.mark.parametrize(("function", "probability"), EXPONENTIALS)
def test_functions_of_an_exponential(function, probability):
    check_law(lambda: bool(function(torch.empty(()).exponential_())), coin(probability))


def test_rate_of_an_exponential_and_range_of_a_uniform():
    check_law(lambda: bool(torch.empty(1).exponential_(2.0) < 0.5), coin(1 - math.exp(-1)))
    check_law(lambda: bool(torch.empty(1).uniform_(-1, 3) < 0), coin(0.25))


def test_thresholds_of_one_uniform_are_one_choice():
    law = exact_law(lambda: (WEIGHTS.double().cumsum(0) > torch.rand(())).int().argmax().item())
    assert law.paths == 4
    assert {key: float(value) for key, value in law.probabilities.items()} == pytest.approx(draws(WEIGHTS))


def test_what_is_certain_is_no_choice():
    assert exact_law(lambda: torch.rand(2) < torch.tensor([0.0, 1.5])).paths == 1
    assert exact_law(lambda: torch.multinomial(torch.tensor([0.0, 2.0]), 1)).paths == 1


@st.composite
def questions(draw: st.DrawFn) -> tuple[int, str, float]:
    """A question to one of two uniforms."""
    return draw(st.integers(0, 1)), draw(st.sampled_from(sorted(ASKED))), draw(st.integers(1, 15)) / 16


ASKED: dict[str, Callable[[torch.Tensor, float], Any]] = {
    "below": lambda u, t: u < t,
    "scaled": lambda u, t: u * 3 >= t * 3,
    "mirrored": lambda u, t: 1 - u > t,
    "logarithm": lambda u, t: torch.log(u) < math.log(t),
    "places": lambda u, t: torch.searchsorted(torch.tensor([t / 2, t], dtype=torch.float64), u),
    "integer": lambda u, t: (u * 4 + t).long(),
    "larger": lambda u, t: torch.maximum(u, torch.tensor(t, dtype=torch.float64)) > (1 + t) / 2,
}


@given(st.lists(questions(), min_size=1, max_size=4))
@settings(max_examples=15)
def test_programs_of_two_uniforms_are_what_their_cells_say(asked):
    """Between two edges of the grid of 1/64 every answer is the same: midpoints and areas give the law."""

    def answers(uniforms: torch.Tensor) -> tuple[Any, ...]:
        return tuple(ASKED[name](uniforms[which], level).item() for which, name, level in asked)

    law = exact_law(lambda: answers(torch.rand(2, dtype=torch.float64)))
    expected: dict[Any, float] = {}
    single = [
        {mid: answers_of(asked, which, mid) for mid in (torch.arange(64) + 0.5).div(64).tolist()}
        for which in (0, 1)
    ]
    for one in single[0].values():
        for other in single[1].values():
            outcome = tuple((one, other)[which][place] for place, (which, _, _) in enumerate(asked))
            expected[outcome] = expected.get(outcome, 0) + 1 / 64**2
    # Two thresholds that are equal but for rounding leave a sliver between them.
    found = {outcome: float(law.probabilities.get(outcome, 0)) for outcome in {*law.probabilities, *expected}}
    assert found == pytest.approx({outcome: expected.get(outcome, 0.0) for outcome in found}, abs=1e-12)


def answers_of(asked: list[tuple[int, str, float]], which: int, value: float) -> dict[int, Any]:
    """The answers about one uniform, if it has this value."""
    u = torch.tensor(value, dtype=torch.float64)
    return {
        place: ASKED[name](u, level).item() for place, (who, name, level) in enumerate(asked) if who == which
    }


EXTREMES: list[tuple[Callable[[torch.Tensor], torch.Tensor], float]] = [
    (lambda u: u.max() < 0.5, 0.5**4),
    (lambda u: torch.min(u) > 0.5, 0.5**4),
    (lambda u: (u.amax(-1) < 0.5).any(), 1 - 0.75**2),
    (lambda u: (u.amin(dim=(0, 1), keepdim=True) > 0.5).squeeze(), 0.5**4),
    (lambda u: (torch.amax(u, 0) < 0.5).all(), 0.5**4),
    (lambda u: (1 - u).max() < 0.5, 0.5**4),
    (lambda u: torch.cat([u[0], torch.tensor([0.25])]).max() < 0.5, 0.25),
    (lambda u: torch.cat([u[0], torch.tensor([0.75])]).max() < 0.5, 0.0),
    (lambda u: u[0, 0].max() < 0.5, 0.5),
    (lambda u: u[0].max() < u[1, 0], 1 / 3),
    (lambda u: (u[:, :0].amax(0) < 0.5).all(), 1.0),
]


@pytest.mark.parametrize(("below", "probability"), EXTREMES)
def test_the_largest_or_smallest_uniform_can_be_compared_with_a_threshold(
    below: Callable[[torch.Tensor], torch.Tensor], probability: float
) -> None:
    check_law(lambda: bool(below(torch.rand(2, 2))), coin(probability))
