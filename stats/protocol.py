"""Is what a verifier returned a legal answer at all? Names the first row and position that isn't."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int32, Int64
from torch import Tensor

from tokenlaw.spec.generation_contracts import NO_TOKEN, TreeBatch, VerifyBatch
from tokenlaw.spec.tensor_checks import kind_of


class ProtocolError(Exception):
    """An implementation returned something that the contract doesn't allow; refutes ``law/protocol``."""


@dataclass(frozen=True)
class Columns:
    """Legal tokens position by position, which is how they are checked, counted and looked up the fastest.

    Attributes
    ----------
    entries : int32 ``[B]`` for each position: the token plus one, 0 where there is none.
    accepted : int32 ``[B]``, how many drafts each row accepted: one less than its tokens.
    """

    entries: list[Int32[Tensor, " batch"]]
    accepted: Int32[Tensor, " batch"]


def check_emitted(emitted: Any, batch: VerifyBatch) -> Columns:
    """Raise `ProtocolError` unless these are legal tokens for the batch.

    Legal: int64 ``[B, K + 1]`` on the device of the batch; tokens in 0 .. V - 1; in every row at least one
    token, at most one more than it has drafts, and nothing but `NO_TOKEN` after the last one.
    """
    rows, drafts, _ = batch.shape
    _check_tensor(emitted, "verify returned", [rows, drafts + 1], batch.draft_tokens.device)
    columns, wrong = _columns(emitted, batch.num_draft_tokens)
    if rows and (wrong or _unknown(emitted, batch.shape[2])):
        _raise_first(emitted, batch)
    return columns


def _columns(emitted: Tensor, most: Int64[Tensor, " batch"]) -> tuple[Columns, bool]:
    """The columns, and whether a row has none, too many or a token behind a place without one."""
    entries = [column.contiguous() for column in emitted.int().sub_(NO_TOKEN).unbind(1)]
    # Numbers 0 and 1: on a CPU torch compares whole numbers several times as slowly as it clamps them.
    before = entries[0].clamp(0, 1)
    accepted = torch.zeros_like(before)
    worst = 1 - before
    for entry in entries[1:]:
        there = entry.clamp(0, 1)
        accepted += there
        worst = torch.maximum(worst, there - before)
        before = there
    worst = torch.maximum(worst, accepted - most.int())
    return Columns(entries, accepted), len(worst) > 0 and bool(worst.amax() > 0)


def _unknown(emitted: Tensor, vocabulary: int) -> bool:
    """Whether something is neither a token nor `NO_TOKEN`."""
    lowest, largest = emitted.aminmax()
    return bool((lowest < NO_TOKEN) | (largest >= vocabulary))


def _raise_first(emitted: Tensor, batch: VerifyBatch) -> None:
    rows, _, vocabulary = batch.shape
    there = emitted != NO_TOKEN
    unknown = (emitted < NO_TOKEN) | (emitted >= vocabulary)
    faults = torch.stack([unknown, _holes(there), ~_allowed(there, batch)])
    fault, row, position = faults.nonzero()[0].tolist()
    found = emitted[row].tolist()
    reasons = (
        f"{found[position]} is no token (0 .. {vocabulary - 1}, or {NO_TOKEN} behind the last one)",
        f"there is a token behind {NO_TOKEN}",
        _wrong_count(int(there[row].sum()), int(batch.num_draft_tokens[row])),
    )
    raise ProtocolError(
        f"row {row} of {rows}, position {position}: {reasons[fault]}; the row emitted {found} with "
        f"{int(batch.num_draft_tokens[row])} drafts {batch.draft_tokens[row].tolist()}"
    )


def _wrong_count(emitted: int, drafts: int) -> str:
    return "no token was emitted" if not emitted else f"{emitted} tokens were emitted from {drafts} drafts"


def _holes(there: Tensor) -> Tensor:
    """Tokens that stand behind a place without one."""
    holes = torch.zeros_like(there)
    holes[:, 1:] = there[:, 1:] & ~there[:, :-1]
    return holes


def _allowed(there: Tensor, batch: VerifyBatch) -> Tensor:
    """Places that may hold what they hold: a token at position 0, none behind one more than the drafts."""
    positions = torch.arange(there.shape[1], device=there.device)
    allowed = ~there | (positions <= batch.num_draft_tokens[:, None])
    allowed[:, 0] &= there[:, 0]
    return allowed


def check_tree(emitted: Any, batch: TreeBatch) -> None:
    """Raise `ProtocolError` unless these are legal tokens for a tree: as for a chain as deep as the tree."""
    rows, vocabulary = len(batch.tokens), batch.target_logits.shape[-1]
    _check_tensor(emitted, "verify_tree returned", [rows, batch.depth + 1], batch.tokens.device)
    there = emitted != NO_TOKEN
    wrong = (emitted < NO_TOKEN) | (emitted >= vocabulary) | _holes(there)
    wrong[:, 0] |= ~there[:, 0]
    if bool(wrong.any()):
        row, position = wrong.nonzero()[0].tolist()
        raise ProtocolError(
            f"row {row} of {rows}, position {position}: verify_tree emitted {emitted[row].tolist()}; wanted "
            f"are tokens 0 .. {vocabulary - 1}, at least one, and {NO_TOKEN} behind the last"
        )


def check_drafts(tokens: Any, position: int, rows: int, vocabulary: int, device: torch.device) -> None:
    """Raise `ProtocolError` unless these are drafts for one position: int64 ``[rows]``, in 0 .. V - 1."""
    _check_tensor(tokens, f"draft at position {position} returned", [rows], device)
    wrong = (tokens < 0) | (tokens >= vocabulary)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ProtocolError(
            f"draft at position {position}, row {row} of {rows}: {int(tokens[row])} is no token "
            f"(0 .. {vocabulary - 1})"
        )


def _check_tensor(found: Any, what: str, shape: list[int], device: torch.device) -> None:
    if not isinstance(found, Tensor):
        raise ProtocolError(f"{what} {kind_of(found)} instead of an int64 tensor {shape}")
    if found.is_nested:  # it has no shape
        raise ProtocolError(f"{what} a nested tensor instead of a dense one {shape}")
    if found.layout != torch.strided:
        raise ProtocolError(f"{what} a tensor of layout {found.layout} instead of a dense one {shape}")
    if list(found.shape) != shape or found.dtype != torch.int64 or found.device.type != device.type:
        raise ProtocolError(
            f"{what} {found.dtype} {list(found.shape)} on {found.device} instead of torch.int64 {shape} "
            f"on {device}"
        )
