"""What the reference verifiers share: drafting, splitting a batch into pieces, writing the output."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from tokenlaw.impl.speculative.draws import draw, draw_from_table
from tokenlaw.impl.speculative.random import RowNumbers, Use
from tokenlaw.spec.batch_checks import check_batch, check_drafting
from tokenlaw.spec.batch_parts import check_parts
from tokenlaw.spec.generation_contracts import NO_TOKEN, VerifyBatch
from tokenlaw.spec.row_laws import RowParameters, row_laws
from tokenlaw.spec.tensor_checks import first_true

CACHED = 2**16
"""Numbers of type float64 that are held at a time on a CPU, so that they stay in the cache of one core."""

HELD = 2**28
"""The same for other devices: 2 GiB."""


class SampledDrafts:
    """The drafter of a verifier: drafts are drawn from the draft's laws after the sampling parameters."""

    def draft(
        self, logits: Float[Tensor, "batch vocabulary"], params: RowParameters, *, position: int, seed: int
    ) -> Int64[Tensor, " batch"]:
        """Drafts of all rows at one position, with numbers that the verification doesn't use.

        Raises
        ------
        TypeError, ValueError
            As `tokenlaw.spec.batch_checks.check_drafting`.
        """
        check_drafting(logits, params)
        numbers = RowNumbers(seed, params, position=position).uniforms(Use.DRAFTING, 1)[:, 0]
        laws = row_laws(logits, params)
        if len(laws) > 1 and laws.stride(0) == 0:
            return draw_from_table(laws[:1], torch.zeros_like(params.top_k), numbers)
        return draw(laws, numbers)


ForExtra = Float64[Tensor, " batch"] | Float64[Tensor, "batch drafts+1 vocabulary"]
"""What draws the token behind the accepted drafts: a number in [0, 1) a row, or noise at every position."""


ROUNDING = 2.0**-7
"""How far beyond 0 and 1 given numbers may be: as much as the coarsest floats round them, bfloat16."""


class NumberedSteps(SampledDrafts, ABC):
    """A verifier whose steps are a function of the batch and of random numbers, all of which can be given.

    Capabilities ``uniforms`` and ``noise`` of `tokenlaw.spec.generation_contracts.Verifier`. A rule is one
    method, `step`.
    """

    precision = torch.float64

    def verify(
        self,
        batch: VerifyBatch,
        *,
        seed: int,
        uniforms: Float64[Tensor, "batch drafts"] | None = None,
        noise: Float64[Tensor, "batch drafts+1 vocabulary"] | None = None,
    ) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens; ``uniforms`` and ``noise`` decide in place of numbers from the seed.

        Raises
        ------
        TypeError, ValueError
            As `tokenlaw.spec.batch_checks.check_batch`, `check_uniforms` and `check_noise`.
        """
        check_batch(batch)
        check_uniforms(uniforms, batch)
        check_noise(noise, batch)
        numbers = RowNumbers(seed, batch.params)
        return self.step(
            batch,
            numbers.uniforms(Use.ACCEPTANCE, batch.shape[1]) if uniforms is None else uniforms,
            numbers.uniforms(Use.EXTRA_TOKEN, 1)[:, 0] if noise is None else noise,
        )

    @abstractmethod
    def step(
        self, batch: VerifyBatch, for_tests: Float64[Tensor, "batch drafts"], for_extra: ForExtra
    ) -> Int64[Tensor, "batch drafts+1"]:
        """Emitted tokens; numbers in [0, 1) decide the tests of the drafts, ``for_extra`` the last token."""


def check_uniforms(uniforms: Tensor | None, batch: VerifyBatch) -> None:
    """Refuse given numbers, one a draft, of another dtype, device or shape, or far outside [0, 1).

    Who is asked about rounding at the ends may be given numbers a little beyond them.
    """
    if uniforms is not None:
        _check_form("uniforms", uniforms, list(batch.draft_tokens.shape), batch)
        within = (uniforms >= -ROUNDING) & (uniforms <= 1 + ROUNDING)
        _refuse_first("uniforms", uniforms, ~within, "0 or more, below 1")


def check_noise(noise: Tensor | None, batch: VerifyBatch) -> None:
    """Refuse given noise, one number a logit of the target, of another form, or not above 0."""
    if noise is not None:
        _check_form("noise", noise, list(batch.target_logits.shape), batch)
        _refuse_first("noise", noise, ~(noise > 0), "above 0")


def _check_form(name: str, numbers: Tensor, shape: list[int], batch: VerifyBatch) -> None:
    check_parts([(name, numbers, shape, (torch.float64,))], "target_logits", batch.target_logits)


def _refuse_first(name: str, numbers: Tensor, wrong: Tensor, rule: str) -> None:
    place = first_true(wrong)
    if place is not None:
        where = ", ".join(
            f"{word} {at}" for word, at in zip(("row", "position", "token"), place, strict=False)
        )
        raise ValueError(f"{name}, {where}: {numbers[tuple(place)].item()}; such a number is {rule}")


def laws_are_shared(batch: VerifyBatch) -> bool:
    """Whether all rows have the same laws, in one place in memory."""
    logits = (
        (batch.target_logits,) if batch.draft_logits is None else (batch.target_logits, batch.draft_logits)
    )
    return len(batch.draft_tokens) > 1 and batch.params.shared and all(one.stride(0) == 0 for one in logits)


def in_pieces(step: Callable[..., Tensor], elements: int, *tensors: Tensor | None) -> Tensor:
    """``step(*tensors)``, for some of the rows at a time, because it needs memory for every row.

    Parameters
    ----------
    step : takes tensors ``[batch, ...]``, in place of some of them None, and returns such a tensor.
    elements : numbers of type float64 that the step holds for a row.
    """
    device = next(tensor for tensor in tensors if tensor is not None).device
    size = max(1, piece_size(device) // elements)
    rows = max(len(tensor) for tensor in tensors if tensor is not None)
    pieces = [slice(start, start + size) for start in range(0, max(rows, 1), size)]
    return torch.cat([step(*(None if one is None else one[piece] for one in tensors)) for piece in pieces])


def piece_size(device: torch.device) -> int:
    """How many numbers are worked on at a time."""
    return CACHED if device.type == "cpu" else HELD


def by_rows(
    step: Callable[..., Int64[Tensor, "batch drafts+1"]], batch: VerifyBatch, *numbers: Tensor
) -> Int64[Tensor, "batch drafts+1"]:
    """``step(batch, *numbers)``, for some of the rows at a time where their laws aren't made yet.

    Memory is then independent of the size of the batch, and laws are used while a cache still holds them.
    Pieces are larger than elsewhere, because a step reads little of the laws. Laws that all rows share, or
    that the batch has made already, are used as they are.
    """
    rows, drafts, vocabulary = batch.shape
    size = max(1, 8 * piece_size(batch.target_logits.device) // ((drafts + 1) * vocabulary))
    if size >= rows or laws_are_shared(batch) or "target_probs" in vars(batch):
        return step(batch, *numbers)
    pieces = [slice(start, start + size) for start in range(0, rows, size)]
    return torch.cat([step(batch.rows(piece), *(part[piece] for part in numbers)) for piece in pieces])


def is_draft(batch: VerifyBatch) -> Bool[Tensor, "batch drafts"]:
    """Where a row has a draft; behind its last one there may be anything."""
    positions = torch.arange(batch.draft_tokens.shape[1], device=batch.draft_tokens.device)
    return positions < batch.num_draft_tokens[:, None]


def tokens_to_read(batch: VerifyBatch) -> Int64[Tensor, "batch drafts"]:
    """The drafts, with some token of the vocabulary where a row has none."""
    return batch.draft_tokens.clamp(0, batch.shape[2] - 1)


def run_length(passed: Bool[Tensor, "batch drafts"]) -> Int64[Tensor, " batch"]:
    """How many drafts pass before the first one that doesn't.

    >>> run_length(torch.tensor([[True, False, True], [True, True, True]]))
    tensor([1, 3])
    """
    return passed.to(torch.int64).cumprod(1).sum(1)


def emitted_tokens(
    drafts: Int64[Tensor, "batch drafts"], accepted: Int64[Tensor, " batch"], extra: Int64[Tensor, " batch"]
) -> Int64[Tensor, "batch drafts+1"]:
    """The accepted drafts of each row, then the extra token, then `NO_TOKEN`.

    >>> emitted_tokens(torch.tensor([[5, 6], [7, 8]]), torch.tensor([0, 2]), torch.tensor([1, 2]))
    tensor([[ 1, -1, -1],
            [ 7,  8,  2]])
    """
    positions = torch.arange(drafts.shape[1], device=drafts.device)
    emitted = drafts.new_full((len(drafts), drafts.shape[1] + 1), NO_TOKEN)
    emitted[:, :-1] = drafts.where(positions < accepted[:, None], NO_TOKEN)
    return emitted.scatter_(1, accepted[:, None], extra[:, None])
