"""What mutation testing found untested of how a session is judged: places, counts, what is let alone."""

from collections import Counter
from math import log
from typing import Any

import pytest

from support.token_server import CAPABILITIES, TokenServer
from tokenlaw.properties.decoder_checks import (
    BLOCKS,
    FORK,
    GREEDY,
    LOGPROBS,
    PROTOCOL,
    SAMPLES,
    STOP,
    SUPPORT,
)
from tokenlaw.properties.decoder_expected import GREEDILY
from tokenlaw.properties.decoder_run import run_session
from tokenlaw.properties.running import Outcome, Violation
from tokenlaw.spec.contracts import ContractError
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.requests import DecodeRequest, Grammar
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.sessions import Abort, Fork, Session, SessionError, SessionOperation, Step, Submit, Table

CYCLE = Table(1, ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)))
"""After 0 comes 1, after 1 comes 2, after 2 comes 0."""

COIN = Table(1, ((0.5, 0.5, 0.0), (0.5, 0.5, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5)))
"""After each token the same one or the next."""


def asked(num_tokens: int = 3, prompt: Tokens = (0,), **more: Any) -> Submit:
    return Submit(DecodeRequest(prompt, num_tokens, sampling=GREEDILY, **more))


def at_random(num_tokens: int = 2, samples: int = 1, **more: Any) -> Submit:
    return Submit(DecodeRequest((0,), num_tokens, samples=samples, **more))


STUCK = Submit(
    DecodeRequest((0,), 3, sampling=SamplingParameters(temperature=0, allowed_tokens=frozenset({1})))
)
"""After its first token none is possible."""


def right(request: DecodeRequest, seed: int = 0) -> list[Tokens]:
    """What `CYCLE` gives."""
    tokens = tuple((request.prompt[-1] + 1 + place) % 3 for place in range(request.num_tokens))
    end = next((place + 1 for place, token in enumerate(tokens) if token in request.stop), len(tokens))
    return [tokens[:end]] * request.samples


def gives(*samples: Tokens) -> TokenServer:
    return TokenServer(lambda request, seed: samples)


def judged(
    decoder: TokenServer,
    *operations: SessionOperation,
    target: Table = CYCLE,
    can: frozenset[str] = CAPABILITIES,
    muted: frozenset[str] = frozenset(),
) -> Outcome:
    """What a session shows; questions asked later go to the same decoder."""
    outcome = run_session(lambda: decoder, Session(operations, 3, target, target), can, muted)
    assert outcome.crash is None
    return outcome


def test_whatever_is_right_breaks_nothing_and_is_counted_once() -> None:
    operations = (
        asked(),
        asked(draft_length=1, prompt=(1, 0, 2)),
        asked(samples=2, prompt=(1, 0, 1)),
        asked(stop=frozenset({0})),
        Submit(DecodeRequest((2,), 2)),
        Step(),
        Fork(0),
    )
    outcome = judged(TokenServer(right), *operations, can=CAPABILITIES | {"logprobs"})
    assert outcome.violations == []
    assert outcome.operations == 7
    counted = {
        "request without drafts": 3,
        "request with drafts": 1,
        "request with samples": 1,
        "stop token reached": 1,
        "shared prompt": 2,
        "log-probability": 20,
    }
    assert {name: outcome.exercised[name] for name in counted} == counted
    assert not Counter(outcome.exercised)["random request"]


def test_a_request_without_an_answer_is_not_submitted_and_places_stay_those_of_the_session() -> None:
    def wrong_of_two(request: DecodeRequest, seed: int) -> list[Tokens]:
        assert request is not STUCK.request
        return [(1, 0)] if request.num_tokens == 2 else right(request)

    outcome = judged(TokenServer(wrong_of_two), STUCK, Step(), asked(), asked(2))
    wanted = "tokens 1 2, as target-only decoding gives"
    assert outcome.violations == [Violation(GREEDY.id, 3, wanted, "tokens 1 0", 1, 1)]
    assert (outcome.operations, outcome.exercised["submit"], outcome.exercised["step"]) == (3, 2, 3)


def test_what_rounding_decides_is_not_asked_nor_what_may_get_stuck() -> None:
    stuck = Grammar(({1: 1}, {0: 1}))
    outcome = judged(gives((1, 1)), asked(), at_random(grammar=stuck), target=COIN)
    assert (outcome.operations, outcome.exercised["submit"], outcome.violations) == (0, 0, [])
    outcome = judged(gives((1, 1)), at_random(), at_random(), target=COIN)
    assert (outcome.exercised["submit"], outcome.exercised["random request"]) == (2, 2)
    assert outcome.violations == []


@pytest.mark.parametrize(("given", "position"), [((1, 0), 1), ((1, 2, 1, 1), 2), ((1, 2, 0, 1), 3)])
def test_the_first_wrong_position_is_named_also_behind_a_stop_token(given: Tokens, position: int) -> None:
    outcome = judged(gives(given), asked(4, stop=frozenset({0})), can=frozenset())
    (violation,) = outcome.violations
    assert (violation.check, violation.sequence, violation.position) == (STOP.id, 0, position)


def test_of_several_samples_the_first_wrong_one_is_told_alone() -> None:
    outcome = judged(gives((1, 2), (1, 1), (2, 2)), asked(2, samples=3))
    assert [(one.check, one.found) for one in outcome.violations] == [(SAMPLES.id, "tokens 1 1")]


def test_what_is_aborted_must_be_right_as_far_as_it_came() -> None:
    operations = (asked(), Step(), Abort(0))
    assert judged(TokenServer(right), *operations).violations == []
    (violation,) = judged(gives((2, 2, 0)), *operations).violations
    assert (violation.check, violation.found, violation.position) == (GREEDY.id, "tokens 2", 0)


def test_what_is_muted_is_not_told_whatever_else_is() -> None:
    wrong, operations = (1, 1), (asked(2), asked(2, stop=frozenset({0})))
    both = [one.check for one in judged(gives(wrong), *operations).violations]
    assert both == [GREEDY.id, STOP.id]
    muted = judged(gives(wrong), *operations, muted=frozenset({GREEDY.id})).violations
    assert [one.check for one in muted] == [STOP.id]


def test_refused_requests_are_not_judged() -> None:
    """Nobody has room for so many samples."""

    def full(request: DecodeRequest, seed: int) -> list[Tokens] | None:
        return None if request.samples == 99 else right(request)

    outcome = judged(TokenServer(full), asked(samples=99), asked())
    assert outcome.violations == []
    assert (outcome.exercised["refused"], outcome.exercised["request without drafts"]) == (1, 1)


@pytest.mark.parametrize(
    ("free", "told"), [((4, 4), []), ((4, 3), ["3 free blocks"]), ((3, 4), ["4 free blocks"])]
)
def test_blocks_that_do_not_come_back_are_told_at_the_end(free: tuple[int, int], told: list[str]) -> None:
    decoder = TokenServer(right, free=free)
    outcome = judged(decoder, STUCK, asked(), asked(), asked(), can=CAPABILITIES | {"free-blocks"})
    expected = f"{free[0]} free blocks, as before the first operation"
    assert outcome.violations == [Violation(BLOCKS.id, 4, expected, one) for one in told]


@pytest.mark.parametrize(
    ("operations", "place"), [((STUCK, asked(1), asked(2)), 3), ((STUCK, asked(2), asked(1)), 1)]
)
def test_a_broken_protocol_is_told_where_it_showed(operations: Any, place: int) -> None:
    """Where requests are decoded one after the other, at the request; at the end, behind the last one."""
    can = frozenset[str]() if place == 1 else CAPABILITIES
    outcome = judged(gives((1,)), *operations, can=can)
    found = "sample 0 ended with (1,), before 2 tokens or a stop token"
    assert outcome.violations == [Violation(PROTOCOL.id, place, PROTOCOL.title, found)]
    assert (outcome.operations, outcome.exercised) == (place - 1, Counter())


@pytest.mark.parametrize(
    ("given", "position", "told"), [((1, 0), 1, "after tokens 1 a"), ((2, 2), 0, "after no token a")]
)
def test_an_impossible_token_is_told_with_what_came_before_it(
    given: Tokens, position: int, told: str
) -> None:
    outcome = judged(gives((1, 2), given, (2, 1)), at_random(samples=3), target=COIN)
    wanted = f"{told} token that is possible there, or the end"
    assert outcome.violations == [
        Violation(SUPPORT.id, 0, wanted, f"tokens {' '.join(map(str, given))}", 0, position)
    ]


@pytest.mark.parametrize("submitted", [asked(2), at_random()])
def test_the_first_wrong_log_probability_is_told(submitted: Submit) -> None:
    """Of certain tokens each must be 0, of others that of the law that the token was drawn from."""
    certain = submitted.request.sampling == GREEDILY
    probability = 1.0 if certain else 0.5
    target = CYCLE if certain else COIN

    def run(wrong: int) -> list[Violation]:
        decoder = TokenServer(
            lambda request, seed: [(1, 2)], probability=lambda place: 0.25 if place >= wrong else probability
        )
        return judged(decoder, submitted, target=target, can=CAPABILITIES | {"logprobs"}).violations

    assert run(2) == []
    for place, token in enumerate((1, 2)):
        wanted = f"{log(probability):.6f} for token {token}"
        assert run(place) == [Violation(LOGPROBS.id, 0, wanted, f"{log(0.25):.6f}", 0, place)]


def test_a_fork_is_judged_like_its_origin() -> None:
    decoder = TokenServer(right, fork=lambda text, steps, seed: (0, 0, 0))
    (violation,) = judged(decoder, asked(), Step(), Fork(0)).violations
    assert (violation.check, violation.operation, violation.found) == (FORK.id, 2, "tokens 1 0 0")


def test_what_a_decoder_raises_is_a_crash_but_for_refusals() -> None:
    def run(error: Exception) -> Outcome:
        def raising(request: DecodeRequest, seed: int) -> list[Tokens]:
            raise error

        return run_session(lambda: TokenServer(raising), Session((asked(),), 3, CYCLE), CAPABILITIES)

    crashed = run(KeyError("lost"))
    assert (crashed.violations, str(crashed.crash).splitlines()[-1]) == ([], "KeyError: 'lost'")
    for refusal in (ContractError("no"), SessionError("no")):
        with pytest.raises(type(refusal)):
            run(refusal)
