"""What mutation testing found untested of who is blamed for a wrong answer: its request, a fork, others."""

from collections.abc import Callable
from typing import Any

import pytest

from support.token_server import CAPABILITIES, TokenServer
from tokenlaw.properties.decoder_blame import Inquiry
from tokenlaw.properties.decoder_checks import (
    BYSTANDERS,
    FORK,
    GRAMMAR,
    GREEDY,
    PENALTIES,
    SAMPLES,
    STOP,
    check_of,
)
from tokenlaw.properties.decoder_expected import certain_tokens
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.requests import DecodeRequest, Grammar
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.serving import Answer
from tokenlaw.spec.sessions import Session
from tokenlaw.spec.verdicts import Check

NOBODY = frozenset[str]()
SESSION = Session((), 3)


def cycle(tokens: Tokens) -> tuple[float, ...]:
    """After 0 comes 1, after 1 comes 2, after 2 comes 0."""
    return tuple(float(token == (tokens[-1] + 1) % 3) for token in range(3))


def nearly_tied(tokens: Tokens) -> tuple[float, ...]:
    """No token is certain."""
    return (0.34, 0.33, 0.33)


def asked(num_tokens: int = 3, *, sampling: Any = None, **more: Any) -> DecodeRequest:
    parameters = SamplingParameters(temperature=0.0, **(sampling or {}))
    return DecodeRequest((0,), num_tokens, sampling=parameters, **more)


def right(request: DecodeRequest, seed: int = 0) -> list[Tokens]:
    """What `cycle` gives."""
    tokens = certain_tokens(cycle, request)
    assert tokens is not None
    return [tokens] * request.samples


def inquiry(decoder: Callable[[], TokenServer], model: LanguageModel[float] = cycle) -> Inquiry:
    def build(session: Session) -> Any:
        return decoder()

    return Inquiry(build, CAPABILITIES, SESSION, model)


def blamed(decoder: Callable[[], TokenServer], answer: Answer, model: LanguageModel[float] = cycle) -> Check:
    """Who is blamed, with nothing muted."""
    expected = certain_tokens(model, answer.request)
    assert expected is not None
    return inquiry(decoder, model).blamed(answer, expected, check_of(answer.request), NOBODY)


def wrong_if(matters: Callable[[DecodeRequest], bool]) -> Callable[[], TokenServer]:
    """Decoders that give zeros to some requests and what is right to all others."""
    return lambda: TokenServer(
        lambda request, seed: (
            [(0,) * request.num_tokens] * request.samples if matters(request) else right(request)
        )
    )


def test_what_is_wrong_alone_is_blamed_on_the_request_itself() -> None:
    assert blamed(wrong_if(lambda request: True), Answer(asked(), 0)) is GREEDY
    assert blamed(wrong_if(lambda request: True), Answer(asked(samples=2), 0)) is SAMPLES


def test_what_breaks_the_protocol_alone_is_wrong_as_well() -> None:
    assert blamed(lambda: TokenServer(lambda request, seed: [(9, 9, 9)]), Answer(asked(), 0)) is GREEDY


def test_what_is_right_alone_is_blamed_on_the_others() -> None:
    assert blamed(lambda: TokenServer(right), Answer(asked(), 0)) is BYSTANDERS


@pytest.mark.parametrize(("seed", "check"), [(0, GREEDY), (3, GREEDY), (4, BYSTANDERS)])
def test_a_request_is_asked_alone_with_seeds_0_to_3(seed: int, check: Check) -> None:
    def decoder() -> TokenServer:
        return TokenServer(lambda request, given: [(0, 0, 0)] if given == seed else right(request))

    assert blamed(decoder, Answer(asked(), 0)) is check


def test_of_several_features_the_first_that_does_it_alone_is_blamed() -> None:
    """Where none does, the check of the whole request."""
    request = asked(stop=frozenset({0}), samples=2, grammar=Grammar(({1: 0, 2: 0, 0: 0},)))
    faults: tuple[tuple[Callable[[DecodeRequest], bool], Check], ...] = (
        (lambda one: bool(one.stop), STOP),
        (lambda one: one.grammar is not None, GRAMMAR),
        (lambda one: one.samples > 1, SAMPLES),
        (lambda one: bool(one.stop) and one.grammar is not None, SAMPLES),
    )
    for fault, check in faults:
        assert blamed(wrong_if(fault), Answer(request, 0)) is check


def test_a_feature_that_has_no_answer_alone_is_passed_over() -> None:
    """Without the stop token nothing is allowed after the first one."""
    request = asked(
        stop=frozenset({1}), samples=2, sampling={"allowed_tokens": frozenset({1}), "presence_penalty": 1.0}
    )
    fault = wrong_if(lambda one: one.sampling.presence_penalty > 0)
    assert blamed(fault, Answer(request, 0)) is PENALTIES


def test_a_feature_whose_answer_is_not_certain_alone_is_passed_over() -> None:
    """Without the bias, whether the stop token comes first is a matter of rounding."""
    request = asked(2, stop=frozenset({0}), samples=2, sampling={"logit_bias": {1: 5.0}})

    def decoder() -> TokenServer:
        return TokenServer(lambda request, seed: [(2, 2)] * request.samples)

    assert certain_tokens(nearly_tied, request) == (1, 1)
    assert blamed(decoder, Answer(request, 0), nearly_tied) is not STOP


def family(steps: int) -> Callable[[], TokenServer]:
    """Decoders of which a fork is wrong if it is made after so many steps."""

    def fork(text: Tokens, length: int, seed: int) -> Tokens:
        return (0,) * len(text) if length == steps else text

    return lambda: TokenServer(right, fork)


FORKED, CHILD = {"forked": [(1,)]}, {"origin": 0, "given": (1,)}


@pytest.mark.parametrize("company", [FORKED, CHILD, FORKED | CHILD])
@pytest.mark.parametrize(("steps", "check"), [(0, FORK), (1, FORK), (2, FORK), (3, BYSTANDERS)])
def test_a_fork_is_blamed_if_it_does_it_where_nobody_else_is(
    company: dict[str, Any], steps: int, check: Check
) -> None:
    """It is forked after 0 steps, and so on, until it has a token more than it had in the session."""
    assert blamed(family(steps), Answer(asked(5), 0, **company)) is check


class Disturbing(TokenServer):
    """A fork changes what its origin says next."""

    def fork(self, handle: int, *, seed: int) -> int:
        child = super().fork(handle, seed=seed)
        ((first, *rest),) = self.texts[handle]
        self.texts[handle] = [(first, *reversed(rest))]
        return child


def test_a_fork_is_blamed_for_what_becomes_of_its_origin_as_well() -> None:
    assert blamed(lambda: Disturbing(right), Answer(asked(), 0, forked=[(1,)])) is FORK


def test_a_fork_elsewhere_in_the_session_excuses_nobody() -> None:
    assert blamed(family(1), Answer(asked(5), 0)) is BYSTANDERS
    assert blamed(wrong_if(lambda request: True), Answer(asked(5), 0, forked=[(1,)])) is GREEDY


def test_a_fork_has_seeds_of_its_own() -> None:
    seen: set[tuple[str, int]] = set()

    def answer(request: DecodeRequest, seed: int) -> list[Tokens]:
        seen.add(("submit", seed))
        return right(request)

    def fork(text: Tokens, length: int, seed: int) -> Tokens:
        seen.add(("fork", seed))
        return text

    blamed(lambda: TokenServer(answer, fork), Answer(asked(), 0, **CHILD))
    assert seen == {("submit", seed) for seed in range(4)} | {("fork", seed) for seed in range(4, 8)}


@pytest.mark.parametrize(("company", "more"), [({}, NOBODY), (CHILD, {FORK.id}), ({}, {STOP.id})])
def test_nothing_is_asked_where_all_that_may_come_of_it_is_muted(
    company: dict[str, Any], more: frozenset[str]
) -> None:
    asked_for: list[DecodeRequest] = []

    def answer(request: DecodeRequest, seed: int) -> list[Tokens]:
        asked_for.append(request)
        return right(request)

    muted = {GREEDY.id, BYSTANDERS.id} | more
    questions, given = inquiry(lambda: TokenServer(answer)), Answer(asked(), 0, **company)
    assert questions.blamed(given, (1, 2, 0), GREEDY, frozenset(muted)) is GREEDY
    assert asked_for == []
    for less in muted - {STOP.id}:
        assert questions.blamed(given, (1, 2, 0), GREEDY, frozenset(muted - {less})) is BYSTANDERS
        assert asked_for


@pytest.mark.parametrize("company", [{"forked": [(1,), (1, 2, 0)]}, CHILD | {"forked": [(1, 2, 0)]}])
def test_the_latest_fork_is_looked_at_as_well(company: dict[str, Any]) -> None:
    assert blamed(family(3), Answer(asked(5), 0, **company)) is FORK


def test_a_muted_request_is_asked_for_a_feature_that_is_not_muted() -> None:
    request = asked(stop=frozenset({0}), samples=2)
    fault = wrong_if(lambda one: bool(one.stop))
    muted = frozenset({SAMPLES.id, BYSTANDERS.id})
    answer = Answer(request, 0)
    assert inquiry(fault).blamed(answer, (1, 2, 0), SAMPLES, muted) is STOP
    assert inquiry(fault).blamed(answer, (1, 2, 0), SAMPLES, muted | {STOP.id}) is SAMPLES
