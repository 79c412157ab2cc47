"""Programs that draw from ``random``: their laws against closed forms, and what is refused."""

import bisect
import itertools
import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.law import total_variation
from tokenlaw.stats.enumeration.states import same_state

few = settings(max_examples=20)
HALF, THIRD, NAN = Fraction(1, 2), Fraction(1, 3), float("nan")
GENERATOR = random.Random(5)
bound_earlier = GENERATOR.random
imported_by_name = random.random
out_of_reach = (random.random,)


def laws(size: int) -> st.SearchStrategy[list[Fraction]]:
    """Probabilities of a few outcomes, some of them zero."""
    weights = st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any)
    return weights.map(lambda row: [Fraction(weight, sum(row)) for weight in row])


any_law = st.integers(2, 5).flatmap(laws)
pairs = st.integers(2, 3).flatmap(lambda size: st.tuples(laws(size), laws(size)))


def by_loop(law: Sequence[Fraction]) -> int:
    left: Any = random.random()
    for outcome, weight in enumerate(law):
        left -= weight
        if left < 0:
            return outcome
    raise AssertionError("a uniform is below one")


def by_bisection(law: Sequence[Fraction]) -> int:
    return bisect.bisect(list(itertools.accumulate(law)), random.random())


def by_tail(law: Sequence[Fraction]) -> int:
    u = 1 - random.random()
    return sum(u > bound for bound in itertools.accumulate(law))


def by_choices(law: Sequence[Fraction]) -> int:
    return random.choices(range(len(law)), law)[0]


def by_cumulative_choices(law: Sequence[Fraction]) -> int:
    return GENERATOR.choices(range(len(law)), cum_weights=list(itertools.accumulate(law)))[0]


def by_alias(law: Sequence[Fraction]) -> int:
    """Walker's alias method, with Vose's tables."""
    size = len(law)
    share, alias = [size * weight for weight in law], list(range(size))
    small = [place for place in range(size) if share[place] < 1]
    large = [place for place in range(size) if share[place] >= 1]
    while small and large:
        less, more = small.pop(), large.pop()
        alias[less] = more
        share[more] -= 1 - share[less]
        (small if share[more] < 1 else large).append(more)
    u = random.random() * size
    place = int(u)
    return place if u - place < share[place] else alias[place]


def by_rejection(law: Sequence[Fraction]) -> int:
    while True:
        same_state("again")
        outcome = random.randrange(len(law))
        if random.random() < law[outcome]:
            return outcome


SAMPLERS = [by_loop, by_bisection, by_tail, by_choices, by_cumulative_choices, by_alias, by_rejection]


ALIKE = (by_loop, by_tail, by_cumulative_choices)
"""Compared, or asked for, as by others; the alias method computes with its numbers as well."""


@pytest.mark.parametrize(
    "sampler", [pytest.param(one, marks=[pytest.mark.slow] * (one in ALIKE)) for one in SAMPLERS]
)
@few
@given(law=any_law)
def test_samplers_have_the_law_that_they_sample(
    sampler: Callable[[Sequence[Fraction]], int], law: list[Fraction]
) -> None:
    found = exact_law(lambda: sampler(law))
    assert total_variation(found, dict(enumerate(law))) == (0, 0)


def chain_step(
    draft: list[Fraction], target: list[Fraction], length: int, *, faulty: bool = False
) -> list[int]:
    """Speculative sampling, completed by target-only tokens; the fault is to draw from no residual."""
    tokens = range(len(target))
    emitted: list[int] = []
    for token in random.choices(tokens, draft, k=length):
        if random.random() < min(1, target[token] / draft[token]):
            emitted.append(token)
            continue
        residual = [max(want - have, 0) for want, have in zip(target, draft, strict=True)]
        emitted += random.choices(tokens, target if faulty else residual)
        break
    return emitted + random.choices(tokens, target, k=length + 1 - len(emitted))


@few
@given(pairs, st.integers(1, 2))
def test_a_chain_verifier_is_proved(pair: tuple[list[Fraction], list[Fraction]], length: int) -> None:
    draft, target = pair
    expected = {
        tokens: math.prod(target[token] for token in tokens)
        for tokens in itertools.product(range(len(target)), repeat=length + 1)
    }
    assert total_variation(exact_law(lambda: chain_step(draft, target, length)), expected) == (0, 0)


@few
@given(pairs)
def test_a_faulty_chain_verifier_has_the_law_of_the_fault(
    pair: tuple[list[Fraction], list[Fraction]],
) -> None:
    draft, target = pair
    accepted = [min(have, want) for have, want in zip(draft, target, strict=True)]
    first = [kept + (1 - sum(accepted)) * want for kept, want in zip(accepted, target, strict=True)]
    law = exact_law(lambda: chain_step(draft, target, 1, faulty=True)).map(lambda tokens: tokens[0])
    assert total_variation(law, dict(enumerate(first))) == (0, 0)


QUESTIONS: dict[str, Callable[[Any, Fraction], Any]] = {
    "below": lambda u, bound: u < bound,
    "not below": lambda u, bound: bound <= u,
    "mirror": lambda u, bound: 1 - u > bound,
    "scaled": lambda u, bound: -3 * u + 1 < bound,
    "floor": lambda u, bound: (int(4 * u - bound), (u * 3) // 1),
    "round": lambda u, bound: round(u / bound),
    "between": lambda u, bound: bound / 2 < u <= bound,
    "distance": lambda u, bound: abs(u - bound) < Fraction(1, 6),
    "own image": lambda u, bound: (u < 1 - u, u + u > bound),
}
"""What a program may ask about a number; the answers change at the edges listed below."""
questions_asked = st.lists(
    st.tuples(
        st.sampled_from(sorted(QUESTIONS)),
        st.fractions(Fraction(1, 12), Fraction(11, 12), max_denominator=12),
    ),
    min_size=1,
    max_size=4,
)


@few
@given(questions_asked)
def test_one_uniform_used_again_and_again(questions: list[tuple[str, Fraction]]) -> None:
    """All answers are constant between two edges, so one number of every interval gives the law."""
    law = exact_law(lambda: [random.random() < HALF, *_answers(random.random(), questions)])
    edges = sorted({edge for _, bound in questions for edge in _edges(bound)} | {Fraction(0), Fraction(1)})
    expected: dict[Any, Fraction] = {}
    for low, high in itertools.pairwise(edges):
        for first in (True, False):
            outcome = (first, *_answers((low + high) / 2, questions))
            expected[outcome] = expected.get(outcome, Fraction(0)) + (high - low) / 2
    assert total_variation(law, expected) == (0, 0)
    assert sum(weight > 0 for weight in law.probabilities.values()) == len(expected)


def _answers(u: Any, questions: list[tuple[str, Fraction]]) -> list[Any]:
    return [QUESTIONS[kind](u, bound) for kind, bound in questions]


def _edges(bound: Fraction) -> set[Fraction]:
    """Wherever an answer can change."""
    found = {
        bound,
        1 - bound,
        (1 - bound) / 3,
        bound / 2,
        HALF,
        bound - Fraction(1, 6),
        bound + Fraction(1, 6),
    }
    found |= {(whole + bound) / 4 for whole in range(-1, 5)} | {Fraction(whole, 3) for whole in range(4)}
    found |= {bound * (whole + HALF) for whole in range(13)}
    return {edge for edge in found if 0 < edge < 1}
