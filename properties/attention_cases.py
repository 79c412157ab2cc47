"""Attention cases: plain data that says one call of paged attention. Tensors: `attention_tensors`."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from tokenlaw.properties.trace import TraceError

SCHEMA = "tokenlaw.attention/1"

MAX_ELEMENTS = 2**27
"""Numbers in one tensor of a case that is read from a file."""

DType = Literal["float32", "float16", "bfloat16"]
Data = Literal["normal", "direction", "mean", "spikes"]
Layout = Literal["contiguous", "interleaved", "head-major", "padded"]
Poison = Literal["none", "nan", "infinity", "huge"]
Place = Literal["keys", "values", "both"]
Unused = Literal["none", "no-block", "garbage"]


class AttentionCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call. Lengths are in tokens; a row is empty or has at least ``num_queries`` tokens.

    ``data``: independent normals; one key direction that dominates; a large mean; sparse spikes.
    ``layout``: the caches are contiguous; or views of a pool that interleaves K and V; of a pool with
    heads before slots; of pages with unused slots at their end.
    ``placement``: 0 puts the blocks in order at the start of the pool, another number is the seed of a random
    placement into a pool with spare blocks, the last of which is always used.
    ``shared_blocks``: so many leading full blocks have the content of row 0 (and its physical blocks,
    unless ``placement`` is 0). ``unused``: what stands in the table beyond the length: the table ends with
    the longest row and holds zeros, or has further entries that hold -1 or random block ids of the pool.
    ``poison`` in ``poison_in``: what stands in slots that no row may read; ``none``: finite leftovers.
    ``splits``: positions at which a merge check cuts each row, modulo its length + 1.
    """

    lengths: tuple[int, ...] = (1,)
    num_queries: int = 1
    block_size: int = 4
    kv_heads: int = 1
    group_size: int = 1
    head_size: int = 4
    dtype: DType = "float32"
    window: int | None = None
    softcap: float | None = None
    sinks: bool = False
    alibi: bool = False
    data: Data = "normal"
    layout: Layout = "contiguous"
    placement: int = 0
    shared_blocks: int = 0
    unused: Unused = "none"
    poison: Poison = "none"
    poison_in: Place = "both"
    splits: tuple[int, ...] = ()
    seed: int = 0
    schema: str = SCHEMA

    @property
    def scale(self) -> float:
        """Factor of the scores, 1 / sqrt(head size)."""
        return float(self.head_size**-0.5)


def to_data(case: AttentionCase) -> dict[str, Any]:
    """The case as plain JSON data, lists and not tuples."""
    data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(case))
    return data


def from_data(data: Mapping[str, Any], source: str = "attention case") -> AttentionCase:
    """Read the plain data; `TraceError` names what is wrong with it."""
    if data.get("schema") != SCHEMA:
        raise TraceError(
            f"{source}: schema {data.get('schema')!r}; this version of tokenlaw reads {SCHEMA!r}"
        )
    try:
        case = msgspec.convert(data, AttentionCase)
    except msgspec.ValidationError as error:
        raise TraceError(f"{source}: not an attention case: {error}") from None
    problem = _problem(case)
    if problem:
        raise TraceError(f"{source}: {problem}")
    return case


def _problem(case: AttentionCase) -> str:
    """What makes a call meaningless or too large, in words; empty if nothing does."""
    sizes = (case.num_queries, case.block_size, case.kv_heads, case.group_size, case.head_size)
    if not case.lengths or min(sizes) < 1 or case != legal(case) or min(case.lengths) < 0:
        return "sizes must be 1 or more, lengths 0 or at least num_queries"
    if case.window is not None and case.window < 1:
        return f"window is {case.window}; it must be 1 or more, or null"
    if case.softcap is not None and not 0 < case.softcap < math.inf:
        return f"softcap is {case.softcap}; it must be a positive number, or null"
    if case.shared_blocks < 0:
        return f"shared_blocks is {case.shared_blocks}; it must be 0 or more"
    slots = sum(length + case.block_size for length in case.lengths)
    numbers = slots * case.kv_heads * case.head_size
    queries = len(case.lengths) * case.num_queries * case.kv_heads * case.group_size
    largest = max(numbers, queries * (max(case.lengths) + case.head_size))
    if largest > MAX_ELEMENTS:
        return f"it needs tensors of {largest} numbers; at most {MAX_ELEMENTS} are tried"
    return ""


def legal(case: AttentionCase) -> AttentionCase:
    """The same case with every length 0 or at least ``num_queries``."""
    lengths = tuple(max(n, case.num_queries) if n > 0 else 0 for n in case.lengths)
    return msgspec.structs.replace(case, lengths=lengths)


def needed_capabilities(case: AttentionCase) -> frozenset[str]:
    """Capabilities of `PagedAttention` without which the case can't be asked."""
    needs = {
        "gqa": case.group_size > 1,
        "chunked-prefill": case.num_queries > 1,
        "window": case.window is not None,
        "softcap": case.softcap is not None,
        "sinks": case.sinks,
        "alibi": case.alibi,
        "poison": case.poison != "none",
        "empty": 0 in case.lengths,
        "strided": case.layout != "contiguous",
    }
    return frozenset(name for name, needed in needs.items() if needed)


_WORDS = {
    "window": "window {}",
    "softcap": "softcap {}",
    "sinks": "sinks",
    "alibi": "ALiBi slopes",
    "layout": "caches are {} views",
    "placement": "blocks placed at random (seed {})",
    "shared_blocks": "up to {} leading blocks as in row 0",
    "splits": "parts cut at {} modulo length + 1",
}
_DATA = {
    "direction": "one direction dominates queries, keys and values",
    "mean": "queries, keys and values have a large mean",
    "spikes": "a tenth of the numbers are large",
}
_UNUSED = {
    "no-block": "unused table entries hold -1",
    "garbage": "unused table entries hold random blocks",
}


def describe(case: AttentionCase) -> str:
    """The case in words: what differs from the plainest case."""
    defaults = AttentionCase()
    shape = (
        f"lengths {list(case.lengths)}, {case.num_queries} queries per row, blocks of {case.block_size}, "
        f"{case.kv_heads} KV heads x {case.group_size} query heads, head size {case.head_size}, {case.dtype}"
    )
    extras = [
        words.format(", ".join(map(str, case.splits)) if name == "splits" else getattr(case, name))
        for name, words in _WORDS.items()
        if getattr(case, name) != getattr(defaults, name)
    ]
    if case.data != defaults.data:
        extras.append(_DATA[case.data])
    if case.unused != defaults.unused:
        extras.append(_UNUSED[case.unused])
    if case.poison != "none":
        extras.append(f"{case.poison} in unreadable slots of {case.poison_in}")
    return "; ".join([shape, *extras, f"seed {case.seed}"])
