"""What sessions of decoders ask for: every situation comes about, and often enough."""

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from itertools import combinations

import pytest

from tokenlaw.properties.decoder_checks import has_penalties
from tokenlaw.properties.decoder_expected import can_be_asked, certain_tokens
from tokenlaw.properties.decoder_features import FEATURES, request_for
from tokenlaw.properties.decoder_scene import Scene
from tokenlaw.properties.decoder_simpler import SESSIONS as SIMPLER
from tokenlaw.properties.decoder_strategy import MAX_OPERATIONS, MOVES, rolled_session
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import DECODER
from tokenlaw.spec.requests import DecodeRequest, Grammar
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.session_models import Hashed
from tokenlaw.spec.sessions import Session, Submit, session_of, to_data

EVERYTHING = frozenset(CAPABILITY_MEMBERS[DECODER]) - {"own-models"}
SESSIONS = [rolled_session(EVERYTHING, None, MAX_OPERATIONS, one, random.Random(one)) for one in range(260)]
REQUESTS = [
    (session, operation.request)
    for session in SESSIONS
    for operation in session.operations
    if isinstance(operation, Submit)
]


def is_truncated(request: DecodeRequest) -> bool:
    sampling = request.sampling
    return (sampling.top_k, sampling.top_p, sampling.min_p) != (None, None, None)


def named(request: DecodeRequest) -> frozenset[str]:
    """The features of a request."""
    sampling = request.sampling
    has = {
        "stop": bool(request.stop),
        "penalties": has_penalties(request),
        "grammar": request.grammar is not None,
        "bias": bool(sampling.logit_bias),
        "allowed": sampling.allowed_tokens is not None,
        "samples": request.samples > 1,
        "truncated": is_truncated(request),
        "random": sampling.temperature > 0,
    }
    return frozenset(name for name, it_has in has.items() if it_has)


ASKED: dict[str, Callable[[Session, DecodeRequest], bool]] = {
    "several stop tokens": lambda session, one: len(one.stop) > 1,
    "temperature 0 and a truncation": lambda session, one: not one.sampling.temperature and is_truncated(one),
    "min-p and a temperature": lambda session, one: bool(
        one.sampling.min_p and one.sampling.temperature == 0.5
    ),
    "bias of two tokens": lambda session, one: len(one.sampling.logit_bias) == 2,
    "a banned token": lambda session, one: -math.inf in one.sampling.logit_bias.values(),
    "five samples": lambda session, one: one.samples == 5,
    "grammar over many tokens": lambda session, one: (
        session.vocabulary_size == 40 and one.grammar is not None
    ),
    "large blocks": lambda session, one: session.block_size > 4,
    "penalty of a long prompt": lambda session, one: len(one.prompt) >= 80 and has_penalties(one),
    "penalty of a long output": lambda session, one: one.num_tokens >= 24 and has_penalties(one),
}


@pytest.mark.parametrize("what", ASKED)
def test_sessions_ask_for_it(what: str) -> None:
    assert sum(ASKED[what](*one) for one in REQUESTS) >= 8


def test_any_two_features_come_together() -> None:
    """Each pair has a chance of 1 in 40 and more; fewer than 1 in 100 of 2000 come once in a million."""
    scene = Scene(EVERYTHING, 3, 2, Hashed(3, 7), random.Random(5))
    pairs = Counter[frozenset[str]]()
    for _ in range(2_000):
        pairs.update(map(frozenset, combinations(named(request_for(scene, (0, 1))), 2)))
    assert len(pairs) == len(FEATURES) * (len(FEATURES) - 1) // 2
    assert min(pairs.values()) >= 20, pairs


def test_a_crowd_runs_all_at_once() -> None:
    possible = [move.__name__ for needs, move, _ in MOVES if needs <= EVERYTHING]
    session = SESSIONS[possible.index("_crowd")]
    small = [operation.request for operation in session.operations[1:10] if isinstance(operation, Submit)]
    assert len(small) == 9
    assert session.max_sequences == 16
    blocks = sum(-(-(len(one.prompt) + one.num_tokens) // session.block_size) for one in small)
    assert blocks <= session.num_blocks


def test_large_blocks_begin_alike_and_go_on_in_different_ways() -> None:
    alike = 0
    for session in SESSIONS:
        if session.block_size > 4:
            prompts = [one.request.prompt for one in session.operations if isinstance(one, Submit)]
            heads = {prompt[: session.block_size] for prompt in prompts if len(prompt) > session.block_size}
            alike += len({head[:4] for head in heads}) < len(heads)
    assert alike >= 8


def test_allowed_tokens_leave_something_of_each_state_of_a_grammar() -> None:
    both = [
        (one.grammar, one.sampling.allowed_tokens)
        for _, one in REQUESTS
        if one.grammar is not None and one.sampling.allowed_tokens is not None
    ]
    assert len(both) >= 8
    for grammar, allowed in both:
        assert all(set(row) & allowed for row in grammar.transitions)


def test_a_banned_token_is_null_in_a_file() -> None:
    sampling = SamplingParameters(temperature=0.0, logit_bias={0: -math.inf, 1: 2.5})
    session = Session((Submit(DecodeRequest((0,), 2, sampling=sampling)),), 2)
    data = json.loads(json.dumps(to_data(session), allow_nan=False))
    assert data["operations"][0]["request"]["sampling"]["logit_bias"] == {"0": None, "1": 2.5}
    assert session_of(data) == session


def test_a_random_request_whose_every_token_is_banned_cannot_be_asked() -> None:
    model = Hashed(2, 0).model()
    banned = DecodeRequest((0,), 2, sampling=SamplingParameters(logit_bias={0: -math.inf}))
    assert can_be_asked(model, banned)
    assert certain_tokens(model, banned) == (1, 1)
    stuck = DecodeRequest((0,), 2, sampling=banned.sampling, grammar=Grammar(({0: 0},)))
    assert not can_be_asked(model, stuck)
    zeros = Hashed(2, 0, certain=True).model()
    assert not can_be_asked(zeros, DecodeRequest((0,), 9, sampling=banned.sampling))


def test_a_session_over_many_tokens_is_shrunk_to_few() -> None:
    sampling = SamplingParameters(logit_bias={38: 1.0}, allowed_tokens=frozenset({38, 7}))
    request = DecodeRequest((39, 4), 3, stop=frozenset({7}), sampling=sampling, grammar=Grammar(({38: 0},)))
    session = Session((Submit(request, 5),), 40, Hashed(40, 1), Hashed(40, 2))
    small = [one for simpler in SIMPLER.passes for one in simpler(session) if one.vocabulary_size < 40]
    assert [one.vocabulary_size for one in small] == [2, 3, 4, 5]
    (submitted,) = small[2].operations
    assert isinstance(submitted, Submit)
    folded = submitted.request
    assert (folded.prompt, folded.stop, folded.sampling.logit_bias) == ((3, 0), frozenset({3}), {2: 1.0})
    assert folded.sampling.allowed_tokens == frozenset({2, 3})
    assert folded.grammar == Grammar(({2: 0},))
    assert session_of(to_data(small[2])) == small[2]
    assert SIMPLER.size(small[0]) < SIMPLER.size(small[1]) < SIMPLER.size(session)
