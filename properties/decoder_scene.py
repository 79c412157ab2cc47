"""The state in which the operations of a session are made up: dice, models, and the prompts so far."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tokenlaw.properties.decoder_expected import GREEDILY, certain_tokens
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.requests import DecodeRequest, Grammar
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.session_models import Hashed

NUMBERS_OF_TOKENS, DRAFT_LENGTHS = (1, 2, 3, 5, 7, 9, 11), (0, 1, 2, 3, 4, 4)
"""How many tokens a request asks for, and how many drafts a step; what stands twice comes twice as often."""

_PENALTIES = (
    {"repetition_penalty": 1.3},
    {"repetition_penalty": 2.5},
    {"repetition_penalty": 0.5},
    {"presence_penalty": 0.7},
    {"presence_penalty": 2.0},
    {"frequency_penalty": 0.6},
    {"frequency_penalty": 1.5},
    {"frequency_penalty": 0.7, "repetition_penalty": 1.2},
    {"presence_penalty": -1.5},
)
_TEMPERATURES = (0.5, 1.0, 1.0, 2.0)


@dataclass
class Scene:
    """What operations are made up from.

    Attributes
    ----------
    can : capabilities of the decoder.
    vocabulary_size : tokens.
    block_size : tokens of a block; prompts begin, differ and end where blocks do.
    target : None for a decoder with models of its own.
    dice : random numbers of the operation that is made up now.
    prompts : those submitted so far.
    requests : likewise.
    """

    can: frozenset[str]
    vocabulary_size: int
    block_size: int
    target: Hashed | None
    dice: random.Random = field(default_factory=lambda: random.Random(0))
    requests: list[DecodeRequest] = field(default_factory=list)

    def any_of(self, *values: Any) -> Any:
        """One of the values."""
        return self.dice.choice(values)

    def tokens(self, count: int) -> Tokens:
        """Random tokens."""
        return tuple(self.dice.randrange(self.vocabulary_size) for _ in range(count))

    def new_prompt(self) -> Tokens:
        """A prompt that ends at, before or behind the end of a block."""
        blocks = self.any_of(0, 1, 1, 2, 3)
        return self.tokens(max(1, blocks * self.block_size + self.any_of(-1, 0, 0, 1)))

    def kindred_prompt(self) -> Tokens:
        """An earlier request's prompt; or its beginning, or what it generated, and other tokens."""
        if not self.requests:
            return self.new_prompt()
        earlier = self.dice.choice(self.requests)
        whole = earlier.prompt + self._generated(earlier)
        size = self.block_size
        cut = self.any_of(
            len(earlier.prompt),
            len(earlier.prompt),
            len(whole),
            len(whole) // size * size,
            self.dice.randrange(len(whole) + 1),
        )
        return whole[:cut] + self.tokens(self.any_of(0, 0, 1, 1, size)) or self.tokens(1)

    def _generated(self, request: DecodeRequest) -> Tokens:
        if self.target is None:
            return ()
        try:
            return certain_tokens(self.target.model(), replace(request, sampling=self._greedily())) or ()
        except ValueError:
            return ()

    def _greedily(self) -> SamplingParameters:
        """Parameters under which every token is certain."""
        return GREEDILY if "sampling" in self.can else SamplingParameters()

    def request(self, prompt: Tokens) -> DecodeRequest:
        """A request with none, one or two features."""
        plain = DecodeRequest(
            prompt,
            self.dice.choice(NUMBERS_OF_TOKENS),
            draft_length=self.dice.choice(DRAFT_LENGTHS),
            sampling=self._greedily(),
        )
        features = [feature for needs, feature in FEATURES if needs <= self.can]
        for _ in range(self.any_of(0, 0, 1, 1, 1, 2)):
            plain = self.dice.choice(features)(self, plain)
        self.requests.append(plain)
        return plain

    def plain_request(self, num_tokens: int, draft_length: int) -> DecodeRequest:
        """A request of certain tokens for a prompt like the earlier ones, with nothing else."""
        prompt, sampling = self.kindred_prompt(), self._greedily()
        request = DecodeRequest(prompt, num_tokens, draft_length=draft_length, sampling=sampling)
        self.requests.append(request)
        return request

    def diverging_request(self, samples: int = 1) -> DecodeRequest:
        """A request of random tokens whose prompt ends inside of a block, for what shares the block."""
        penalties = self.any_of({}, {}, *_PENALTIES[:2]) if "penalties" in self.can else {}
        top_k = self.any_of(None, None, 2)
        inside = 1 if self.block_size < 3 else self.dice.randrange(1, self.block_size - 1)
        request = DecodeRequest(
            self.tokens(self.any_of(0, 1) * self.block_size + inside),
            self.any_of(5, 7),
            draft_length=self.dice.choice(DRAFT_LENGTHS),
            samples=samples,
            sampling=SamplingParameters(temperature=self.any_of(1.0, 2.0), top_k=top_k, **penalties),
        )
        self.requests.append(request)
        return request


Feature = Callable[[Scene, DecodeRequest], DecodeRequest]
"""A request with something more that it asks for."""


def _stop(scene: Scene, request: DecodeRequest) -> DecodeRequest:
    """A stop token that comes, if anything is known about it."""
    candidates = scene._generated(request) or scene.tokens(1)
    return replace(request, stop=frozenset({scene.dice.choice(candidates)}))


def _penalties(scene: Scene, request: DecodeRequest) -> DecodeRequest:
    return replace(request, sampling=replace(request.sampling, **scene.any_of(*_PENALTIES)))


def _grammar(scene: Scene, request: DecodeRequest) -> DecodeRequest:
    """An automaton of up to three states, which allow different tokens."""
    states = scene.any_of(1, 2, 2, 3)
    rows = []
    for _ in range(states):
        allowed = scene.dice.sample(
            range(scene.vocabulary_size), scene.dice.randint(1, scene.vocabulary_size)
        )
        rows.append({token: scene.dice.randrange(states) for token in allowed})
    return replace(request, grammar=Grammar(tuple(rows)))


def _bias(scene: Scene, request: DecodeRequest) -> DecodeRequest:
    token = scene.dice.randrange(scene.vocabulary_size)
    if scene.any_of(True, False):
        return replace(
            request, sampling=replace(request.sampling, logit_bias={token: scene.any_of(-2.5, 2.5)})
        )
    allowed = frozenset({token, *scene.tokens(1)})
    return replace(request, sampling=replace(request.sampling, allowed_tokens=allowed))


def _samples(scene: Scene, request: DecodeRequest) -> DecodeRequest:
    return replace(request, samples=scene.any_of(2, 2, 3))


def _random(scene: Scene, request: DecodeRequest) -> DecodeRequest:
    """Not greedy, with nothing that could make every token impossible on some way."""
    top_k = scene.any_of(None, 1, 2)
    sampling = replace(request.sampling, temperature=scene.any_of(*_TEMPERATURES), top_k=top_k)
    return replace(request, sampling=sampling)


FEATURES: tuple[tuple[frozenset[str], Feature], ...] = (
    (frozenset(), lambda scene, request: request),
    (frozenset({"stop"}), _stop),
    (frozenset({"stop"}), _stop),
    (frozenset({"sampling", "penalties"}), _penalties),
    (frozenset({"sampling", "penalties"}), _penalties),
    (frozenset({"sampling", "grammar"}), _grammar),
    (frozenset({"sampling", "grammar"}), _grammar),
    (frozenset({"sampling"}), _bias),
    (frozenset({"samples"}), _samples),
    (frozenset({"samples"}), _samples),
    (frozenset({"sampling"}), _random),
    (frozenset({"sampling"}), _random),
)
"""What a request may ask for, with the capabilities that it takes; what stands twice comes twice as often."""
