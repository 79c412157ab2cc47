"""A small honest decoder with a pool of blocks."""

from support.small_decoders import Sample, SmallDecoder
from tokenlaw.spec.capabilities import CAPABILITY_MEMBERS
from tokenlaw.spec.contracts import DECODER, OutOfBlocks
from tokenlaw.spec.decoder_contract import DecoderConfig
from tokenlaw.spec.requests import DecodeRequest, is_finished

CAPABILITIES = frozenset(CAPABILITY_MEMBERS[DECODER]) - {"own-models"}


class PooledDecoder(SmallDecoder):
    """Runs as many samples as fit, each with all the blocks that it may ever need; the others wait."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(config)
        self.config = config
        self.running: list[Sample] = []

    def blocks(self, sample: Sample) -> int:
        request = sample.request
        return -(-(len(request.prompt) + request.num_tokens) // self.config.block_size)

    def num_free_blocks(self) -> int:
        return self.config.num_blocks - sum(map(self.blocks, self.running))

    def runs(self, sample: Sample) -> bool:
        return any(one is sample for one in self.running)

    def fits(self, sample: Sample) -> bool:
        return len(self.running) < self.config.max_sequences and self.blocks(sample) <= self.num_free_blocks()

    def submit(self, request: DecodeRequest, *, seed: int) -> int:
        handle = super().submit(request, seed=seed)
        if self.blocks(self.samples[handle][0]) > self.config.num_blocks:
            self.samples[handle] = []
            raise OutOfBlocks("it needs more blocks than there are")
        return handle

    def admit(self) -> None:
        for sample in (one for samples in self.samples.values() for one in samples):
            if not is_finished(sample.request, sample.tokens) and not self.runs(sample) and self.fits(sample):
                self.running.append(sample)

    def step(self) -> None:
        self.admit()
        for sample in tuple(self.running):
            self.take(sample, self.emitted(sample))
            if is_finished(sample.request, sample.tokens):
                self.release(sample)

    def release(self, sample: Sample) -> None:
        self.running = [one for one in self.running if one is not sample]

    def abort(self, handle: int) -> None:
        for sample in self.samples[handle]:
            self.release(sample)
        super().abort(handle)
