"""The door of a whole decoding loop: drafting, verification, caches, batches, until the tokens are there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from tokenlaw.spec.contracts import Handle
from tokenlaw.spec.models import LanguageModel
from tokenlaw.spec.requests import DecodeRequest


@dataclass(frozen=True)
class DecoderConfig:
    """What a decoder is built from; a factory gets one of these and builds a fresh decoder.

    Attributes
    ----------
    target, draft : the language models, functions of all tokens so far. An engine that has models of its own
        leaves them alone, and tells its target's law (capability ``own-models``).
    vocabulary_size : tokens of both models.
    num_blocks, block_size : the KV cache of the target, in blocks, and tokens of a block. Engines without
        such a cache leave them alone.
    max_sequences : samples that run at one time, at most.
    """

    target: LanguageModel[float]
    draft: LanguageModel[float]
    vocabulary_size: int
    num_blocks: int = 32
    block_size: int = 2
    max_sequences: int = 8


@runtime_checkable
class Decoder(Protocol):
    """Decodes requests.

    Exact if, and only if, the samples of every request are independent of each other and of everything else,
    and each has the law `tokenlaw.spec.requests.sample_law`. Requests differ in their seeds; what a seed
    gives is the decoder's own affair.

    Optional capabilities (name: members)
        ``sampling``, ``penalties``, ``stop``, ``grammar``, ``samples``: these parts of a request are honoured
        (``sampling``: temperature, top-k, top-p, min-p, bias, allowed tokens; ``penalties``: repetition,
        presence, frequency; ``samples``: more than one). They can only be declared.
        ``own-models``: ``target_law(tokens) -> [V]``, the law of the target's next token, worked out without
        any cache; the models of the configuration are not used.
        ``requests``: ``submit(request, *, seed) -> handle`` takes a request at any time, ``step()`` does one
        step for everything that runs, each of which grows by a token at least, ``generated(handle)`` gives
        the tokens so far, one sequence for each sample (what was given once stays), ``is_finished(handle)``.
        A request that doesn't fit yet waits; one that can never fit raises `OutOfBlocks`.
        ``abort``: ``abort(handle)`` ends a request; its handle isn't used again. Needs ``requests``.
        ``fork``: ``fork(handle, *, seed) -> handle``: an unfinished request of one sample goes on twice, from
        the tokens that it has, each with random numbers of its own. Needs ``requests``.
        ``logprobs``: ``logprobs(handle) -> [[float]]``, for each token of each sample the natural logarithm
        of its probability under the law that it was drawn from. Needs ``requests``.
        ``free-blocks``: ``num_free_blocks() -> int``, blocks that no running request needs, cached ones
        included.
    """

    def decode(self, request: DecodeRequest, *, seed: int) -> Sequence[Sequence[int]]:
        """Generated tokens without the prompt, one sequence for each sample."""
        ...


@runtime_checkable
class ServingDecoder(Decoder, Protocol):
    """A decoder with every capability of a server."""

    def submit(self, request: DecodeRequest, *, seed: int) -> Handle:
        """Take a request; raise `OutOfBlocks` if it can never fit."""
        ...

    def step(self) -> None:
        """One step of everything that runs."""
        ...

    def generated(self, handle: Any) -> Sequence[Sequence[int]]:
        """Tokens of each sample so far."""
        ...

    def is_finished(self, handle: Any) -> bool:
        """Whether all samples of the request have ended."""
        ...

    def abort(self, handle: Any) -> None:
        """End a request."""
        ...

    def fork(self, handle: Any, *, seed: int) -> Handle:
        """An unfinished request of one sample goes on twice."""
        ...

    def logprobs(self, handle: Any) -> Sequence[Sequence[float]]:
        """Natural logarithms of the probabilities of the tokens of each sample."""
        ...

    def num_free_blocks(self) -> int:
        """Blocks that no running request needs."""
        ...
