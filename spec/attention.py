"""What attention is: one sequence, contiguous keys and values, float64.

The formula is that of Vaswani et al. 2017 (arXiv:1706.03762, equation 1) with the usual additions: grouped
heads (Ainslie et al. 2023, arXiv:2305.13245), sliding window (Beltagy et al. 2020, arXiv:2004.05150), softcap
(Gemma 2, arXiv:2408.00118), ALiBi (Press et al. 2022, arXiv:2108.12409), and a learned sink logit per head
(gpt-oss, arXiv:2508.10925). How far an implementation in low precision may stray: `attention_bound`.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tokenlaw.spec.attention_arguments import check_arguments, check_finite, check_float64


def visible_keys(
    num_queries: int, length: int, window: int | None = None
) -> Bool[Tensor, "num_queries length"]:
    """Which key each query sees. Query i stands at position p = length - num_queries + i and sees 0 .. p.

    With a window W it sees max(0, p - W + 1) .. p. A query at a negative position (more queries than keys)
    sees nothing.

    >>> visible_keys(2, 4).int().tolist()
    [[1, 1, 1, 0], [1, 1, 1, 1]]
    >>> visible_keys(2, 4, window=2).int().tolist()
    [[0, 1, 1, 0], [0, 0, 1, 1]]
    """
    distance = _key_minus_query(num_queries, length)
    visible = distance <= 0
    return visible if window is None else visible & (distance > -window)


def attention_scores(
    query: Float[Tensor, "num_queries query_heads head_size"],
    keys: Float[Tensor, "length kv_heads head_size"],
    scale: float,
    *,
    window: int | None = None,
    softcap: float | None = None,
    alibi_slopes: Float[Tensor, " query_heads"] | None = None,
) -> Float[Tensor, "num_queries query_heads length"]:
    """Logits of the softmax: scale * <q, k>, then softcap, then ALiBi; minus infinity where not visible.

    Query head h reads KV head h // (query_heads // kv_heads). Softcap c makes a score s into c * tanh(s / c).
    ALiBi adds slope * (key position - query position), which is never positive for a positive slope.

    >>> one = torch.ones(2, 1, 1, dtype=torch.float64)
    >>> attention_scores(one, one, 0.5).squeeze(1).tolist()
    [[0.5, -inf], [0.5, 0.5]]
    """
    group = query.shape[1] // keys.shape[1]
    scores = scale * torch.einsum("qhd,khd->qhk", query, keys.repeat_interleave(group, dim=1))
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if alibi_slopes is not None:
        distance = _key_minus_query(query.shape[0], keys.shape[0])
        scores = scores + alibi_slopes[None, :, None] * distance[:, None, :]
    visible = visible_keys(query.shape[0], keys.shape[0], window)
    return scores.masked_fill(~visible[:, None, :], -math.inf)


def attend(
    query: Float[Tensor, "num_queries query_heads head_size"],
    keys: Float[Tensor, "length kv_heads head_size"],
    values: Float[Tensor, "length kv_heads head_size"],
    scale: float,
    *,
    window: int | None = None,
    softcap: float | None = None,
    alibi_slopes: Float[Tensor, " query_heads"] | None = None,
    sinks: Float[Tensor, " query_heads"] | None = None,
) -> tuple[Float[Tensor, "num_queries query_heads head_size"], Float[Tensor, "num_queries query_heads"]]:
    """Causal attention of the last ``num_queries`` positions of one sequence.

    Parameters
    ----------
    query, keys, values
        float64, finite. Query i stands at position length - num_queries + i. ``query_heads`` is a multiple of
        ``kv_heads``.
    scale
        Factor on the inner products, usually head_size ** -0.5.
    window, softcap, alibi_slopes
        See `attention_scores`.
    sinks
        One logit per head that joins the denominator of the softmax and has no value; minus infinity: none.

    Returns
    -------
    output
        Sum over visible keys j of exp(score_j - lse) * value_j; zero where nothing is visible.
    lse
        Natural logarithm of the denominator: the sum of exp(score_j) over visible keys j, plus exp(sink).
        A row without visible keys therefore has lse = sink, or minus infinity without sinks.

    Raises
    ------
    ValueError
        An argument has the wrong shape, dtype or range; the message says which and what to do.

    Examples
    --------
    Equal scores average the visible values; a sink of the same score takes its share of the weight.

    >>> zeros, values = torch.zeros(2, 1, 1).double(), torch.tensor([[[1.0]], [[3.0]]]).double()
    >>> output, lse = attend(zeros, zeros, values, 1.0)
    >>> output.flatten().tolist(), lse.flatten().exp().round(decimals=9).tolist()
    ([1.0, 2.0], [1.0, 2.0])
    >>> output, _ = attend(zeros, zeros, values, 1.0, sinks=torch.zeros(1).double())
    >>> output.flatten().round(decimals=9).tolist()
    [0.5, 1.333333333]
    >>> [part.flatten().tolist() for part in attend(zeros, zeros[:0], values[:0], 1.0)]
    [[0.0, 0.0], [-inf, -inf]]
    """
    check_arguments(
        query, keys, values, scale, window=window, softcap=softcap, alibi_slopes=alibi_slopes, sinks=sinks
    )
    scores = attention_scores(query, keys, scale, window=window, softcap=softcap, alibi_slopes=alibi_slopes)
    lse = log_denominator(scores, sinks)
    weights = torch.exp(scores - finite_or_zero(lse)[..., None])
    group = query.shape[1] // keys.shape[1]
    return torch.einsum("qhk,khd->qhd", weights, values.repeat_interleave(group, dim=1)), lse


def merge(
    outputs: Float[Tensor, "parts ... head_size"], lses: Float[Tensor, "parts ..."]
) -> tuple[Float[Tensor, "... head_size"], Float[Tensor, "..."]]:
    """State of attention over all keys, from the states over disjoint parts of them.

    lse = log of the sum of exp(lse_part); output = sum of exp(lse_part - lse) * output_part. A part with lse
    minus infinity is empty and its output is ignored, whatever it holds. Where all parts are empty, output is
    zero and lse minus infinity. A sink logit belongs to exactly one of the parts.

    Source: Dao et al. 2022 (arXiv:2205.14135, section 3.1); the operator of FlashInfer (arXiv:2501.01005).

    Raises
    ------
    ValueError
        Shapes or dtypes (float64) don't fit, an lse is NaN or plus infinity, or a part that isn't empty holds
        NaN or infinity.

    Examples
    --------
    >>> outputs, lses = torch.tensor([[1.0], [3.0], [math.nan]]).double(), torch.zeros(3).double()
    >>> lses[2] = -math.inf
    >>> merge(outputs, lses)[0].round(decimals=9).tolist()
    [2.0]
    >>> [part.tolist() for part in merge(outputs[2:], lses[2:])]
    [[0.0], -inf]
    """
    if outputs.dim() == 0 or outputs.shape[:-1] != lses.shape:
        raise ValueError(
            f"outputs {tuple(outputs.shape)} must have the shape of lses {tuple(lses.shape)} and one more "
            "dimension, the head size, at the end"
        )
    check_float64(outputs=outputs, lses=lses)
    empty = lses == -math.inf
    if not bool((lses.isfinite() | empty).all()):
        raise ValueError(
            "lses must be finite, or minus infinity for an empty part; found NaN or plus infinity"
        )
    kept = outputs.masked_fill(empty[..., None], 0.0)
    check_finite(outputs=kept)
    lse = torch.logsumexp(lses, dim=0)
    weights = torch.exp(lses - finite_or_zero(lse))
    return (weights[..., None] * kept).sum(dim=0), lse


def log_denominator(
    scores: Float[Tensor, "num_queries query_heads length"], sinks: Float[Tensor, " query_heads"] | None
) -> Float[Tensor, "num_queries query_heads"]:
    """Log-sum-exp of each row of scores, its head's sink included; minus infinity for a row of nothing."""
    if sinks is not None:
        scores = torch.cat([scores, sinks[None, :, None].expand(scores.shape[0], -1, 1)], dim=-1)
    return torch.logsumexp(scores, dim=-1)


def finite_or_zero(lse: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The lse with minus infinity replaced by 0, so that exp(-inf - lse) is 0 and not NaN."""
    return lse.masked_fill(lse == -math.inf, 0.0)


def _key_minus_query(num_queries: int, length: int) -> Float[Tensor, "num_queries length"]:
    positions = torch.arange(length, dtype=torch.float64)
    return positions[None, :] - (length - num_queries + torch.arange(num_queries))[:, None]
