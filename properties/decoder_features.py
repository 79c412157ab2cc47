"""What a request may ask for beyond tokens, and requests that ask for several such things at once."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tokenlaw.properties.decoder_scene import DRAFT_LENGTHS, NUMBERS_OF_TOKENS, PENALTIES, Scene
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.requests import DecodeRequest, Grammar

_TEMPERATURES = (0.5, 1.0, 1.0, 2.0)
_TRUNCATIONS: tuple[dict[str, Any], ...] = (
    {"top_k": 1},
    {"top_k": 2},
    {"top_p": 0.5},
    {"top_p": 0.78},
    {"min_p": 0.05},
    {"min_p": 0.27},
    {"min_p": 0.45},
)
"""Of the laws of a `Hashed` model at these temperatures none has a token at the edge of one of them."""

_BIASES = (-2.5, -2.5, 2.5, 2.5, -math.inf)

Feature = Callable[[Scene, DecodeRequest], DecodeRequest]
"""A request with something more that it asks for."""


def request_for(scene: Scene, prompt: Tokens) -> DecodeRequest:
    """A request with up to three features, of which any two come together as often as any other two."""
    request = DecodeRequest(
        prompt,
        scene.dice.choice(NUMBERS_OF_TOKENS),
        draft_length=scene.dice.choice(DRAFT_LENGTHS),
        sampling=scene.greedily(),
    )
    features = [feature for needs, feature in FEATURES if needs <= scene.can]
    count = min(scene.any_of(0, 0, 1, 1, 1, 2, 2, 2, 3), len(features))
    for feature in scene.dice.sample(features, count):
        request = feature(scene, request)
    scene.requests.append(request)
    return request


def _stop(scene: Scene, request: DecodeRequest) -> DecodeRequest:
    """A stop token that comes, if anything is known about it, and up to two others."""
    candidates = scene.generated(request) or scene.tokens(1)
    others = scene.tokens(scene.any_of(0, 0, 1, 2))
    return replace(request, stop=frozenset({scene.dice.choice(candidates), *others}))


def _penalties(scene: Scene, request: DecodeRequest) -> DecodeRequest:
    return replace(request, sampling=replace(request.sampling, **scene.any_of(*PENALTIES)))


def _grammar(scene: Scene, request: DecodeRequest) -> DecodeRequest:
    """An automaton of up to three states, which allow different tokens; one of them the request allows."""
    states = scene.any_of(1, 2, 2, 3)
    possible = sorted(request.sampling.allowed_tokens or range(scene.vocabulary_size))
    rows = []
    for _ in range(states):
        allowed = scene.dice.sample(
            range(scene.vocabulary_size), scene.dice.randint(1, scene.vocabulary_size)
        )
        row = [*allowed, scene.dice.choice(possible)]
        rows.append({token: scene.dice.randrange(states) for token in row})
    return replace(request, grammar=Grammar(tuple(rows)))


def _bias(scene: Scene, request: DecodeRequest) -> DecodeRequest:
    """A bias of one token or two; one token at most is banned."""
    tokens = sorted({*scene.tokens(scene.any_of(1, 2))})
    biases = [scene.any_of(*_BIASES), *(scene.any_of(*_BIASES[:-1]) for _ in tokens[1:])]
    bias = dict(zip(tokens, biases, strict=True))
    return replace(request, sampling=replace(request.sampling, logit_bias=bias))


def _allowed(scene: Scene, request: DecodeRequest) -> DecodeRequest:
    """A token or two are allowed, and one of each state of the grammar."""
    rows = request.grammar.transitions if request.grammar else ()
    allowed = frozenset({*scene.tokens(2), *(scene.dice.choice(sorted(row)) for row in rows)})
    return replace(request, sampling=replace(request.sampling, allowed_tokens=allowed))


def _samples(scene: Scene, request: DecodeRequest) -> DecodeRequest:
    return replace(request, samples=scene.any_of(2, 2, 2, 2, 3, 3, 3, 5))


def _truncated(scene: Scene, request: DecodeRequest) -> DecodeRequest:
    """Which one truncation, beside which temperature, is left open: greedy decoding sees none of them."""
    plain = replace(request.sampling, top_k=None, top_p=None, min_p=None)
    return replace(request, sampling=replace(plain, **scene.any_of(*_TRUNCATIONS)))


def _random(scene: Scene, request: DecodeRequest) -> DecodeRequest:
    """Not greedy, and often truncated, with nothing that could make every token impossible on some way."""
    sampling = replace(request.sampling, temperature=scene.any_of(*_TEMPERATURES))
    warm = replace(request, sampling=sampling)
    return _truncated(scene, warm) if scene.any_of(True, True, False) else warm


FEATURES: tuple[tuple[frozenset[str], Feature], ...] = (
    (frozenset({"stop"}), _stop),
    (frozenset({"sampling", "penalties"}), _penalties),
    (frozenset({"sampling", "grammar"}), _grammar),
    (frozenset({"sampling"}), _bias),
    (frozenset({"sampling"}), _allowed),
    (frozenset({"samples"}), _samples),
    (frozenset({"sampling"}), _truncated),
    (frozenset({"sampling"}), _random),
)
"""What a request may ask for, with the capabilities that it takes."""
