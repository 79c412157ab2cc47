"""Faulty variants of the decoder with a pool of blocks: each replaces one of its methods."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from support.faulty_decoders import DraftLogprobs, LateStop
from support.pooled_decoder import PooledDecoder
from support.small_decoders import Sample
from tokenlaw.spec.contracts import OutOfBlocks
from tokenlaw.spec.decoder_contract import DecoderConfig
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.requests import DecodeRequest, is_finished, law_of_next


class Stopping(LateStop, PooledDecoder):
    """Only the last token of a step is looked at for a stop token."""


class OfDraft(DraftLogprobs, PooledDecoder):
    """Log-probabilities are those of the draft model's law."""


class Unplaced(PooledDecoder):
    """Without drafts, a long prompt loses its first token."""

    def checked_law(self, request: DecodeRequest, generated: Tokens, drafts: Tokens) -> Sequence[float]:
        if not request.draft_length and len(request.prompt) > 3:
            request = replace(request, prompt=request.prompt[1:])
        return super().checked_law(request, generated, drafts)


class DraftsBonus(PooledDecoder):
    """The token behind accepted drafts comes from the draft model."""

    def bonus_law(self, request: DecodeRequest, generated: Tokens, drafts: Tokens) -> Sequence[float]:
        return self.law(self.draft if drafts else self.target, request, generated + drafts)


class FirstPosition(PooledDecoder):
    """What a request asks for counts at the first position of a step only."""

    left_out: ClassVar[dict[str, object]] = {}

    def checked_law(self, request: DecodeRequest, generated: Tokens, drafts: Tokens) -> Sequence[float]:
        if drafts:
            request = replace(request, sampling=replace(request.sampling, **self.left_out))
        return super().checked_law(request, generated, drafts)


class FirstPenalties(FirstPosition):
    """Penalties count at the first position of a step only."""

    left_out: ClassVar[dict[str, object]] = {
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }


class FirstBias(FirstPosition):
    """Bias and allowed tokens count at the first position of a step only."""

    left_out: ClassVar[dict[str, object]] = {"logit_bias": {}, "allowed_tokens": None}


class FirstTopK(FirstPosition):
    """Top-k counts at the first position of a step only."""

    left_out: ClassVar[dict[str, object]] = {"top_k": None}


class OldMask(PooledDecoder):
    """All positions of a step have the grammar mask of the first one."""

    def checked_law(self, request: DecodeRequest, generated: Tokens, drafts: Tokens) -> Sequence[float]:
        if request.grammar is not None:
            allowed = request.grammar.allowed(generated) & (request.sampling.allowed_tokens or set(range(9)))
            sampling = replace(request.sampling, allowed_tokens=frozenset(allowed))
            request = replace(request, grammar=None, sampling=sampling)
        return super().checked_law(request, generated, drafts)


class OneSampleOnly(PooledDecoder):
    """Every sample but the first loses the last token of the prompt."""

    def submit(self, request: DecodeRequest, *, seed: int) -> int:
        handle = super().submit(request, seed=seed)
        for sample in self.samples[handle][1:]:
            sample.request = replace(request, prompt=request.prompt[:-1] or (1, 0))
        return handle


class TornFork(PooledDecoder):
    """A fork goes on from another prompt."""

    def fork(self, handle: int, *, seed: int) -> int:
        child = super().fork(handle, seed=seed)
        (sample,) = self.samples[child]
        if sample.tokens:
            sample.request = replace(sample.request, prompt=(*sample.request.prompt, 0))
        return child


class Mistaken(PooledDecoder):
    """Finds a prompt in its cache by its length and its last token."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(config)
        self.cached: dict[tuple[int, int], Tokens] = {}

    def submit(self, request: DecodeRequest, *, seed: int) -> int:
        prompt = self.cached.setdefault((len(request.prompt), request.prompt[-1]), request.prompt)
        handle = super().submit(request, seed=seed)
        for sample in self.samples[handle]:
            sample.request = replace(request, prompt=prompt)
        return handle


class Leaking(PooledDecoder):
    """An aborted request keeps a block."""

    lost = 0

    def num_free_blocks(self) -> int:
        return max(0, super().num_free_blocks() - self.lost)

    def abort(self, handle: int) -> None:
        self.lost += any(map(self.runs, self.samples[handle]))
        super().abort(handle)


class Forgetting(PooledDecoder):
    """A request that doesn't run at once never does."""

    forgotten = 0

    def admit(self) -> None:
        super().admit()
        for handle, samples in self.samples.items():
            if handle >= self.forgotten and not any(map(self.runs, samples)):
                self.forgotten = handle + 1

    def runs(self, sample: Sample) -> bool:
        numbers = [
            number for number, samples in self.samples.items() if any(one is sample for one in samples)
        ]
        return super().runs(sample) or numbers[0] < self.forgotten


class Impatient(PooledDecoder):
    """A request that doesn't fit now is refused for ever."""

    def submit(self, request: DecodeRequest, *, seed: int) -> int:
        handle = super().submit(request, seed=seed)
        if not self.fits(self.samples[handle][0]):
            self.samples[handle] = []
            raise OutOfBlocks("not now")
        return handle


class ShownDrafts(PooledDecoder):
    """Shows a draft that isn't verified yet."""

    def generated(self, handle: int) -> list[Tokens]:
        return [sample.tokens + self.guess(sample) for sample in self.samples[handle]]

    def guess(self, sample: Sample) -> Tokens:
        if not sample.tokens or not sample.request.draft_length or is_finished(sample.request, sample.tokens):
            return ()
        law = law_of_next(self.draft, sample.request, sample.tokens)
        return (max(range(len(law)), key=law.__getitem__),)


class Crashing(PooledDecoder):
    """Forks of requests with drafts raise."""

    def fork(self, handle: int, *, seed: int) -> int:
        if self.samples[handle][0].request.draft_length:
            raise KeyError(handle)
        return super().fork(handle, seed=seed)


FAULTS: dict[type[PooledDecoder], str] = {
    Unplaced: "decoder/greedy",
    DraftsBonus: "decoder/speculation",
    Stopping: "decoder/stop",
    FirstPenalties: "decoder/penalties",
    OldMask: "decoder/grammar",
    FirstBias: "decoder/bias",
    OneSampleOnly: "decoder/samples",
    TornFork: "decoder/fork",
    Mistaken: "decoder/bystanders",
    FirstTopK: "decoder/support",
    OfDraft: "decoder/logprobs",
    Leaking: "decoder/blocks",
    Forgetting: "decoder/progress",
    Impatient: "decoder/progress",
    ShownDrafts: "decoder/protocol",
}
"""Each fault with the check that it is planted for."""
