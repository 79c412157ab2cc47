"""Faults of random numbers across samples, forks, requests and steps."""

import torch
from jaxtyping import Float64
from torch import Tensor

from tokenlaw.impl.engine.decoder import ReferenceDecoder
from tokenlaw.impl.engine.samples import Sample, SampleNumbers
from tokenlaw.impl.speculative.random import Use
from tokenlaw.spec.philox import derived_key

_MOST = 16
"""Numbers of a stream that a step uses, at most."""


class SamplesShareNumbers(ReferenceDecoder):
    """All samples of a request have the same random numbers.

    Classes: C08.
    Report: ml-explore/mlx-lm 1245 (equal requests give equal text).
    Effect: every sample has the right law, and all are equal.
    Weakest check: decoder/law-samples.
    """

    def sample_seed(self, seed: int, number: int) -> int:
        """Of the request."""
        return super().sample_seed(seed, 0)


class ForkSharesNumbers(ReferenceDecoder):
    """A fork goes on with the random numbers of its origin.

    Classes: C08.
    Report: ml-explore/mlx-lm 1245 (equal requests give equal text).
    Effect: both have the right law, and are equal.
    Weakest check: decoder/law-fork.
    """

    def fork(self, handle: int, *, seed: int) -> int:
        """Whatever the seed."""
        child = super().fork(handle, seed=seed)
        self._of(child)[0].seed = self._of(handle)[0].seed
        return child


class RequestsShareNumbers(ReferenceDecoder):
    """Every request has the same random numbers, whatever its seed.

    Classes: C08.
    Report: warpfront/hipfire 627 (constant seed).
    Effect: each request has the right law; equal ones get equal text.
    Weakest check: decoder/law-requests.
    """

    def sample_seed(self, seed: int, number: int) -> int:
        """Of the sample's number only."""
        return super().sample_seed(0, number)


class _OneStream(SampleNumbers):
    """All numbers of one use are the beginning of one stream."""

    def uniforms(self, use: Use, count: int, position: int = 0) -> Float64[Tensor, "1 count"]:
        """Those at the position, and behind it."""
        generator = torch.Generator()
        generator.manual_seed(derived_key(self._key, self.stream(use)))
        numbers = torch.rand((1, _MOST), generator=generator, dtype=torch.float64)
        return numbers[:, position : position + count]

    def stream(self, use: Use) -> str:
        """Name of the stream."""
        return use.name


class NumbersRepeatInEachStep(_OneStream):
    """The random numbers of a sample start again in each step.

    Classes: C08.
    Report: ggml-org/llama.cpp 27694.
    Effect: first step right; later ones repeat its numbers.
    Weakest check: decoder/law.
    """

    def key(self, sample: Sample) -> int:
        """Whatever was generated."""
        return sample.seed


class DraftNumbersAccept(_OneStream):
    """The number that drew a draft also decides about its acceptance.

    Classes: C07.
    Report: vllm-project/vllm 54282, 47386.
    Effect: low tokens are accepted too often, high ones too rarely.
    Weakest check: decoder/law.
    """

    def stream(self, use: Use) -> str:
        """One for drafts and for their acceptance."""
        return Use.DRAFTING.name if use is Use.ACCEPTANCE else use.name


DECODER_NUMBER_FAULTS: tuple[tuple[str, type[object]], ...] = (
    ("samples_share_numbers", SamplesShareNumbers),
    ("fork_shares_numbers", ForkSharesNumbers),
    ("requests_share_numbers", RequestsShareNumbers),
    ("numbers_repeat_in_each_step", NumbersRepeatInEachStep),
    ("draft_numbers_accept", DraftNumbersAccept),
)
"""Names and classes."""
