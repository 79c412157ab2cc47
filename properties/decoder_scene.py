"""The state in which the operations of a session are made up: dice, models, and the prompts so far."""

import random
from dataclasses import dataclass, field, replace
from typing import Any

from tokenlaw.properties.decoder_expected import GREEDILY, certain_tokens
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.requests import DecodeRequest
from tokenlaw.spec.sampling import SamplingParameters
from tokenlaw.spec.session_models import Hashed

NUMBERS_OF_TOKENS, DRAFT_LENGTHS = (1, 2, 3, 5, 7, 9, 11), (0, 1, 2, 3, 4, 4)
"""How many tokens a request asks for, and how many drafts a step; what stands twice comes twice as often."""

PENALTIES = (
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


SMALL_BLOCK = 4
"""In larger blocks requests may begin alike and go on in different ways."""

_FAR_BACK, _SINCE = 3, 77
"""A prompt with a token that comes at its beginning only, and so many others behind that."""

_MANY = 26


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
    requests : those submitted so far.
    crowd : those of them that should run all at once.
    """

    can: frozenset[str]
    vocabulary_size: int
    block_size: int
    target: Hashed | None
    dice: random.Random = field(default_factory=lambda: random.Random(0))
    requests: list[DecodeRequest] = field(default_factory=list)
    crowd: list[DecodeRequest] = field(default_factory=list)

    def any_of(self, *values: Any) -> Any:
        """One of the values."""
        return self.dice.choice(values)

    def tokens(self, count: int) -> Tokens:
        """Random tokens."""
        return tuple(self.dice.randrange(self.vocabulary_size) for _ in range(count))

    def new_prompt(self) -> Tokens:
        """A prompt that ends at, before or behind the end of a block."""
        blocks = self.any_of(0, 1, 1, 2, 3) if self.block_size <= SMALL_BLOCK else self.any_of(0, 1, 1, 2)
        return self.tokens(max(1, blocks * self.block_size + self.any_of(-1, 0, 0, 1)))

    def kindred_prompt(self) -> Tokens:
        """An earlier request's prompt; or its beginning, or what it generated, and other tokens.

        Behind the beginning of a large block they often are others to its end.
        """
        if not self.requests:
            return self.new_prompt()
        earlier = self.dice.choice(self.requests)
        whole = earlier.prompt + self.generated(earlier)
        size = self.block_size
        if size > SMALL_BLOCK and self.any_of(True, False):
            alike = self.dice.randrange(len(whole) // size + 1) * size + SMALL_BLOCK
            return whole[:alike] + self.tokens(size - SMALL_BLOCK + 1)
        cut = self.any_of(
            len(earlier.prompt),
            len(earlier.prompt),
            len(whole),
            len(whole) // size * size,
            self.dice.randrange(len(whole) + 1),
        )
        return whole[:cut] + self.tokens(self.any_of(0, 0, 1, 1, size)) or self.tokens(1)

    def generated(self, request: DecodeRequest) -> Tokens:
        """What a request without parameters would get, if that is known."""
        if self.target is None:
            return ()
        try:
            return certain_tokens(self.target.model(), replace(request, sampling=self.greedily())) or ()
        except ValueError:
            return ()

    def greedily(self) -> SamplingParameters:
        """Parameters under which every token is certain."""
        return GREEDILY if "sampling" in self.can else SamplingParameters()

    def plain_request(self, num_tokens: int, draft_length: int) -> DecodeRequest:
        """A request of certain tokens for a prompt like the earlier ones, with nothing else."""
        prompt, sampling = self.kindred_prompt(), self.greedily()
        request = DecodeRequest(prompt, num_tokens, draft_length=draft_length, sampling=sampling)
        self.requests.append(request)
        return request

    def diverging_request(self, samples: int = 1) -> DecodeRequest:
        """A request of random tokens whose prompt ends inside of a block, for what shares the block."""
        penalties = self.any_of({}, {}, *PENALTIES[:2]) if "penalties" in self.can else {}
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

    def far_sighted_request(self) -> DecodeRequest:
        """Of certain tokens that depend on whether a penalty sees the beginning of a long prompt."""
        rare = self.dice.randrange(self.vocabulary_size)
        others = [token for token in range(self.vocabulary_size) if token != rare]
        prompt = (rare,) * _FAR_BACK + tuple(self.dice.choices(others, k=_SINCE))
        sampling = replace(self.greedily(), repetition_penalty=8.0)
        request = DecodeRequest(prompt, 3, draft_length=self.any_of(0, 2), sampling=sampling)
        self.requests.append(request)
        return request

    def counting_request(self) -> DecodeRequest:
        """Of certain tokens, one of which comes until it was counted some fifteen times and more."""
        often = {self.dice.randrange(self.vocabulary_size): 8.0}
        sampling = replace(self.greedily(), logit_bias=often, frequency_penalty=0.5)
        request = DecodeRequest(self.new_prompt(), _MANY, draft_length=self.any_of(0, 2), sampling=sampling)
        self.requests.append(request)
        return request
