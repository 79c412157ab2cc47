"""What adapters of verifiers share: rows without padding, laws of drafts that weren't drawn, seeds, packing.

Many verifiers take one row, draw from torch's global random numbers and want probabilities for every draft.
`RowByRow` makes a `tokenlaw.spec.generation_contracts.Verifier` of such a function; the parts serve others.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch


@dataclass(frozen=True)
class VerifyRow:
    """One row of a `VerifyBatch`, cut to its n drafts; laws are those after the sampling parameters.

    Attributes
    ----------
    drafts : int64 ``[n]``, n may be 0.
    target : float64 ``[n + 1, V]``, each a law.
    draft : float64 ``[n, V]``, each a law; one-hot where the drafts weren't drawn.
    """

    drafts: Int64[Tensor, " drafts"]
    target: Float64[Tensor, "drafts+1 vocabulary"]
    draft: Float64[Tensor, "drafts vocabulary"]


class RowByRow:
    """A `Verifier` that gives its rows to a function one after the other.

    The function draws from torch's global random numbers, which are seeded by the call's seed and restored
    afterwards, so seeds of single rows are not honoured.

    Parameters
    ----------
    step : from a row to the tokens that it emits.

    Attributes
    ----------
    most_rows : a call with so many rows takes about a second; see `Verifier`.
    """

    most_rows = 2_000

    def __init__(self, step: Callable[[VerifyRow], Sequence[int]]) -> None:
        self._step = step

    def verify(self, batch: VerifyBatch, *, seed: int) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens of every row; see `Verifier.verify`."""
        with seeded(seed, batch.draft_tokens.device):
            emitted = [self._step(row) for row in rows(batch)]
        return packed(emitted, batch)


def rows(batch: VerifyBatch) -> Iterator[VerifyRow]:
    """The rows of a batch without their padding."""
    target, draft = batch.target_probs, draft_laws(batch)
    for row, length in enumerate(batch.num_draft_tokens.tolist()):
        yield VerifyRow(batch.draft_tokens[row, :length], target[row, : length + 1], draft[row, :length])


def rows_by_length(batch: VerifyBatch) -> Iterator[tuple[int, Int64[Tensor, " chosen"]]]:
    """Numbers of drafts, and the rows that have so many: for verifiers that know no ragged batches."""
    for length in sorted(set(batch.num_draft_tokens.tolist())):
        yield length, (batch.num_draft_tokens == length).nonzero()[:, 0]


def draft_laws(batch: VerifyBatch) -> Float64[Tensor, "batch drafts vocabulary"]:
    """Laws of the drafts: those that they were drawn from, or the one-hot law of each.

    >>> from tokenlaw.spec.row_laws import RowParameters
    >>> drafts, lengths = torch.tensor([[1]]), torch.tensor([1])
    >>> params = RowParameters.default(1)
    >>> draft_laws(VerifyBatch(drafts, lengths, torch.zeros(1, 2, 3), None, params))
    tensor([[[0., 1., 0.]]], dtype=torch.float64)
    """
    if batch.draft_probs is not None:
        return batch.draft_probs
    vocabulary = batch.target_logits.shape[-1]
    in_range = batch.draft_tokens.clamp(0, vocabulary - 1)  # behind a row's last draft anything may stand
    return torch.nn.functional.one_hot(in_range, vocabulary).to(torch.float64)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's global random numbers, of the CPU and of the device; restore them afterwards."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed % 2**63)
        yield


def packed(emitted: Sequence[Sequence[int]], batch: VerifyBatch) -> Int64[Tensor, "batch width"]:
    """What each row emitted, with `NO_TOKEN` after the last token.

    As wide as the contract asks. If a row emits more than K + 1 tokens it is wider, for the harness to see.
    """
    width = max(batch.draft_tokens.shape[1] + 1, *map(len, emitted)) if emitted else 0
    padded = [[*tokens, *[NO_TOKEN] * (width - len(tokens))] for tokens in emitted]
    return torch.tensor(padded, dtype=torch.int64, device=batch.draft_tokens.device).reshape(-1, width)
