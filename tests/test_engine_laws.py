"""Laws of the reference decoder, proved: every path of its random numbers is run, and nothing is sampled."""

from typing import Any

import pytest

from support.known_laws import independent
from tokenlaw.impl.engine import ReferenceDecoder
from tokenlaw.spec.decoder_contract import DecoderConfig
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import LanguageModel, TableModel, in_floats, random_table_model
from tokenlaw.spec.requests import DecodeRequest, Grammar, sample_law
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.stats.enumeration.exact_law import exact_law
from tokenlaw.stats.enumeration.law import total_variation

ROUNDING = 1e-12


def models(seed: int) -> tuple[LanguageModel[float], LanguageModel[float]]:
    """A target of order 2 and a draft model, over three tokens."""
    return in_floats(random_table_model(3, 2, seed)), in_floats(random_table_model(3, 1, seed + 100))


def configuration(seed: int, **shape: int) -> DecoderConfig:
    """A decoder over three tokens."""
    return DecoderConfig(*models(seed), 3, **shape)


def request(**asked: Any) -> DecodeRequest:
    """A request whose prompt fills one block of two tokens, and half of another."""
    return DecodeRequest(**{"prompt": (1, 0, 2), "num_tokens": 3, **asked})


REQUESTS = {
    **{f"{drafts} drafts": (2, request(draft_length=drafts)) for drafts in range(4)},
    "greedy": (4, request(draft_length=2, sampling=SamplingParameters(temperature=0.0))),
    "stop": (5, request(draft_length=2, stop=frozenset({1}))),
    "grammar": (5, request(draft_length=2, grammar=Grammar(({0: 1, 1: 1}, {0: 1, 1: 0, 2: 0})))),
    "penalties": (
        6,
        request(
            draft_length=2,
            sampling=SamplingParameters(
                temperature=0.7, repetition_penalty=1.5, presence_penalty=0.4, frequency_penalty=0.3
            ),
        ),
    ),
    "truncations": (7, request(draft_length=2, sampling=SamplingParameters(top_k=2, min_p=0.1))),
    "bias": (
        8,
        request(
            draft_length=1,
            sampling=SamplingParameters(logit_bias={0: 0.5}, allowed_tokens=frozenset({0, 1}), top_p=0.9),
        ),
    ),
    "two samples": (5, request(num_tokens=2, draft_length=1, samples=2)),
}


ALSO_IN_OTHERS = {"1 drafts", "2 drafts", "3 drafts", "truncations"}
"""The others have one or two drafts, and the one with a bias is truncated too."""


@pytest.mark.parametrize(
    ("seed", "asked"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.slow] if name in ALSO_IN_OTHERS else [])
        for name, case in REQUESTS.items()
    ],
)
def test_every_request_has_the_law_of_target_only_decoding(seed: int, asked: DecodeRequest) -> None:
    config = configuration(seed)
    law = exact_law(lambda: tuple(ReferenceDecoder(config).decode(asked, seed=1)))
    expected = independent(*[sample_law(config.target, asked)] * asked.samples)
    assert law.complete
    assert total_variation(law, expected)[1] < ROUNDING


def test_a_request_that_joins_and_one_that_is_preempted_are_independent() -> None:
    """The pool holds one of the two to the end: the younger one goes, and comes back."""
    config = configuration(5, num_blocks=3)
    first, second = request(num_tokens=3, draft_length=1), request(prompt=(1,), num_tokens=2)

    def program() -> tuple[Tokens, Tokens]:
        decoder = ReferenceDecoder(config)
        handles = [decoder.submit(one, seed=seed) for seed, one in enumerate((first, second))]
        while not all(map(decoder.is_finished, handles)):
            decoder.step()
        (left,), (right,) = map(decoder.generated, handles)
        return left, right

    law = exact_law(program)
    expected = independent(*(sample_law(config.target, one) for one in (first, second)))
    assert total_variation(law, expected)[1] < ROUNDING


def test_a_fork_and_its_parent_are_independent_from_the_fork_on() -> None:
    config = configuration(5)
    asked = request(num_tokens=3, draft_length=1)

    def program() -> tuple[Tokens, Tokens, Tokens]:
        decoder = ReferenceDecoder(config)
        parent = decoder.submit(asked, seed=1)
        decoder.step()
        (before,) = decoder.generated(parent)
        if decoder.is_finished(parent):
            return before, before, before
        child = decoder.fork(parent, seed=2)
        while not (decoder.is_finished(parent) and decoder.is_finished(child)):
            decoder.step()
        return before, *decoder.generated(parent), *decoder.generated(child)

    law = exact_law(program)
    starts = law.map(lambda outcome: outcome[0])
    expected: dict[tuple[Tokens, ...], float] = {}
    for before, share in starts.probabilities.items():
        assert isinstance(before, tuple)
        rest = sample_law(config.target, asked, before)
        for both, weight in independent(rest, rest).items():
            expected[(before, *both)] = float(share) * weight
    parents = law.map(lambda outcome: outcome[1])
    assert total_variation(parents, sample_law(config.target, asked))[1] < ROUNDING
    assert total_variation(law, expected)[1] < ROUNDING


def test_drafts_that_do_not_fit_are_dropped_whatever_they_are() -> None:
    """After draft 0 the grammar allows nothing that the draft model proposes, so that row is shorter and
    would fit where others don't; were only those dropped that don't fit, token 1 would come too often.
    """
    grammar = Grammar(({0: 1, 1: 2}, {0: 2}, {0: 2, 1: 2, 2: 2}))
    drafts = {(): (0.5, 0.5, 0.0), (0,): (0.0, 0.5, 0.5), (1,): (0.5, 0.5, 0.0), (2,): (0.5, 0.5, 0.0)}
    target = TableModel(0, {(): (0.2, 0.3, 0.5)})
    config = DecoderConfig(target, TableModel(1, drafts), 3, num_blocks=4, block_size=1)
    asked = DecodeRequest(prompt=(2,), num_tokens=3, draft_length=2, grammar=grammar)
    certain = SamplingParameters(temperature=0.0)

    def one_of_two() -> Tokens:
        decoder = ReferenceDecoder(config)
        decoder.submit(DecodeRequest(prompt=(1, 1), num_tokens=2, sampling=certain), seed=1)
        handle = decoder.submit(asked, seed=2)
        while not decoder.is_finished(handle):
            decoder.step()
        return decoder.generated(handle)[0]

    law = exact_law(one_of_two)
    assert total_variation(law, sample_law(target, asked))[1] < ROUNDING


def test_a_request_without_any_possible_token_is_refused_and_nothing_is_made_up() -> None:
    """The grammar wants token 2, which the request doesn't allow: no token may be drawn instead."""
    asked = DecodeRequest(
        prompt=(0,),
        num_tokens=2,
        draft_length=1,
        sampling=SamplingParameters(allowed_tokens=frozenset({0, 1})),
        grammar=Grammar(({0: 1, 1: 1}, {2: 1})),
    )
    with pytest.raises(ValueError, match="no token is possible after"):
        ReferenceDecoder(configuration(3)).decode(asked, seed=1)
