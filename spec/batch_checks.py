"""Is a batch what `VerifyBatch` says? Each check names the row and the position of the first fault."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tokenlaw.spec.batch_parts import (
    Part,
    all_fit,
    before,
    check_logits,
    check_params,
    check_parts,
    check_target,
    check_tokens,
    parts_of_params,
)
from tokenlaw.spec.draft_trees import check_parents
from tokenlaw.spec.generation_contracts import TreeBatch, VerifyBatch, as_logits
from tokenlaw.spec.row_laws import RowParameters
from tokenlaw.spec.tensor_checks import FLOATS, kind_of, require_numbers, require_tensor

_CHECKED = "checked"
"""In what a batch remembers: it was looked at."""


def batch_of_laws(
    draft_tokens: Int64[Tensor, "batch drafts"],
    target: Float[Tensor, "batch drafts+1 vocabulary"],
    draft: Float[Tensor, "batch drafts vocabulary"] | None = None,
    *,
    num_draft_tokens: Int64[Tensor, " batch"] | None = None,
    params: RowParameters | None = None,
) -> VerifyBatch:
    """A batch from probabilities, to try a verifier by hand or in tests of its own.

    Parameters
    ----------
    draft_tokens : int64 ``[B, K]``.
    target, draft : laws ``[B, K + 1, V]`` and ``[B, K, V]``, of any float type; None for drafts that were not
        drawn, such as those of a prompt lookup.
    num_draft_tokens : int64 ``[B]``, how many drafts each row has; all K by default.
    params : what each row asks of the sampler, applied to both laws; nothing by default.

    Raises
    ------
    TypeError, ValueError
        As `as_logits` and `check_batch`.

    Examples
    --------
    >>> laws = torch.tensor([[[0.5, 0.5], [0.9, 0.1]]])
    >>> batch_of_laws(torch.tensor([[1]]), laws, laws[:, :1]).shape
    (1, 1, 2)
    >>> batch_of_laws(torch.tensor([[7]]), laws)
    Traceback (most recent call last):
    ValueError: row 0, draft 0: token 7 is outside 0 .. 1
    """
    check_target("target", target)
    rows, device = len(target), target.device
    lengths = num_draft_tokens
    if lengths is None:
        lengths = torch.full((rows,), target.shape[1] - 1, device=device)
    asked = RowParameters.default(rows, device) if params is None else params
    # Laws have the form of logits; here they are looked at under the names that the caller knows.
    form = VerifyBatch(draft_tokens, lengths, target, draft, asked)
    check_parts(_parts(form, "draft"), "target", target)
    batch = VerifyBatch(
        draft_tokens,
        lengths,
        as_logits(target, "target law"),
        None if draft is None else as_logits(draft, "draft law"),
        asked,
    )
    check_batch(batch)
    return batch


def check_batch(batch: VerifyBatch) -> None:
    """Refuse a batch that breaks its contract.

    A good batch costs few passes over what it holds, once, as its laws are made once; of rows that share
    memory, one is looked at.

    Raises
    ------
    TypeError
        It isn't a `VerifyBatch`, or a part of it isn't a tensor of the right dtype.
    ValueError
        A shape, a device, a token, a length, a logit or a sampling parameter is wrong.
    """
    if not isinstance(batch, VerifyBatch):
        raise TypeError(f"a batch must be a VerifyBatch, but is {kind_of(batch)}")
    if _CHECKED in vars(batch):
        return
    check_target("target_logits", batch.target_logits)
    check_parts(_parts(batch, "draft_logits"), "target_logits", batch.target_logits)
    _, drafts, vocabulary = batch.shape
    lengths = batch.num_draft_tokens
    if not all_fit(lengths, lambda length: 0 <= length <= drafts):
        row = int(((lengths < 0) | (lengths > drafts)).nonzero()[0])
        raise ValueError(f"row {row} has num_draft_tokens {lengths[row].item()}, outside 0 .. {drafts}")
    check_tokens("draft", batch.draft_tokens, vocabulary, before(lengths, drafts))
    check_params(batch.params)
    check_logits("target_logits", batch.target_logits, before(lengths + 1, drafts + 1))
    if batch.draft_logits is not None:
        check_logits("draft_logits", batch.draft_logits, before(lengths, drafts))
    vars(batch)[_CHECKED] = True  # where `functools.cached_property` keeps the laws


def _parts(batch: VerifyBatch, draft: str) -> Iterator[Part]:
    """Everything but the target's logits; the draft's have the name ``draft``."""
    rows, drafts, vocabulary = batch.shape
    yield "draft_tokens", batch.draft_tokens, [rows, drafts], (torch.int64,)
    yield "num_draft_tokens", batch.num_draft_tokens, [rows], (torch.int64,)
    if batch.draft_logits is not None:
        yield draft, batch.draft_logits, [rows, drafts, vocabulary], FLOATS
    yield from parts_of_params(batch.params, rows)


def check_tree_batch(batch: TreeBatch) -> None:
    """Refuse a tree batch that breaks its contract; raises as `check_batch`.

    Draft logits of nodes without children are ignored.
    """
    if not isinstance(batch, TreeBatch):
        raise TypeError(f"a batch must be a TreeBatch, but is {kind_of(batch)}")
    check_target("target_logits", batch.target_logits)
    rows, entries, vocabulary = batch.target_logits.shape
    parents = batch.parents
    is_tuple = isinstance(parents, tuple) and all(isinstance(parent, int) for parent in parents)
    if not is_tuple or len(parents) != entries - 1:
        raise ValueError(
            f"parents must be a tuple of {entries - 1} whole numbers, from target_logits "
            f"{list(batch.target_logits.shape)}, but is {parents!r}"
        )
    check_parents(parents)
    parts: list[Part] = [("tokens", batch.tokens, [rows, entries - 1], (torch.int64,))]
    if batch.draft_logits is not None:
        parts.append(("draft_logits", batch.draft_logits, [rows, entries, vocabulary], FLOATS))
    parts += parts_of_params(batch.params, rows)
    check_parts(parts, "target_logits", batch.target_logits)
    check_tokens("node", batch.tokens, vocabulary)
    check_params(batch.params)
    check_logits("target_logits", batch.target_logits)
    if batch.draft_logits is not None:
        has_children = [entry - 1 in parents for entry in range(entries)]
        device = batch.draft_logits.device
        check_logits("draft_logits", batch.draft_logits, lambda: torch.tensor([has_children], device=device))


def check_drafting(logits: Any, params: RowParameters) -> None:
    """Refuse what a drafter can't draw from: ``logits`` are ``[B, V]``; raises as `check_batch`."""
    require_tensor("logits", logits, FLOATS)
    require_numbers("logits", logits)
    if logits.dim() != 2 or logits.shape[1] < 1:
        raise ValueError(
            f"logits must have the shape [B, V] with at least one token, but has {list(logits.shape)}"
        )
    check_parts(parts_of_params(params, len(logits)), "logits", logits)
    check_params(params)
    check_logits("logits", logits.unsqueeze(1))
