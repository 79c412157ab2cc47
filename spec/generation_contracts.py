"""The door for one speculative step (`Verifier`).

The rules that its outputs must follow are laws, not equalities: `tokenlaw.spec.speculation` states them.
Batches are ragged: a row may bring fewer drafts than others.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from tokenlaw.spec.row_laws import RowParameters, row_laws
from tokenlaw.spec.tensor_checks import FLOATS, first_true, require_numbers, require_tensor

NO_TOKEN = -1
"""Padding after the last token that a row emits."""

TEXTBOOK, BLOCK, EXACT, APPROXIMATE = "textbook", "block", "exact", "approximate"
CLAIMS = (TEXTBOOK, BLOCK, EXACT, APPROXIMATE)
"""What a verifier can claim, the strongest first.

``textbook``: emitted tokens and accepted length have the joint law of chain rejection sampling.
``block``: they have the joint law of block verification. ``exact``: the completed law is that of target-only
decoding, whatever the joint law; the first two imply it. ``approximate``: none of these.
"""


@dataclass(frozen=True)
class VerifyBatch:
    """What one verification step is given: B rows, up to K drafts each, a vocabulary of V tokens.

    Tensors are on one device. Rows may share memory (stride 0), as ``expand`` makes them, and logits may be a
    view of longer rows, as those of a padded vocabulary.

    Attributes
    ----------
    draft_tokens : int64 ``[B, K]``, each in 0 .. V - 1; what stands behind a row's last draft is ignored.
    num_draft_tokens : int64 ``[B]``, 0 .. K.
    target_logits : float ``[B, K + 1, V]``, finite or minus infinity; row i at position j follows the first
        j drafts. What stands behind position ``num_draft_tokens[i]`` is ignored.
    draft_logits : float ``[B, K, V]``; the drafts were drawn from the laws that these and ``params`` give.
        None for drafts that were not drawn (prompt lookup), whose laws count as one-hot.
    params : what each row asks of the sampler, on the target's side and on the draft's.
    """

    draft_tokens: Int64[Tensor, "batch drafts"]
    num_draft_tokens: Int64[Tensor, " batch"]
    target_logits: Float[Tensor, "batch drafts+1 vocabulary"]
    draft_logits: Float[Tensor, "batch drafts vocabulary"] | None
    params: RowParameters

    @cached_property
    def target_probs(self) -> Float64[Tensor, "batch drafts+1 vocabulary"]:
        """Laws of the target after the sampling parameters, float64; each sums to one."""
        return row_laws(self.target_logits, self.params)

    @cached_property
    def draft_probs(self) -> Float64[Tensor, "batch drafts vocabulary"] | None:
        """Laws of the drafts after the sampling parameters, float64; None where drafts weren't drawn."""
        return None if self.draft_logits is None else row_laws(self.draft_logits, self.params)

    def rows(self, chosen: slice | Int64[Tensor, " chosen"]) -> "VerifyBatch":
        """Some of the rows, in any order."""
        return VerifyBatch(
            self.draft_tokens[chosen],
            self.num_draft_tokens[chosen],
            self.target_logits[chosen],
            None if self.draft_logits is None else self.draft_logits[chosen],
            self.params.rows(chosen),
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """``(B, K, V)``."""
        rows, positions, vocabulary = self.target_logits.shape
        return rows, positions - 1, vocabulary


@dataclass(frozen=True)
class TreeBatch:
    """One verification step with several candidates: every row has the same tree of N drafted nodes.

    Attributes
    ----------
    tokens : int64 ``[B, N]``, the token of each node.
    parents : for each node the number of its parent, always a smaller one; -1 is the root, the last token
        that is already there. Children of one node are tried in the order of their numbers.
    target_logits : float ``[B, N + 1, V]``; entry 0 follows the root, entry i + 1 follows node i.
    draft_logits : float ``[B, N + 1, V]``, the laws that the children of root and nodes were drawn from; None
        for candidates that were not drawn, such as the top k of a draft model.
    replacement : whether siblings were drawn independently, or without replacement.
    params : what each row asks of the sampler.
    """

    tokens: Int64[Tensor, "batch nodes"]
    parents: tuple[int, ...]
    target_logits: Float[Tensor, "batch nodes+1 vocabulary"]
    draft_logits: Float[Tensor, "batch nodes+1 vocabulary"] | None
    replacement: bool
    params: RowParameters

    @cached_property
    def target_probs(self) -> Float64[Tensor, "batch nodes+1 vocabulary"]:
        """Laws of the target after the sampling parameters."""
        return row_laws(self.target_logits, self.params)

    @cached_property
    def draft_probs(self) -> Float64[Tensor, "batch nodes+1 vocabulary"] | None:
        """Laws that children were drawn from (without replacement: the first child); None if not drawn."""
        return None if self.draft_logits is None else row_laws(self.draft_logits, self.params)

    @property
    def depth(self) -> int:
        """The largest number of nodes on a path from the root."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent < 0 else depths[parent] + 1)
        return max(depths, default=0)


REFUSALS = frozenset({"greedy", "temperature", "top_k", "top_p", "min_p", "ragged", "looked-up drafts"})
"""What rows may be refused for: temperature 0, other temperatures than 1, truncations, fewer drafts than the
batch has room for, drafts that were not drawn."""


@runtime_checkable
class Verifier(Protocol):
    """One step of speculative decoding: which drafts stay, and which token follows them.

    Exact if, and only if, the completed law of every row (`tokenlaw.spec.steps.completed_law`) is that of
    target-only sampling. Whether the textbook chain rule is followed as well is a claim of its own: block
    verification and sample-and-match are exact with other joint laws.

    Equal batches and seeds give equal tokens. Rows are independent; a row with a seed of its own gives tokens
    that depend on this seed and this row only (capability ``row-seeds``).

    Optional capabilities (name: members)
        ``draft``: ``draft(logits [B, V], params, *, position, seed) -> int64 [B]``: the implementation's own
        drafter draws the drafts of position 0, 1, ... with its own random numbers; the step that verifies
        them gets the same seed and the same ``params``.
        ``uniforms``: ``verify(batch, *, seed, uniforms [B, K])`` takes the numbers in [0, 1) that decide
        about acceptance: draft j is accepted if number j is below its acceptance probability. In block
        verification number j decides about the first j + 1 drafts together.
        ``noise``: ``verify(batch, *, seed, noise [B, K + 1, V])`` takes float64 numbers above 0, without a
        unit, that decide about the token which replaces the rejected draft j, or follows j accepted ones:
        it is the token v with the largest ``law[v] / noise[j, v]``, where ``law`` is what the token is drawn
        from. Independent exponential numbers of rate 1 give it this law. Infinity takes a token out of the
        race; one possible token at least has a finite number. Numbers of other positions don't matter. With
        ``uniforms`` too, both are given in one call, and nothing is left to the seed.
        ``row-seeds``: ``params.seeds`` are honoured.
        ``trees``: ``verify_tree(batch: TreeBatch, *, seed) -> int64 [B, depth + 1]``.

    Attributes, all optional
        ``claims``: one of `CLAIMS`; ``textbook`` where it is absent.
        ``most_rows``: int, the rows of a call at most; slow verifiers keep calls short by it.
        ``refuses``: frozenset of `REFUSALS`, rows that it doesn't take; what is then not tried is reported.
        ``precision``: torch.float64 or torch.float32, in which laws and ratios are worked out; float32 where
        it is absent. What its rounding explains is no fault.
    """

    def verify(self, batch: VerifyBatch, *, seed: int) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens, int64 ``[B, K + 1]``, `NO_TOKEN` after the last one of each row."""
        ...


def as_logits(
    laws: Float[Tensor, "*positions vocabulary"], name: str
) -> Float64[Tensor, "*positions vocabulary"]:
    """Logits of given probabilities, for a `VerifyBatch` made from laws.

    Raises
    ------
    TypeError
        It is no tensor of `FLOATS`.
    ValueError
        There is no token, a probability is NaN, infinite or negative, or a law doesn't sum to one; the
        message names the place.

    Examples
    --------
    >>> as_logits(torch.tensor([[0.5, 0.6]]), "target probabilities")
    Traceback (most recent call last):
    ValueError: target probabilities, row 0: the law sums to 1.1 instead of 1
    """
    require_tensor(name, laws, FLOATS)
    require_numbers(name, laws)
    if laws.dim() < 1 or laws.shape[-1] < 1:
        raise ValueError(
            f"{name} must have tokens in its last dimension, but has the shape {list(laws.shape)}"
        )
    laws = laws.detach().to(torch.float64)
    place = first_true(~(torch.isfinite(laws) & (laws >= 0)))
    if place is not None:
        where = f"{_place(name, place[:-1])}, token {place[-1]}"
        raise ValueError(f"{where}: {laws[tuple(place)].item()} is no probability")
    sums = laws.sum(-1)
    place = first_true((sums - 1).abs() > 1e-5)
    if place is not None:
        total = sums[tuple(place)].item()
        raise ValueError(f"{_place(name, place)}: the law sums to {total:.6g} instead of 1")
    return laws.log()


def _place(name: str, indices: list[int]) -> str:
    """Where a law stands in a tensor of laws.

    >>> _place("target law", [2, 1]), _place("target law", [2]), _place("law", [])
    ('target law, row 2, position 1', 'target law, row 2', 'law')
    """
    words = zip(("row", "position", *["part"] * len(indices)), indices, strict=False)
    return ", ".join([name, *(f"{word} {index}" for word, index in words)])
