"""Paged attention by gathering: row by row, take the slots that the row may read, then apply the formula.

Slots that are never read can't disturb the output, and the shape of every product depends on the row alone.
So the output doesn't depend, in any bit, on where blocks lie, on what else they hold, or on the other rows.
The formula is that of `tokenlaw.spec.attention`, in float32 or, for float64 inputs, in float64.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Formula(NamedTuple):
    """What a call asks for in every row; see `tokenlaw.spec.attention.attend`."""

    scale: float
    window: int | None
    softcap: float | None
    sinks: Float[Tensor, " query_heads"] | None
    alibi_slopes: Float[Tensor, " query_heads"] | None


class GatherAttention:
    """A `PagedAttention` with every optional capability, on any device and in any floating-point dtype."""

    def attend(
        self,
        query: Float[Tensor, "batch num_queries query_heads head_size"],
        key_cache: Float[Tensor, "num_blocks block_size kv_heads head_size"],
        value_cache: Float[Tensor, "num_blocks block_size kv_heads head_size"],
        block_tables: Int[Tensor, "batch max_blocks"],
        lengths: Int[Tensor, " batch"],
        scale: float,
        *,
        window: int | None = None,
        softcap: float | None = None,
        sinks: Float[Tensor, " query_heads"] | None = None,
        alibi_slopes: Float[Tensor, " query_heads"] | None = None,
        return_lse: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Attention of each row's queries, the last positions of its sequence, over its paged keys.

        Parameters
        ----------
        query, key_cache, value_cache
            One dtype. The number of query heads is a multiple of the number of KV heads.
        block_tables
            Entries that no query of the row sees may hold anything.
        lengths
            Tokens of each row, its queries included.
        window, softcap, sinks, alibi_slopes
            See `tokenlaw.spec.attention.attend`.
        return_lse
            Also return the natural logarithm of the softmax denominator.

        Returns
        -------
        output
            ``[batch, num_queries, query_heads, head_size]`` in the dtype of the query.
        lse
            ``[batch, num_queries, query_heads]`` in the dtype of the computation.

        Raises
        ------
        ValueError
            Head numbers don't divide, a table is too short for its length, or a block id isn't in the cache.
        """
        if query.shape[2] % key_cache.shape[2]:
            raise ValueError(f"{query.shape[2]} query heads can't share {key_cache.shape[2]} KV heads evenly")
        formula = Formula(scale, window, softcap, sinks, alibi_slopes)
        output = torch.empty_like(query)
        lse = query.new_empty(query.shape[:3], dtype=_computed_in(query.dtype))
        tables: list[list[int]] = block_tables.tolist()
        for row, length in enumerate(lengths.tolist()):
            output[row], lse[row] = self._row(
                query[row], key_cache, value_cache, tables[row], length, formula
            )
        return (output, lse) if return_lse else output

    def _row(
        self,
        query: Float[Tensor, "num_queries query_heads head_size"],
        key_cache: Float[Tensor, "num_blocks block_size kv_heads head_size"],
        value_cache: Float[Tensor, "num_blocks block_size kv_heads head_size"],
        table: list[int],
        length: int,
        formula: Formula,
    ) -> tuple[Float[Tensor, "num_queries query_heads head_size"], Float[Tensor, "num_queries query_heads"]]:
        """Output and log-sum-exp of one row."""
        dtype, window = _computed_in(query.dtype), formula.window
        first = 0 if window is None else max(0, length - query.shape[0] - window + 1)
        slots = _Slots(table, first, length, key_cache.shape[:2])
        keys, values = (_fresh(slots.gather(cache), dtype) for cache in (key_cache, value_cache))
        scores = formula.scale * _grouped_products(_fresh(query, dtype), keys)
        return _weighted(_adjusted(scores, length - first, formula), values, formula.sinks)

    def merge(
        self, outputs: Float[Tensor, "parts ... head_size"], lses: Float[Tensor, "parts ..."]
    ) -> tuple[Float[Tensor, "... head_size"], Float[Tensor, "..."]]:
        """Attention over all keys from attention over disjoint parts of them.

        A part with a log-sum-exp of minus infinity is empty, and its output is ignored whatever it holds. The
        computation is in float32, or float64 if the log-sum-exps are; results have the dtypes of the inputs.

        Source: Dao et al. 2022 (arXiv:2205.14135, section 3.1).
        """
        dtype = _computed_in(lses.dtype)
        parts = outputs.to(dtype).masked_fill((lses == -math.inf)[..., None], 0.0)
        lse = torch.logsumexp(lses.to(dtype), dim=0)
        weights = _softmax_or_zero(lses.to(dtype), lse[None], dim=0)
        merged = (weights[..., None] * parts).sum(dim=0)
        return merged.to(outputs.dtype), lse.to(lses.dtype)


def _computed_in(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the computation; torch promotes no float8, so it is said here."""
    return torch.float64 if dtype == torch.float64 else torch.float32


class _Slots:
    """The slots of positions ``first`` .. ``length - 1`` of one row."""

    def __init__(self, table: list[int], first: int, length: int, cache_shape: tuple[int, ...]) -> None:
        num_blocks, block_size = cache_shape
        if length > len(table) * block_size:
            raise ValueError(
                f"a row of length {length} has a table of only {len(table)} blocks of {block_size}"
            )
        first_block = first // block_size
        self._blocks = table[first_block : -(-length // block_size)]
        for logical, block in enumerate(self._blocks, first_block):
            # A negative id would quietly count from the end of the cache.
            if not 0 <= block < num_blocks:
                raise ValueError(
                    f"a row of length {length} needs its logical block {logical}, but its table names block "
                    f"{block} of a cache of {num_blocks}"
                )
        self._within = slice(first - first_block * block_size, length - first_block * block_size)

    def gather(
        self, cache: Float[Tensor, "num_blocks block_size kv_heads head_size"]
    ) -> Float[Tensor, "visible kv_heads head_size"]:
        """What the cache, which may have any strides, holds in these slots."""
        blocks = cache[torch.tensor(self._blocks, dtype=torch.int64, device=cache.device)]
        return blocks.flatten(0, 1)[self._within]


def _fresh(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A contiguous copy: products may depend, in their last bits, on strides and alignment of operands."""
    return tensor.to(dtype).clone(memory_format=torch.contiguous_format)


def _grouped_products(
    query: Float[Tensor, "num_queries query_heads head_size"],
    keys: Float[Tensor, "visible kv_heads head_size"],
) -> Float[Tensor, "num_queries query_heads visible"]:
    """Inner products of each query head with its KV head, h // (query_heads // kv_heads)."""
    num_queries, query_heads, head_size = query.shape
    kv_heads = keys.shape[1]
    grouped = query.view(num_queries, kv_heads, query_heads // kv_heads, head_size)
    return torch.einsum("qhgd,khd->qhgk", grouped, keys).flatten(1, 2)


def _adjusted(
    scores: Float[Tensor, "num_queries query_heads visible"],
    length: int,
    formula: Formula,
) -> Float[Tensor, "num_queries query_heads visible"]:
    """Scores with softcap, ALiBi and mask; positions are counted from the first gathered one."""
    _, window, softcap, _, alibi_slopes = formula
    queries, keys = (torch.arange(count, device=scores.device) for count in (scores.shape[0], length))
    distance = keys[None, :] - (length - scores.shape[0] + queries)[:, None]
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if alibi_slopes is not None:
        scores = scores + alibi_slopes.to(scores.dtype)[None, :, None] * distance[:, None, :]
    hidden = distance > 0
    if window is not None:
        hidden |= distance <= -window
    return scores.masked_fill(hidden[:, None, :], -math.inf)


def _weighted(
    scores: Float[Tensor, "num_queries query_heads visible"],
    values: Float[Tensor, "visible kv_heads head_size"],
    sinks: Float[Tensor, " query_heads"] | None,
) -> tuple[Float[Tensor, "num_queries query_heads head_size"], Float[Tensor, "num_queries query_heads"]]:
    """Softmax-weighted values and log-sum-exp; a sink takes part in the denominator only."""
    logits = scores
    if sinks is not None:
        sink = sinks.to(scores.dtype)[None, :, None].expand(scores.shape[0], -1, 1)
        logits = torch.cat([scores, sink], dim=-1)
    lse = torch.logsumexp(logits, dim=-1)
    weights = _softmax_or_zero(logits, lse[..., None], dim=-1)[..., : scores.shape[-1]]
    num_queries, query_heads, visible = weights.shape
    kv_heads = values.shape[1]
    grouped = weights.view(num_queries, kv_heads, query_heads // kv_heads, visible)
    return torch.einsum("qhgk,khd->qhgd", grouped, values).flatten(1, 2), lse


def _softmax_or_zero(logits: Tensor, lse: Tensor, dim: int) -> Tensor:
    """Softmax; zero instead of NaN where every logit is minus infinity (``lse`` keeps the dimension)."""
    return torch.softmax(logits, dim).masked_fill(lse == -math.inf, 0.0)
