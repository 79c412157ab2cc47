"""The tensors of an attention case.

Everything follows from the case: the same case gives the same bits on every machine with the same torch.
Content (query, keys, values) depends on ``seed``, the shapes and ``shared_blocks`` alone, so two cases
that differ in placement, layout, unused entries or poison only must have the same answer.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tokenlaw.properties.attention_cases import AttentionCase
from tokenlaw.spec.contracts import NO_BLOCK


@dataclass(frozen=True)
class Call:
    """Tensors of one call (shapes as in `tokenlaw.spec.contracts.PagedAttention`), and the rows behind it.

    ``keys[row]`` and ``values[row]`` are ``[length, kv_heads, head_size]``: what the row must see.
    ``readable`` tells which slots some row may read; ``options`` are keyword arguments of ``attend``.
    """

    query: Float[Tensor, "batch num_queries query_heads head_size"]
    key_cache: Float[Tensor, "num_blocks block_size kv_heads head_size"]
    value_cache: Float[Tensor, "num_blocks block_size kv_heads head_size"]
    block_tables: Int[Tensor, "batch max_blocks"]
    lengths: Int[Tensor, " batch"]
    scale: float
    keys: list[Float[Tensor, "length kv_heads head_size"]]
    values: list[Float[Tensor, "length kv_heads head_size"]]
    readable: Bool[Tensor, "num_blocks block_size"]
    options: dict[str, Any] = field(default_factory=dict)


Content = tuple[Tensor, list[Tensor], list[Tensor]]
"""Query, and keys and values of every row."""


def make_call(case: AttentionCase, device: str = "cpu", content: Content | None = None) -> Call:
    """Make the tensors of the case; ``device`` is where the implementation wants them.

    ``content`` replaces what follows from the seed; it must fit the lengths and sizes of the case.
    """
    query, keys, values = content or _content(case)
    tables, num_blocks = _tables(case)
    readable = torch.zeros(num_blocks, case.block_size, dtype=torch.bool)
    pools = _pools(case, num_blocks)
    for row, length in enumerate(case.lengths):
        position = torch.arange(length)
        block, slot = tables[row, position // case.block_size], position % case.block_size
        lowest = 0 if case.window is None else max(0, length - case.num_queries - case.window + 1)
        readable[block[lowest:], slot[lowest:]] = True
        pools[0][block, slot], pools[1][block, slot] = keys[row], values[row]
    _poison(case, pools, readable)
    key_cache, value_cache = _laid_out(case, pools, device)
    lengths = torch.tensor(case.lengths, dtype=torch.int32, device=device)
    options = {name: _moved(value, device) for name, value in _options(case).items()}
    query = query.to(device)
    tables = tables.to(torch.int32).to(device)
    return Call(query, key_cache, value_cache, tables, lengths, case.scale, keys, values, readable, options)


def _moved(value: Any, device: str) -> Any:
    return value.to(device) if isinstance(value, Tensor) else value


def _generator(case: AttentionCase, purpose: int) -> torch.Generator:
    return torch.Generator().manual_seed((case.seed * 16 + purpose) % 2**62)


def _content(case: AttentionCase) -> Content:
    """Query, and keys and values of every row, rounded to the dtype of the case."""
    generator, dtype = _generator(case, 0), getattr(torch, case.dtype)
    heads = case.kv_heads * case.group_size
    shape = (len(case.lengths), case.num_queries, heads, case.head_size)
    direction = torch.nn.functional.normalize(
        torch.randn(case.head_size, generator=generator, dtype=torch.float64), dim=0
    )
    query = _sample(case, shape, direction, generator).to(dtype)
    keys, values = [], []
    for length in case.lengths:
        row = (length, case.kv_heads, case.head_size)
        keys.append(_sample(case, row, direction, generator).to(dtype))
        values.append(_sample(case, row, direction, generator).to(dtype))
    for row_keys, row_values in zip(keys[1:], values[1:], strict=True):
        shared = _shared_tokens(case, len(keys[0]), len(row_keys))
        row_keys[:shared], row_values[:shared] = keys[0][:shared], values[0][:shared]
    return query, keys, values


def _shared_tokens(case: AttentionCase, first: int, other: int) -> int:
    """Tokens at the head of a row that are those of row 0: whole blocks that both rows fill."""
    return min(case.shared_blocks, first // case.block_size, other // case.block_size) * case.block_size


def _sample(
    case: AttentionCase, shape: tuple[int, ...], direction: Tensor, generator: torch.Generator
) -> Tensor:
    normal = torch.randn(shape, generator=generator, dtype=torch.float64)
    if case.data == "direction":
        return 4.0 * direction + 0.25 * normal
    if case.data == "mean":
        return 3.0 + 0.5 * normal
    if case.data == "spikes":
        spiked = torch.rand(shape, generator=generator, dtype=torch.float64) < 0.1
        return torch.where(spiked, 12.0 * normal.sign(), 0.5 * normal)
    return normal


def _tables(case: AttentionCase) -> tuple[Tensor, int]:
    """Block tables, int64 ``[batch, max_blocks]``, and the number of blocks of the pool."""
    generator = _generator(case, 1 + 8 * case.placement)
    counts = [-(-length // case.block_size) for length in case.lengths]
    total = sum(counts)
    spare = 3 if case.placement else 0
    num_blocks = max(total + spare, 1)
    ids = torch.randperm(num_blocks, generator=generator) if case.placement else torch.arange(num_blocks)
    if case.placement and total:
        # The last block of the pool is where address arithmetic overflows or wraps first.
        last = int((ids == num_blocks - 1).nonzero())
        ids[[0, last]] = ids[[last, 0]]
    width = max(*counts, 1) + (0 if case.unused == "none" else 2)
    unused = {"none": 0, "no-block": NO_BLOCK}.get(case.unused)
    tables = torch.randint(0, num_blocks, (len(counts), width), generator=generator)
    if unused is not None:
        tables.fill_(unused)
    taken = 0
    for row, count in enumerate(counts):
        tables[row, :count] = ids[taken : taken + count]
        taken += count
        shared = _shared_tokens(case, case.lengths[0], case.lengths[row]) // case.block_size
        if case.placement:
            tables[row, :shared] = tables[0, :shared]
    return tables, num_blocks


def _pools(case: AttentionCase, num_blocks: int) -> tuple[Tensor, Tensor]:
    """Pools full of finite leftovers: zeros there would hide a wrong mask."""
    generator = _generator(case, 2)
    shape = (2, num_blocks, case.block_size, case.kv_heads, case.head_size)
    keys, values = 2.0 * torch.randn(shape, generator=generator, dtype=torch.float64).to(
        getattr(torch, case.dtype)
    )
    return keys, values


def _poison(case: AttentionCase, pools: tuple[Tensor, Tensor], readable: Tensor) -> None:
    if case.poison == "none":
        return
    largest = torch.finfo(getattr(torch, case.dtype)).max / 2
    value = {"nan": float("nan"), "infinity": float("inf"), "huge": largest}[case.poison]
    for name, pool in zip(("keys", "values"), pools, strict=True):
        if case.poison_in in (name, "both"):
            pool[~readable] = torch.where(pool[~readable] < 0, -value, value).to(pool.dtype)


def _laid_out(case: AttentionCase, pools: tuple[Tensor, Tensor], device: str) -> tuple[Tensor, Tensor]:
    """The two caches as views of the memory that the layout says."""
    keys, values = (pool.to(device) for pool in pools)
    if case.layout == "interleaved":
        both = torch.stack((keys, values), dim=1)
        return both[:, 0], both[:, 1]
    if case.layout == "head-major":
        keys, values = (pool.transpose(1, 2).contiguous().transpose(1, 2) for pool in (keys, values))
    if case.layout == "padded":
        keys, values = (_padded(pool)[:, : case.block_size] for pool in (keys, values))
    return keys, values


def _padded(pool: Tensor) -> Tensor:
    """The pool with three more slots at the end of each page, full of sevens."""
    return torch.cat((pool, torch.full_like(pool[:, :1], 7.0).expand(-1, 3, -1, -1)), dim=1)


def _options(case: AttentionCase) -> dict[str, Any]:
    generator, heads = _generator(case, 3), case.kv_heads * case.group_size
    options: dict[str, Any] = {}
    if case.window is not None:
        options["window"] = case.window
    if case.softcap is not None:
        options["softcap"] = case.softcap
    if case.sinks:
        options["sinks"] = torch.randn(heads, generator=generator) + 1.0
    if case.alibi:
        options["alibi_slopes"] = 2.0 ** -torch.linspace(0.5, 4.0, heads)
    return options
