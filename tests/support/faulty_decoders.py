"""Faulty variants of the small decoder: each replaces one of its methods."""

import random
from collections.abc import Sequence
from dataclasses import replace
from math import inf, log
from typing import Any

from support.small_decoders import Hashed, Sample, SmallDecoder, Undecided
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.philox import derived_key
from tokenlaw.spec.requests import DecodeRequest, is_finished, law_of_next


class LastPositionBonus(SmallDecoder):
    """One more token after a rejection at the last draft, from the bonus row (public notebooks have it)."""

    def after_rejection(
        self, sample: Sample, run: list[tuple[int, float]], place: int
    ) -> list[tuple[int, float]]:
        left = sample.request.num_tokens - len(sample.tokens) - 1
        if place + 1 < min(sample.request.draft_length, left):
            return run
        law = self.checked_law(sample.request, sample.tokens, tuple(token for token, _ in run))
        token = self.draw(sample, self.draft_order(law))
        return [*run, (token, law[token])]

    def draft_order(self, law: Sequence[float]) -> Sequence[float]:
        """The row of the rejected draft stands for that of its replacement."""
        return [*law[1:], *law[:1]]


class ForgetfulPenalties(SmallDecoder):
    """Penalties don't see the drafts before a position."""

    def checked_law(self, request: DecodeRequest, generated: Tokens, drafts: Tokens) -> Sequence[float]:
        if request.grammar is not None:
            return super().checked_law(request, generated, drafts)
        return law_of_next(lambda _: self.target(request.prompt + generated + drafts), request, generated)


class UnmaskedBonus(SmallDecoder):
    """The bonus row has no grammar mask."""

    def bonus_law(self, request: DecodeRequest, generated: Tokens, drafts: Tokens) -> Sequence[float]:
        free = replace(request, grammar=None) if drafts else request
        return self.checked_law(free, generated, drafts)


class LateStop(SmallDecoder):
    """Only the last token of a run is looked at for a stop token."""

    def take(self, sample: Sample, run: list[tuple[int, float]]) -> None:
        endless = replace(sample.request, stop=frozenset())
        for token, probability in run:
            if not is_finished(endless, sample.tokens):
                sample.tokens = (*sample.tokens, token)
                sample.logprobs.append(log(probability) if probability else -inf)


class SharedSamples(SmallDecoder):
    """All samples of a request have the same random numbers."""

    def numbers(self, seed: int, sample: int) -> Any:
        return random.Random(seed)


class ParametersOfTheFirst(SmallDecoder):
    """Only the first sample of a request has its bias, the others are drawn without one."""

    def submit(self, request: DecodeRequest, *, seed: int) -> int:
        handle = super().submit(request, seed=seed)
        for sample in self.samples[handle][1:]:
            sample.request = replace(request, sampling=replace(request.sampling, logit_bias={}))
        return handle


class NoResidual(SmallDecoder):
    """A rejected draft is replaced by a draw from the target's whole law."""

    def residual(self, p: Sequence[float], q: Sequence[float]) -> Sequence[float]:
        return p


class RepeatingFork(SmallDecoder):
    """A fork draws the random numbers that its origin draws."""

    def fork(self, handle: int, *, seed: int) -> int:
        child = super().fork(handle, seed=seed)
        (origin,) = self.samples[handle]
        state = derived_key(seed)
        origin.numbers, self.samples[child][0].numbers = random.Random(state), random.Random(state)
        return child


class DraftLogprobs(SmallDecoder):
    """Log-probabilities are those of the draft model's law."""

    def logprobs(self, handle: int) -> list[list[float]]:
        found = []
        for sample in self.samples[handle]:
            laws = [
                law_of_next(self.draft, sample.request, sample.tokens[:place])
                for place in range(len(sample.tokens))
            ]
            found.append([log(law[token] or 1e-9) for law, token in zip(laws, sample.tokens, strict=True)])
        return found


class SharedStream(SmallDecoder):
    """All requests draw from streams that begin alike, whatever their seeds."""

    def numbers(self, seed: int, sample: int) -> Any:
        return Hashed(7)


class UndecidedNoResidual(Undecided, NoResidual):
    """Inexact, with random numbers that can't be decided."""


class Raising(SmallDecoder):
    """Fails when a draft is rejected."""

    def residual(self, p: Sequence[float], q: Sequence[float]) -> Sequence[float]:
        return [1 / 0]


class Overlong(SmallDecoder):
    """Gives one token too many."""

    def generated(self, handle: int) -> list[Tokens]:
        return [(*tokens, 0) for tokens in super().generated(handle)]


class Endless(SmallDecoder):
    """Never grows after a fork."""

    stopped = False

    def fork(self, handle: int, *, seed: int) -> int:
        child = super().fork(handle, seed=seed)
        self.stopped = True
        return child

    def step(self) -> None:
        if not self.stopped:
            super().step()
