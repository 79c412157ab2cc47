"""Is a batch what `VerifyBatch` says? Each check names the row and the position of the first fault."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tokenlaw.spec.generation_contracts import VerifyBatch, as_logits
from tokenlaw.spec.row_laws import RowParameters


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
    rows, device = len(target), target.device
    lengths = num_draft_tokens
    if lengths is None:
        lengths = torch.full((rows,), target.shape[1] - 1, device=device)
    batch = VerifyBatch(
        draft_tokens,
        lengths,
        as_logits(target, "target law"),
        None if draft is None else as_logits(draft, "draft law"),
        RowParameters.default(rows, device) if params is None else params,
    )
    check_batch(batch)
    return batch


def check_batch(batch: VerifyBatch) -> None:
    """Refuse a batch that breaks its contract.

    Raises
    ------
    TypeError
        A tensor has the wrong dtype.
    ValueError
        A shape, a token, a length, a logit or a sampling parameter is wrong.
    """
    _check_dtypes(batch)
    _check_shapes(batch)
    _check_numbers(batch)
    _check_params(batch)
    _check_logits("target_logits", batch.target_logits, batch.num_draft_tokens + 1)
    if batch.draft_logits is not None:
        _check_logits("draft_logits", batch.draft_logits, batch.num_draft_tokens)


def _check_dtypes(batch: VerifyBatch) -> None:
    """Token ids and counts int64, parameters as `RowParameters` says, logits of any float; on one device."""
    params = batch.params
    exact = {
        "draft_tokens": (batch.draft_tokens, torch.int64),
        "num_draft_tokens": (batch.num_draft_tokens, torch.int64),
        "params.temperature": (params.temperature, torch.float64),
        "params.top_k": (params.top_k, torch.int64),
        "params.top_p": (params.top_p, torch.float64),
        "params.min_p": (params.min_p, torch.float64),
        "params.seeds": (params.seeds, torch.int64),
    }
    for name, (tensor, dtype) in exact.items():
        if tensor is not None and tensor.dtype != dtype:
            raise TypeError(f"{name} must be {_short(dtype)}, but is {_short(tensor.dtype)}")
    logits = {"target_logits": batch.target_logits, "draft_logits": batch.draft_logits}
    for name, floats in logits.items():
        if floats is not None and not floats.is_floating_point():
            raise TypeError(f"{name} must be floating point, but is {_short(floats.dtype)}")
    device = batch.target_logits.device
    for name, tensor in {**{name: one for name, (one, _) in exact.items()}, **logits}.items():
        if tensor is not None and tensor.device != device:
            raise ValueError(f"{name} is on {tensor.device}, but target_logits on {device}")


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _check_shapes(batch: VerifyBatch) -> None:
    if batch.target_logits.dim() != 3 or min(batch.target_logits.shape[1:]) < 1:
        raise ValueError(
            "target_logits must have the shape [B, K + 1, V] with at least one position and one token, "
            f"but has {list(batch.target_logits.shape)}"
        )
    rows, drafts, vocabulary = batch.shape
    wanted = {
        "draft_tokens": (batch.draft_tokens, [rows, drafts]),
        "num_draft_tokens": (batch.num_draft_tokens, [rows]),
        "draft_logits": (batch.draft_logits, [rows, drafts, vocabulary]),
        "params.temperature": (batch.params.temperature, [rows]),
        "params.top_k": (batch.params.top_k, [rows]),
        "params.top_p": (batch.params.top_p, [rows]),
        "params.min_p": (batch.params.min_p, [rows]),
        "params.seeds": (batch.params.seeds, [rows]),
    }
    for name, (tensor, shape) in wanted.items():
        if tensor is not None and list(tensor.shape) != shape:
            raise ValueError(
                f"{name} must have the shape {shape}, from target_logits {list(batch.target_logits.shape)}, "
                f"but has {list(tensor.shape)}"
            )


def _check_numbers(batch: VerifyBatch) -> None:
    _, drafts, vocabulary = batch.shape
    lengths, tokens = batch.num_draft_tokens, batch.draft_tokens
    row = _first((lengths < 0) | (lengths > drafts))
    if row is not None:
        raise ValueError(f"row {row[0]} has num_draft_tokens {lengths[row[0]].item()}, outside 0 .. {drafts}")
    read = torch.arange(drafts, device=tokens.device) < lengths[:, None]
    place = _first(read & ((tokens < 0) | (tokens >= vocabulary)))
    if place is not None:
        raise ValueError(
            f"row {place[0]}, draft {place[1]}: token {tokens[tuple(place)].item()} is outside "
            f"0 .. {vocabulary - 1}"
        )


def _check_params(batch: VerifyBatch) -> None:
    params, temperature = batch.params, batch.params.temperature
    wrong = {
        "temperature": (~((temperature >= 0) & torch.isfinite(temperature)), "finite, 0 or more"),
        "top_k": (params.top_k < 0, "0, which keeps every token, or more"),
        "top_p": (~((params.top_p > 0) & (params.top_p <= 1)), "above 0, at most 1"),
        "min_p": (~((params.min_p >= 0) & (params.min_p <= 1)), "between 0 and 1"),
    }
    for name, (rows, rule) in wrong.items():
        row = _first(rows)
        if row is not None:
            found = getattr(params, name)[row[0]].item()
            raise ValueError(f"row {row[0]} has the {name} {found}; a {name} is {rule}")


def _check_logits(name: str, logits: Tensor, lengths: Tensor) -> None:
    """Every position that is read has finite logits or minus infinity, and one finite at least.

    The largest logit of a position shows all faults: NaN and infinity win, and so does the last minus
    infinity. Rows that share memory are looked at once.
    """
    shared = len(logits) > 1 and logits.stride(0) == 0
    largest = (logits[:1] if shared else logits).amax(-1)
    read = torch.arange(logits.shape[1], device=logits.device) < lengths[:, None]
    place = _first(read & ~torch.isfinite(largest))
    if place is None:
        return
    row, position = place
    token = _first(~(logits[row, position] < torch.inf))
    if token is None:
        raise ValueError(f"{name}, row {row}, position {position}: no token is possible")
    raise ValueError(
        f"{name}, row {row}, position {position}, token {token[0]}: {logits[row, position, token[0]].item()} "
        "is no logit; one is finite, or minus infinity if the token is impossible"
    )


def _first(found: Tensor) -> list[int] | None:
    """Indices of the first true entry."""
    if not bool(found.any()):
        return None
    place: list[int] = found.nonzero()[0].tolist()
    return place
