"""The doors for what is random: one speculative step (`Verifier`), and a whole decoding loop (`Decoder`).

The rules that their outputs must follow are laws, not equalities: `tokenlaw.spec.speculation` and
`tokenlaw.spec.sampling` state them exactly. Batches are ragged: a row may bring fewer drafts than others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

NO_TOKEN = -1
"""Padding after the last token that a row emits."""


@dataclass(frozen=True)
class VerifyBatch:
    """What one verification step is given: B rows, up to K drafts each, a vocabulary of V tokens.

    Attributes
    ----------
    draft_tokens : int64 ``[B, K]``; what stands behind a row's last draft is ignored.
    num_draft_tokens : int64 ``[B]``, 0 .. K.
    target_probabilities : float ``[B, K + 1, V]``; row i at position j follows the first j drafts. What
        stands behind position ``num_draft_tokens[i]`` is ignored.
    draft_probabilities : float ``[B, K, V]``, the laws that the drafts were drawn from, or None for drafts
        that were not drawn (prompt lookup), whose laws count as one-hot.
    """

    draft_tokens: Int[Tensor, "batch drafts"]
    num_draft_tokens: Int[Tensor, " batch"]
    target_probabilities: Float[Tensor, "batch drafts+1 vocabulary"]
    draft_probabilities: Float[Tensor, "batch drafts vocabulary"] | None


@runtime_checkable
class Verifier(Protocol):
    """One step of speculative decoding: which drafts stay, and which token follows them.

    Exact if, and only if, the completed law of every row (`tokenlaw.spec.steps.completed_law`) is that of
    target-only sampling. Whether the textbook chain rule is followed as well is a claim of its own: block
    verification and sample-and-match are exact with other joint laws.
    """

    def verify(self, batch: VerifyBatch, *, seed: int) -> Int[Tensor, "batch drafts+1"]:
        """Emitted tokens, int64 ``[B, K + 1]``, `NO_TOKEN` after the last; equal seeds give equal tokens."""
        ...


@runtime_checkable
class Decoder(Protocol):
    """The whole loop: drafting, verification, caches, until enough tokens are there.

    Exact if, and only if, its tokens have the law of target-only decoding
    (`tokenlaw.spec.sampling.target_only_law`).
    """

    def decode(
        self, prompt: Sequence[int], num_tokens: int, *, draft_length: int, seed: int
    ) -> Sequence[int]:
        """The next ``num_tokens`` tokens after the prompt, drafting ``draft_length`` tokens a step."""
        ...
