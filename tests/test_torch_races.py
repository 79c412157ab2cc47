"""Exponential and Gumbel noise in torch: argmax, max, topk and sort are draws from the weights."""

import math
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from support.known_laws import independent
from support.torch_laws import check_law, draws
from tokenlaw.stats.enumeration.exact_law import exact_law, exact_laws

WEIGHTS = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
MASKED = torch.tensor([0.0, 0.2, 0.8, 0.0], dtype=torch.float64)
OUTER = torch.arange(4) % 3 == 0
LOGITS = WEIGHTS.log()


def noise(*shape: int) -> torch.Tensor:
    """Exponential noise of rate one."""
    return torch.empty(shape or 4).exponential_()


def gumbel(uniform: torch.Tensor) -> torch.Tensor:
    """Gumbel noise as people write it, with guards."""
    return -torch.log(-torch.log(uniform + 1e-20) + 1e-20)


RACES: list[Callable[[], torch.Tensor]] = [
    lambda: (WEIGHTS / noise()).argmax(-1),
    lambda: WEIGHTS.clone().div_(torch.empty_like(WEIGHTS).exponential_(1.0)).argmax(dim=-1),
    lambda: (noise() / WEIGHTS).argmin(),
    lambda: (-noise() / WEIGHTS).max(-1)[1],
    lambda: (WEIGHTS / noise().clamp_(min=1e-30)).max(dim=0, keepdim=True).indices[0],
    lambda: (LOGITS - noise().log()).argmax(),
    lambda: (3 + LOGITS + gumbel(torch.rand(4))).topk(1).indices[0],
    lambda: (LOGITS - (-torch.rand(4).log()).log()).sort(descending=True)[1][0],
    lambda: torch.argsort(noise() / WEIGHTS)[0],
    lambda: (torch.rand(4) ** (1 / WEIGHTS)).argmax(),
    lambda: (torch.rand(4).log() / WEIGHTS).argmax(),
    lambda: (-torch.log1p(-torch.rand(4)) / WEIGHTS).argmin(),
    lambda: torch.empty(4).uniform_().log_().neg_().div_(WEIGHTS).argmin(),
    lambda: (WEIGHTS / torch.distributions.Exponential(1.0).sample((4,))).argmax(),
    lambda: (10 * WEIGHTS / noise()).pow(0.5).argmax(),
    lambda: ((LOGITS * 2 - 2 * noise().log()) / 2).argmax(),
    lambda: (WEIGHTS / noise().numpy()).argmax(),
]


@pytest.mark.parametrize("race", RACES)
@pytest.mark.parametrize("context", [torch.enable_grad, torch.inference_mode])
def test_first_clock_is_a_draw_from_the_weights(race, context):
    def program() -> int:
        with context():
            return int(race())

    check_law(program, draws(WEIGHTS))


def test_temperature_is_a_power_of_the_weights():
    check_law(lambda: (LOGITS / 0.5 - noise().log()).argmax(), draws(WEIGHTS.double() ** 2))


@pytest.mark.parametrize(
    "race",
    [
        lambda: (MASKED / noise()).argmax(),
        lambda: (noise() / MASKED).argmin(),
        lambda: (MASKED.log() - noise().log()).argmax(),
        lambda: ((MASKED + OUTER) / noise()).masked_fill(OUTER, 0.0).argmax(),
        lambda: ((MASKED + OUTER).log() - noise().log()).masked_fill(OUTER, -math.inf).argmax(),
    ],
)
def test_masked_elements_never_win(race):
    check_law(race, draws(MASKED))


def test_an_only_element_is_no_choice():
    assert exact_law(lambda: (torch.tensor([0.0, 1.0]) / noise(2)).argmax().item()).probabilities == {1: 1}


def test_rows_are_independent():
    rows = torch.tensor([[0.25, 0.75], [0.5, 0.5]])
    check_law(lambda: (rows / noise(2, 2)).argmax(-1), independent(draws(rows[0]), draws(rows[1])))
    law = exact_laws(lambda: (rows[0] / noise(3, 2)).argmax(-1).tolist(), rows=3)
    assert law.probabilities == pytest.approx(draws(rows[0]))


def test_largest_of_equal_uniforms():
    check_law(lambda: torch.rand(3).argmax(), draws(torch.ones(3)))
    check_law(lambda: (2 - torch.rand(3)).argmax(), draws(torch.ones(3)))
    check_law(lambda: torch.rand(2).argsort()[0], draws(torch.ones(2)))


@pytest.mark.parametrize(
    "order",
    [
        lambda: (WEIGHTS / noise()).topk(2).indices,
        lambda: (LOGITS + gumbel(torch.rand(4))).argsort(descending=True)[:2],
        lambda: torch.multinomial(WEIGHTS, 2),
    ],
)
def test_best_two_are_draws_without_replacement(order):
    shares = WEIGHTS.double() / WEIGHTS.double().sum()
    check_law(
        order,
        {
            (i, j): (shares[i] * shares[j] / (1 - shares[i])).item()
            for i in range(4)
            for j in range(4)
            if i != j
        },
    )


def recovered(draft: torch.Tensor, target: torch.Tensor) -> tuple[int, int]:
    """Draft token, and token of the target, from the same noise."""
    q = torch.empty_like(draft).exponential_()
    return int((draft / q).argmax()), int((target / q).argmax())


@given(
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any),
)
@settings(max_examples=15)
def test_noise_used_twice_has_both_laws_at_once(first, second):
    draft, target = torch.tensor(first).double(), torch.tensor(second).double()
    law = exact_law(lambda: recovered(draft, target))
    for place, weights in enumerate((draft, target)):
        own = law.map(itemgetter(place)).probabilities
        assert own == pytest.approx(draws(weights), abs=1e-12)
    for token in range(3):
        if target[token] > 0:
            meet = 1 / torch.maximum(draft / draft[token], target / target[token]).sum().item()
            assert law.probabilities[token, token] == pytest.approx(meet, abs=1e-12)


def test_reused_noise_is_not_fresh_noise():
    """With fresh noise the probability would be a half of this."""
    draft, target = torch.tensor([0.8, 0.1, 0.1]).double(), torch.tensor([0.0, 0.5, 0.5])
    law = exact_law(lambda: recovered(draft, target))
    assert law.probabilities[1, 1] == pytest.approx(1 / (8 + 1 + 1), abs=1e-8)


def test_winner_can_be_masked_and_the_next_one_found():
    def program() -> list[Any]:
        scores = LOGITS - noise().log()
        first = scores.argmax()
        scores[first] = -math.inf
        return [first.item(), scores.argmax().item()]

    shares = WEIGHTS.double() / WEIGHTS.double().sum()
    check_law(
        program,
        {
            (i, j): (shares[i] * shares[j] / (1 - shares[i])).item()
            for i in range(4)
            for j in range(4)
            if i != j
        },
    )
