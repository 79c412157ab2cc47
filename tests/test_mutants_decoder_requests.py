"""What mutation testing found untested of what a decoder's request is asked by, and must be answered with."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tokenlaw.properties.decoder_checks import (
    BIAS,
    BLOCKS,
    GRAMMAR,
    GREEDY,
    PENALTIES,
    SAMPLES,
    SPECULATION,
    STOP,
    check_of,
    needed_capabilities,
    with_one_feature,
)
from tokenlaw.properties.decoder_expected import (
    CLEAR,
    GREEDILY,
    can_be_asked,
    certain_tokens,
    impossible_at,
    what_matters,
)
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.requests import DecodeRequest, Grammar
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.verdicts import Check

ANYTHING = Grammar(({0: 0, 1: 0, 2: 0},))


def asked(num_tokens: int = 2, *, prompt: Tokens = (0,), sampling: Any = None, **more: Any) -> DecodeRequest:
    """A greedy request, with these other parameters."""
    parameters = replace(GREEDILY, **(sampling or {}))
    return DecodeRequest(prompt, num_tokens, sampling=parameters, **more)


def always(*law: float) -> LanguageModel[float]:
    """The same law after whatever tokens."""
    return lambda tokens: law


def test_events_of_blocks_depend_on_what_a_decoder_can_do() -> None:
    """Without free blocks that are seen, nothing but requests is asked for."""
    server = frozenset({"requests", "free-blocks"})
    assert BLOCKS.events(frozenset({"abort", "fork", "requests"})) == ("submit",)
    assert BLOCKS.events(server) == ("submit", "wait")
    assert BLOCKS.events(server | {"abort"}) == ("submit", "abort", "wait")
    assert BLOCKS.events(server | {"fork"}) == ("submit", "fork", "wait")


def test_all_fates_of_drafts_must_have_been_seen_where_steps_are() -> None:
    places = tuple(f"rejected at {place}" for place in range(4))
    assert SPECULATION.events(frozenset({"requests"})) == ("request with drafts", *places)


FEATURES: tuple[tuple[Check, dict[str, Any]], ...] = (
    (SAMPLES, {"samples": 2}),
    (GRAMMAR, {"grammar": ANYTHING}),
    (PENALTIES, {"sampling": {"repetition_penalty": 1.5}}),
    (PENALTIES, {"sampling": {"presence_penalty": -1.0}}),
    (PENALTIES, {"sampling": {"frequency_penalty": 1.0}}),
    (BIAS, {"sampling": {"logit_bias": {0: 1.0}}}),
    (BIAS, {"sampling": {"allowed_tokens": frozenset({0})}}),
    (STOP, {"stop": frozenset({0})}),
    (SPECULATION, {"draft_length": 1}),
    (GREEDY, {}),
)


@pytest.mark.parametrize(("check", "feature"), FEATURES)
def test_a_request_is_asked_by_its_one_feature(check: Check, feature: dict[str, Any]) -> None:
    request = asked(**feature)
    assert check_of(request) is check
    assert list(with_one_feature(request)) == []
    named = {SAMPLES: "samples", GRAMMAR: "grammar", PENALTIES: "penalties", STOP: "stop"}
    assert needed_capabilities(request) == {"sampling"} | {named[one] for one in (check,) if one in named}


def test_a_request_with_everything_is_asked_for_each_feature_alone() -> None:
    """Drafts and the temperature stay, everything else is as if nobody had asked for it."""
    penalties = {"repetition_penalty": 1.5, "presence_penalty": 1.0, "frequency_penalty": 0.5}
    bias = {"logit_bias": {0: 1.0}, "allowed_tokens": frozenset({0, 1})}
    more = {"stop": frozenset({1}), "grammar": ANYTHING, "samples": 3}
    alone = (
        {"stop": frozenset({1})},
        {"sampling": bias},
        {"sampling": penalties},
        {"grammar": ANYTHING},
        {"samples": 3},
    )
    whole = asked(draft_length=2, sampling=penalties | bias, **more)
    assert list(with_one_feature(whole)) == [asked(draft_length=2, **one) for one in alone]
    assert check_of(whole) is SAMPLES


def test_plain_sampling_needs_no_capability() -> None:
    """Temperature 1 is what anybody gets; whoever asks for another one, or for a bias, needs ``sampling``."""
    assert needed_capabilities(DecodeRequest((0,), 1)) == set()
    for parameters in ({"temperature": 2.0}, {"temperature": 0.0}, {"top_k": 1}, {"logit_bias": {0: 1.0}}):
        request = DecodeRequest((0,), 1, sampling=SamplingParameters(**parameters))
        assert needed_capabilities(request) == {"sampling"}


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        ((CLEAR * 0.4, 0.4, 0.18), (0, 0)),
        ((0.41, 0.4, 0.19), None),
        ((0.43, 0.4, 0.17), (0, 0)),
        ((0.5, 0.5), None),
        ((0.0, 1.0), (1, 1)),
        ((1.0,), (0, 0)),
    ],
)
def test_a_greedy_token_is_certain_if_no_rounding_turns_it(
    law: tuple[float, ...], expected: Tokens | None
) -> None:
    """So many times as probable as the next one is enough; the grammar way gives the same."""
    assert certain_tokens(always(*law), asked()) == expected
    grammar = Grammar((dict.fromkeys(range(len(law)), 0),))
    assert certain_tokens(always(*law), asked(grammar=grammar)) == expected


def test_at_temperature_1_a_token_is_certain_only_if_no_other_is_possible() -> None:
    assert certain_tokens(always(0.999, 0.001), DecodeRequest((0,), 2)) is None
    assert certain_tokens(always(0.0, 1.0), DecodeRequest((0,), 2)) == (1, 1)
    only_one = SamplingParameters(top_k=1)
    assert certain_tokens(always(0.25, 0.75), DecodeRequest((0,), 2, sampling=only_one)) == (1, 1)


def follows(tokens: Tokens) -> Sequence[float]:
    """After 0 comes 1, after 1 comes 2, after 2 comes 0."""
    return [float(token == (tokens[-1] + 1) % 3) for token in range(3)]


def test_certain_tokens_follow_what_came_before_until_a_stop_token() -> None:
    assert certain_tokens(follows, asked(4)) == (1, 2, 0, 1)
    assert certain_tokens(follows, asked(4, stop=frozenset({0}))) == (1, 2, 0)
    with pytest.raises(ValueError, match="no token"):
        certain_tokens(follows, asked(4, sampling={"allowed_tokens": frozenset({1})}))


def random_request(num_tokens: int, allowed: frozenset[int] | None = None, **more: Any) -> DecodeRequest:
    return DecodeRequest((0,), num_tokens, sampling=SamplingParameters(allowed_tokens=allowed), **more)


def test_a_random_request_that_gets_stuck_somewhere_is_not_asked() -> None:
    """Here a grammar, or what is allowed, forbids the one possible token; an end before that is none."""
    stuck = Grammar(({1: 1}, {1: 1}))
    assert can_be_asked(follows, random_request(1, grammar=stuck))
    assert not can_be_asked(follows, random_request(2, grammar=stuck))
    assert can_be_asked(follows, random_request(2, grammar=stuck, stop=frozenset({1})))
    assert can_be_asked(follows, random_request(1, frozenset({1})))
    assert not can_be_asked(follows, random_request(2, frozenset({1})))


def test_at_most_200_beginnings_are_looked_at() -> None:
    """None of a request that forbids nothing."""
    assert can_be_asked(always(1.0, 0.0, 0.0), random_request(200, grammar=ANYTHING))
    assert not can_be_asked(always(1.0, 0.0, 0.0), random_request(201, grammar=ANYTHING))
    assert can_be_asked(always(0.5, 0.5), random_request(201))


def in_turn(tokens: Tokens) -> Sequence[float]:
    """0 after everything but itself, then 1."""
    return (0.3, 0.5, 0.2) if tokens[-1] == 0 else (0.5, 0.3, 0.2)


@pytest.mark.parametrize(
    ("sampling", "more", "events"),
    [
        ({"presence_penalty": 1e-6}, {}, []),
        ({"presence_penalty": 5.0}, {}, ["penalties that matter"]),
        ({"logit_bias": {1: 1e-6}}, {}, []),
        ({"logit_bias": {1: 5.0}}, {}, ["bias that matters"]),
        ({"allowed_tokens": frozenset({1, 2})}, {}, ["bias that matters"]),
        ({}, {"grammar": ANYTHING}, []),
        ({}, {"grammar": Grammar(({1: 0},))}, ["grammar that matters"]),
        ({}, {}, []),
    ],
)
@pytest.mark.parametrize("model", [always(0.5, 0.3, 0.2), in_turn])
@pytest.mark.parametrize("prompt", [(0,), (1,)])
def test_what_matters_is_what_changes_the_tokens(
    prompt: Tokens,
    model: LanguageModel[float],
    sampling: dict[str, Any],
    more: dict[str, Any],
    events: list[str],
) -> None:
    request = asked(3, prompt=prompt, sampling=sampling, **more)
    expected = certain_tokens(model, request)
    assert expected is not None
    assert list(what_matters(model, request, expected)) == events


def test_the_first_impossible_token_is_named_and_so_is_one_behind_the_end() -> None:
    assert impossible_at(follows, asked(3), (1, 2, 0)) is None
    assert impossible_at(follows, asked(3), (1, 1, 0)) == 1
    assert impossible_at(follows, asked(3), (0, 0, 0)) == 0
    assert impossible_at(follows, asked(2), (1, 2, 0)) == 2
    assert impossible_at(follows, asked(3, stop=frozenset({1})), (1, 2)) == 1


def test_greedy_requests_are_greedy() -> None:
    assert SamplingParameters(temperature=0.0) == GREEDILY
