"""What the engine knows of one continuation of a prompt, and of its row in a step."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float64
from torch import Tensor

from tokenlaw.impl.speculative.random import Use
from tokenlaw.spec.laws import Tokens
from tokenlaw.spec.philox import derived_key
from tokenlaw.spec.requests import DecodeRequest, is_finished


@dataclass(eq=False)
class Sample:
    """One continuation of a request's prompt.

    Attributes
    ----------
    request : what was asked for.
    seed : of its random numbers; no other sample has the same.
    tokens : prompt and generated tokens.
    logprobs : of the generated tokens.
    blocks : the block manager's handle while the sample runs, None while it waits and when it has ended. The
        manager then has all tokens but the last one, whose KV is written by the next step.
    """

    request: DecodeRequest
    seed: int
    tokens: list[int]
    logprobs: list[float] = field(default_factory=list)
    blocks: int | None = None

    @property
    def generated(self) -> Tokens:
        """Tokens without the prompt."""
        return tuple(self.tokens[len(self.request.prompt) :])

    @property
    def remaining(self) -> int:
        """How many tokens may still come."""
        return self.request.num_tokens - len(self.generated)

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return is_finished(self.request, self.generated)

    @property
    def handle(self) -> int:
        """The block manager's handle of a running sample."""
        assert self.blocks is not None, "the sample doesn't run"
        return self.blocks


class SampleNumbers:
    """Uniform random numbers of a sample in one step; of no other sample, and of no other step.

    They depend on the sample's seed and on how many tokens it has, so that nobody else in the batch matters.

    Parameters
    ----------
    sample : at the beginning of the step.
    """

    def __init__(self, sample: Sample) -> None:
        self._key = self.key(sample)

    def key(self, sample: Sample) -> int:
        """What all numbers of the step depend on."""
        return derived_key(sample.seed, len(sample.tokens))

    def uniforms(self, use: Use, count: int, position: int = 0) -> Float64[Tensor, "1 count"]:
        """Numbers in [0, 1) for one use, at one draft position; float64."""
        generator = torch.Generator()
        generator.manual_seed(derived_key(self._key, use.name, position))
        return torch.rand((1, count), generator=generator, dtype=torch.float64)


@dataclass(eq=False)
class Row:
    """A running sample in one step.

    Attributes
    ----------
    sample : whose row it is.
    numbers : its random numbers.
    drafts : tokens that the draft model proposes.
    draft_logits : for each draft the logits ``[V]`` that it was drawn from, masks and penalties included.
    """

    sample: Sample
    numbers: SampleNumbers
    drafts: list[int] = field(default_factory=list)
    draft_logits: list[Float64[Tensor, " vocabulary"]] = field(default_factory=list)

    def generated(self, drafts: int) -> Tokens:
        """Generated tokens, and so many of the drafts behind them."""
        return (*self.sample.generated, *self.drafts[:drafts])

    def drop_drafts(self) -> None:
        """Go on without drafts."""
        self.drafts, self.draft_logits = [], []


def uniforms_of(rows: list[Row], use: Use, count: int, position: int = 0) -> Float64[Tensor, "batch count"]:
    """Numbers of several rows, each from its own."""
    found = [row.numbers.uniforms(use, count, position) for row in rows]
    return found[0] if len(found) == 1 else torch.cat(found)
