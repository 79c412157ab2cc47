"""A small honest speculative decoder in plain Python, and variants of it that are exact too."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf, log
from typing import Any

from tokenlaw.spec.decoder_contract import DecoderConfig
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.philox import derived_key
from tokenlaw.spec.requests import DecodeRequest, is_finished, law_of_next


@dataclass
class Sample:
    request: DecodeRequest
    numbers: Any
    tokens: Tokens = ()
    logprobs: list[float] = field(default_factory=list)


class SmallDecoder:
    """Chain rejection sampling, one sample after the other."""

    def __init__(self, config: DecoderConfig) -> None:
        self.target, self.draft = config.target, config.draft
        self.samples: dict[int, list[Sample]] = {}

    def numbers(self, seed: int, sample: int) -> Any:
        return random.Random(derived_key(seed, sample))

    def law(self, model: LanguageModel[float], request: DecodeRequest, before: Tokens) -> Sequence[float]:
        return law_of_next(model, request, before)

    def checked_law(self, request: DecodeRequest, generated: Tokens, drafts: Tokens) -> Sequence[float]:
        return self.law(self.target, request, generated + drafts)

    def draw(self, sample: Sample, weights: Sequence[float]) -> int:
        return int(sample.numbers.choices(range(len(weights)), weights)[0])

    def accepts(self, sample: Sample, ratio: float) -> bool:
        return ratio >= 1 or bool(sample.numbers.random() < ratio)

    def emitted(self, sample: Sample) -> list[tuple[int, float]]:
        """Tokens of one step with their probabilities, before anything is cut off."""
        request, run, laws = sample.request, list[tuple[int, float]](), []
        drafts: Tokens = ()
        for _ in range(min(request.draft_length, request.num_tokens - len(sample.tokens) - 1)):
            laws.append(self.law(self.draft, request, sample.tokens + drafts))
            drafts = (*drafts, self.draw(sample, laws[-1]))
        for place, (draft, q) in enumerate(zip(drafts, laws, strict=True)):
            p = self.checked_law(request, sample.tokens, drafts[:place])
            if not self.accepts(sample, p[draft] / q[draft]):
                token = self.draw(sample, self.residual(p, q))
                return self.after_rejection(sample, [*run, (token, p[token])], place)
            run.append((draft, p[draft]))
        law = self.bonus_law(request, sample.tokens, drafts)
        token = self.draw(sample, law)
        return [*run, (token, law[token])]

    def residual(self, p: Sequence[float], q: Sequence[float]) -> Sequence[float]:
        return [max(one - other, 0.0) for one, other in zip(p, q, strict=True)]

    def after_rejection(
        self, sample: Sample, run: list[tuple[int, float]], place: int
    ) -> list[tuple[int, float]]:
        return run

    def bonus_law(self, request: DecodeRequest, generated: Tokens, drafts: Tokens) -> Sequence[float]:
        return self.checked_law(request, generated, drafts)

    def take(self, sample: Sample, run: list[tuple[int, float]]) -> None:
        for token, probability in run:
            if not is_finished(sample.request, sample.tokens):
                sample.tokens = (*sample.tokens, token)
                sample.logprobs.append(log(probability) if probability else -inf)

    def submit(self, request: DecodeRequest, *, seed: int) -> int:
        made = [Sample(request, self.numbers(seed, number)) for number in range(request.samples)]
        self.samples[len(self.samples)] = made
        return len(self.samples) - 1

    def step(self) -> None:
        for samples in self.samples.values():
            for sample in samples:
                if not is_finished(sample.request, sample.tokens):
                    self.take(sample, self.emitted(sample))

    def generated(self, handle: int) -> list[Tokens]:
        return [sample.tokens for sample in self.samples[handle]]

    def is_finished(self, handle: int) -> bool:
        return all(is_finished(sample.request, sample.tokens) for sample in self.samples[handle])

    def abort(self, handle: int) -> None:
        self.samples[handle] = []

    def fork(self, handle: int, *, seed: int) -> int:
        (origin,) = self.samples[handle]
        child = self.submit(origin.request, seed=seed)
        self.samples[child] = [
            replace(self.samples[child][0], tokens=origin.tokens, logprobs=[*origin.logprobs])
        ]
        return child

    def logprobs(self, handle: int) -> list[list[float]]:
        return [sample.logprobs for sample in self.samples[handle]]

    def decode(self, request: DecodeRequest, *, seed: int) -> list[Tokens]:
        handle = self.submit(request, seed=seed)
        while not self.is_finished(handle):
            self.step()
        return self.generated(handle)


class Hashed:
    """Random numbers that nobody can decide: hashes of a seed and a counter."""

    def __init__(self, seed: int) -> None:
        self.seed, self.drawn = seed, 0

    def random(self) -> float:
        self.drawn += 1
        return derived_key(self.seed, self.drawn) / 2**63

    def choices(self, values: range, weights: Sequence[float]) -> list[int]:
        left = self.random() * sum(weights)
        for value in values:
            left -= weights[value]
            if left < 0:
                return [value]
        return [max(value for value in values if weights[value])]


class Undecided(SmallDecoder):
    """Exact, with random numbers that can't be decided."""

    def numbers(self, seed: int, sample: int) -> Any:
        return Hashed(derived_key(seed, sample))


class AllAtOnce(SmallDecoder):
    """Decodes whole requests in one step."""

    def step(self) -> None:
        while not all(map(self.is_finished, self.samples)):
            super().step()


class OwnModels(SmallDecoder):
    """Has a target and a draft model of its own."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(config)
        self.size = config.vocabulary_size
        self.target = self.target_law
        self.draft = lambda tokens: self.target_law(tokens[::-1])

    def target_law(self, tokens: Tokens) -> tuple[float, ...]:
        weights = [1.0 + (tokens[-1] + 2 * token + len(tokens)) % self.size for token in range(self.size)]
        return tuple(weight / sum(weights) for weight in weights)


class LargeModels(OwnModels):
    """Its models have a real vocabulary, whatever the configuration says."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(replace(config, vocabulary_size=3_000))
