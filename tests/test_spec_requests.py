"""The law of whole requests: stop tokens, grammars, penalties, and what they refuse."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import TableModel, in_floats, random_table_model
from tokenlaw.spec.requests import DecodeRequest, Grammar, is_finished, law_of_next, logprobs, sample_law
from tokenlaw.spec.sampling import ProcessedModel, SamplingParameters, target_only_law

NO_ONE_TWICE = Grammar(({0: 0, 1: 1, 2: 0}, {0: 0, 2: 0}))
"""After token 1 comes another one."""


def model(seed: int) -> TableModel[float]:
    return in_floats(random_table_model(vocabulary_size=3, order=2, seed=seed))


def any_request(**options: Any) -> DecodeRequest:
    asked: dict[str, Any] = {"prompt": (2, 0), "num_tokens": 3, **options}
    return DecodeRequest(**asked)


@given(st.integers(0, 10_000))
def test_a_plain_request_has_the_target_only_law(seed: int) -> None:
    plain = any_request()
    expected = target_only_law(model(seed), plain.prompt, 3)
    assert sample_law(model(seed), plain) == pytest.approx(expected, rel=1e-12)


@given(st.integers(0, 10_000))
def test_draft_length_and_number_of_samples_change_no_law(seed: int) -> None:
    assert sample_law(model(seed), any_request(draft_length=4, samples=3)) == sample_law(
        model(seed), any_request()
    )


@given(st.integers(0, 10_000), st.sets(st.integers(0, 2)))
def test_stop_tokens_cut_the_law_behind_the_first_of_them(seed: int, stop: set[int]) -> None:
    def cut(tokens: Tokens) -> Tokens:
        ends = [place + 1 for place, token in enumerate(tokens) if token in stop]
        return tokens[: min(ends, default=len(tokens))]

    expected: dict[Tokens, float] = {}
    for tokens, probability in target_only_law(model(seed), (2, 0), 3).items():
        expected[cut(tokens)] = expected.get(cut(tokens), 0.0) + probability
    law = sample_law(model(seed), any_request(stop=frozenset(stop)))
    assert law == pytest.approx(expected, rel=1e-12)
    assert all(is_finished(any_request(stop=frozenset(stop)), tokens) for tokens in law)


def test_a_stop_token_of_the_prompt_stops_nothing() -> None:
    assert not is_finished(any_request(stop=frozenset({0})), ())


def test_a_grammar_is_asked_at_every_position() -> None:
    law = sample_law(lambda tokens: (0.2, 0.6, 0.2), any_request(num_tokens=2, grammar=NO_ONE_TWICE))
    assert law[1, 0] == pytest.approx(0.6 * 0.5)
    assert law[0, 1] == pytest.approx(0.2 * 0.6)
    assert (1, 1) not in law


def test_grammar_and_allowed_tokens_both_hold() -> None:
    sampling = SamplingParameters(allowed_tokens=frozenset({1, 2}))
    both = any_request(sampling=sampling, grammar=NO_ONE_TWICE)
    assert law_of_next(lambda tokens: (0.5, 0.25, 0.25), both, (1,)) == (0.0, 0.0, 1.0)


def test_penalties_see_what_was_generated_and_not_the_prompt() -> None:
    sampling = SamplingParameters(frequency_penalty=math.log(4.0))
    penalised = any_request(sampling=sampling)
    assert law_of_next(lambda tokens: (0.4, 0.4, 0.2), penalised, ()) == pytest.approx((0.4, 0.4, 0.2))
    after = law_of_next(lambda tokens: (0.4, 0.4, 0.2), penalised, (0,))
    assert after == pytest.approx((0.1 / 0.7, 0.4 / 0.7, 0.2 / 0.7))


@given(st.integers(0, 10_000))
def test_what_is_there_already_stays(seed: int) -> None:
    whole = sample_law(model(seed), any_request())
    begun = sample_law(model(seed), any_request(), (1,))
    mass = sum(probability for tokens, probability in whole.items() if tokens[:1] == (1,))
    for tokens, probability in begun.items():
        assert tokens[:1] == (1,)
        assert whole.get(tokens, 0.0) == pytest.approx(mass * probability, abs=1e-12)


def test_log_probabilities_are_those_of_the_processed_law() -> None:
    greedy = any_request(sampling=SamplingParameters(temperature=0.5))
    found = logprobs(lambda tokens: (0.5, 0.25, 0.25), greedy, (0, 1))
    assert [math.exp(one) for one in found] == pytest.approx([2 / 3, 1 / 6])
    law = ProcessedModel(lambda tokens: (0.5, 0.25, 0.25), greedy.sampling)(())
    assert math.exp(found[0]) == pytest.approx(law[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": ()}, "the length of the prompt must be at least 1, but is 0"),
        ({"num_tokens": 0}, "the number of tokens must be at least 1, but is 0"),
        ({"draft_length": -1}, "the draft length must be at least 0, but is -1"),
        ({"samples": 0}, "the number of samples must be at least 1, but is 0"),
    ],
)
def test_bad_requests_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        any_request(**options)


@pytest.mark.parametrize(
    ("transitions", "message"),
    [
        ((), "the number of states must be at least 1, but is 0"),
        (({},), "state 0 of the grammar allows no token"),
        (({0: 1},), "token 0 leads 0 -> 1: there is no state 1"),
        (({0: 0, 1: -1},), "token 1 leads 0 -> -1: there is no state -1"),
    ],
)
def test_bad_grammars_are_refused(transitions: tuple[dict[int, int], ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Grammar(transitions)


def test_a_broken_grammar_names_the_token_and_what_it_followed() -> None:
    with pytest.raises(ValueError, match=r"token 1 after \(0, 1\); it allows \[0, 2\]"):
        NO_ONE_TWICE.allowed((0, 1, 1))
