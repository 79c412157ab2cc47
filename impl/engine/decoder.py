"""The reference decoder: scheduler, paged cache, draft model and verification in one loop.

After Kwon et al. 2023 (arXiv:2309.06180) for the cache, and Leviathan et al. 2023 (arXiv:2211.17192) for the
step. Every part is a class of its own, named by a class attribute of `ReferenceDecoder`.
"""

from collections.abc import Sequence

from tokenlaw.impl.engine.cache import SequenceCache
from tokenlaw.impl.engine.drafting import Drafter
from tokenlaw.impl.engine.processors import Processors
from tokenlaw.impl.engine.runner import Runner, TableRunner
from tokenlaw.impl.engine.samples import Row, Sample, SampleNumbers
from tokenlaw.impl.engine.scheduler import Scheduler
from tokenlaw.impl.engine.verification import Emitted, Verification
from tokenlaw.spec.contracts import OutOfBlocks
from tokenlaw.spec.decoder_contract import DecoderConfig
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.philox import derived_key
from tokenlaw.spec.requests import DecodeRequest, is_finished


class ReferenceDecoder:
    """A `ServingDecoder` over any two language models, on CPU. Handles are integers, never used twice.

    Parameters
    ----------
    config : models, and the shape of the cache.

    Attributes
    ----------
    processors_class, drafter_class, verification_class, cache_class, scheduler_class, numbers_class,
    runner_class : its parts.
    """

    processors_class: type[Processors] = Processors
    drafter_class: type[Drafter] = Drafter
    verification_class: type[Verification] = Verification
    cache_class: type[SequenceCache] = SequenceCache
    scheduler_class: type[Scheduler] = Scheduler
    numbers_class: type[SampleNumbers] = SampleNumbers
    runner_class: type[TableRunner] = TableRunner

    def __init__(self, config: DecoderConfig) -> None:
        processors = self.processors_class()
        self.cache = self.cache_class(config, self.runner(config))
        self.scheduler = self.scheduler_class(self.cache, config.max_sequences)
        self.drafter = self.drafter_class(self.draft_model(config), processors)
        self.verification = self.verification_class(processors)
        self._samples: dict[int, list[Sample]] = {}
        self._next_handle = 0

    def runner(self, config: DecoderConfig) -> Runner:
        """The target and its cache."""
        return self.runner_class(config)

    def draft_model(self, config: DecoderConfig) -> LanguageModel[float]:
        """The draft model."""
        return config.draft

    def decode(self, request: DecodeRequest, *, seed: int) -> list[Tokens]:
        """Generated tokens of each sample; other requests go on meanwhile."""
        handle = self.submit(request, seed=seed)
        while not self.is_finished(handle):
            self.step()
        generated = self.generated(handle)
        del self._samples[handle]
        return generated

    def submit(self, request: DecodeRequest, *, seed: int) -> int:
        """Take a request; raises `OutOfBlocks` if one of its samples alone can never fit."""
        length = len(request.prompt) + request.num_tokens - 1
        if not self.cache.can_hold(length):
            raise OutOfBlocks(f"the KV of {length} tokens is more than the whole cache holds")
        seeds = [self.sample_seed(seed, number) for number in range(request.samples)]
        samples = [Sample(request, one, list(request.prompt)) for one in seeds]
        for sample in samples:
            self.scheduler.add(sample)
        return self._admit(samples)

    def step(self) -> None:
        """One speculative step of everything that runs."""
        rows = [Row(sample, self.numbers_class(sample)) for sample in self.scheduler.schedule()]
        if not rows:
            return
        self.drafter.draft(rows)
        for row in rows:
            self.make_room(row)
        logits = [self.cache.run(row.sample, row.drafts) for row in rows]
        for row, emitted in zip(rows, self.verification(rows, logits), strict=True):
            self.take(row, emitted)

    def generated(self, handle: int) -> list[Tokens]:
        """Tokens of each sample so far."""
        return [sample.generated for sample in self._of(handle)]

    def is_finished(self, handle: int) -> bool:
        """Whether all samples of the request have ended."""
        return all(sample.finished for sample in self._of(handle))

    def logprobs(self, handle: int) -> list[list[float]]:
        """Natural logarithms of the probabilities of the tokens of each sample."""
        return [list(sample.logprobs) for sample in self._of(handle)]

    def abort(self, handle: int) -> None:
        """End a request; its blocks are free at once."""
        for sample in self._of(handle):
            self.scheduler.remove(sample)
        del self._samples[handle]

    def fork(self, handle: int, *, seed: int) -> int:
        """An unfinished request of one sample goes on twice; raises `ValueError` for any other request."""
        samples = self._of(handle)
        if len(samples) != 1 or samples[0].finished:
            raise ValueError(f"request {handle} must have one sample, which hasn't ended, to be forked")
        (parent,) = samples
        child = Sample(parent.request, self.sample_seed(seed, 0), list(parent.tokens), list(parent.logprobs))
        self.scheduler.fork(parent, child)
        return self._admit([child])

    def num_free_blocks(self) -> int:
        """Blocks that no running sample needs, cached ones included."""
        return self.cache.num_free_blocks()

    def sample_seed(self, seed: int, number: int) -> int:
        """Seed of one sample of a request."""
        return derived_key(seed, "sample", number)

    def make_room(self, row: Row) -> None:
        """Slots for the drafts of a row, which goes on without them if the most that it may have don't fit.

        What the drafts are, and so how many it has, must not decide about that, or the law would change.
        """
        if self.cache.has_room(row.sample, self.drafter.length(row)):
            self.cache.speculate(row.sample, row.drafts)
        else:
            row.drop_drafts()

    def take(self, row: Row, emitted: Sequence[Emitted]) -> None:
        """A row's tokens join its sample, up to a stop token; the KV of the other drafts is forgotten."""
        sample = row.sample
        kept = self.kept(sample, emitted)
        sample.tokens += [one.token for one in kept]
        sample.logprobs += [one.logprob for one in kept]
        self.cache.settle(sample, min(len(kept), len(emitted) - 1))
        if sample.finished:
            self.scheduler.remove(sample)

    def kept(self, sample: Sample, emitted: Sequence[Emitted]) -> Sequence[Emitted]:
        """What the request still asks for: nothing behind a stop token, or beyond the number of tokens."""
        generated = sample.generated
        for count, one in enumerate(emitted, start=1):
            generated = (*generated, one.token)
            if is_finished(sample.request, generated):
                return emitted[:count]
        return emitted

    def _admit(self, samples: list[Sample]) -> int:
        handle = self._next_handle
        self._next_handle += 1
        self._samples[handle] = samples
        return handle

    def _of(self, handle: int) -> list[Sample]:
        if handle not in self._samples:
            raise KeyError(f"no request {handle!r}: it was aborted, or is another decoder's")
        return self._samples[handle]
