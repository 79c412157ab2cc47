"""The doors through which an implementation is observed, and nothing else.

Each contract has a short mandatory part. Everything beyond it is an optional *capability*: declared by
the `Implementation` or found by looking for its methods, never assumed. A check whose capability is
absent is reported as ``not supported``.

Time. A scheduling call (``allocate``, ``append``, ``speculate``) makes slots; the KV itself is written
afterwards by the caller, who first applies ``pending_copies()``; several calls, of one step, may come before
that. The length of a sequence counts every token that was scheduled, so ``block_table`` is always looked at
*after* the slots of the new tokens exist.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from tokenlaw.spec.deviations import KnownDeviation

BLOCK_MANAGER = "block-manager"
KV_STORE = "kv-store"
PAGED_ATTENTION = "paged-attention"
VERIFIER = "verifier"
DECODER = "decoder"
CONTRACTS = (BLOCK_MANAGER, KV_STORE, PAGED_ATTENTION, VERIFIER, DECODER)

NO_BLOCK = -1
"""Entry of a block table whose block was given back (below a sliding window)."""

DEVICE = "device"
"""Tier of the pool that attention reads."""

HOST = "host"
"""Tier of what was swapped out."""

Handle = Hashable
"""Whatever an implementation calls a sequence; the harness only hands it back."""


class OutOfBlocks(Exception):
    """A scheduling call did not fit into the pool. The call must have changed nothing (rule K12)."""


@dataclass(frozen=True)
class CacheConfig:
    """Shape of a cache. Lengths are in tokens; a factory gets one of these and builds a fresh object.

    ``window`` is the sliding window W: a query at position q sees positions q - W + 1 .. q.
    The fields from ``num_layers`` on concern KV stores only.
    """

    num_blocks: int = 16
    block_size: int = 4
    window: int | None = None
    num_layers: int = 2
    num_kv_heads: int = 2
    head_size: int = 4
    max_sequences: int = 8
    dtype: str = "float32"
    device: str = "cpu"


@dataclass(frozen=True)
class BlockCopy:
    """Copy all layers, K and V and scales, of block ``source`` to block ``destination``.

    A tier is `DEVICE` (``"device"``) or `HOST` (``"host"``).
    """

    source: int
    destination: int
    source_tier: str = DEVICE
    destination_tier: str = DEVICE


@runtime_checkable
class BlockManager(Protocol):
    """Bookkeeping without tensors: which physical block holds which positions of which sequence.

    Logical block i of a sequence holds its positions i * block_size .. (i + 1) * block_size - 1. Block ids
    are in 0 .. num_blocks - 1; an adapter hides reserved blocks of its engine.

    Optional capabilities (name: members)
        ``fork``: ``fork(sequence) -> sequence``, an equal sequence that may diverge.
        ``rollback``: ``rollback(sequence, count)``, forgets the last ``count`` committed tokens; more than
        the length, or a negative count, raises and changes nothing.
        ``speculate``: ``speculate(sequence, drafts)`` makes slots for draft tokens, ``accept(sequence,
        count)`` keeps the first ``count`` of them and forgets the others.
        ``commit``: ``commit(sequence, length)`` tells that the KV of the first ``length`` tokens is written
        and final. A manager without it takes tokens as written when they are scheduled.
        ``copies``: ``pending_copies() -> [BlockCopy]``, drained by the call, to be applied before any
        write. They must not depend on their order, unless attribute ``copies_in_order`` is true.
        ``ref-counts``: ``ref_count(block) -> int``, the number of live tables that hold the block.
        ``lengths``: ``num_tokens(sequence) -> int``.
        ``prefix-cache``: ``num_cached_tokens(sequence) -> int``, how many tokens at the head of the
        sequence were found in the cache when it was allocated; the caller doesn't write those.
        ``cached-keys``: ``cached_key(block) -> Hashable | None``, the key under which the block can be hit.
        ``namespaces``: ``allocate(tokens, namespace)``: adapter, salt, image: equal tokens in different
        namespaces share nothing.
        ``evict``: ``evict(count) -> int``, drops up to ``count`` cached blocks that no table holds.
        ``reset``: ``reset_cache()``, makes every cached block unreachable.
        ``epochs``: ``new_epoch()``, the weights changed: nothing written before may be hit afterwards.
        ``window``: attribute ``window`` (tokens or None); blocks wholly below it may be given back, their
        entries become ``NO_BLOCK``.
        ``swap``: ``swap_out(sequence)``, ``swap_in(sequence)``; their copies name tiers. A sequence
        that is out can be freed.
        ``in-flight``: ``begin_step()``, ``end_step()``: what was freed in between isn't handed out before
        the end, because the kernels of the step may still write it.
        ``lookahead``: attribute ``lookahead`` (tokens; 0 as good as absent), how many slots beyond the length
        may stay allocated after a rejection.
    """

    def allocate(self, tokens: Sequence[int]) -> Handle:
        """Admit a sequence and make slots for its tokens; raise `OutOfBlocks` if it doesn't fit."""
        ...

    def append(self, sequence: Any, tokens: Sequence[int]) -> None:
        """Make slots for further tokens; raise `OutOfBlocks` if they don't fit."""
        ...

    def free(self, sequence: Any) -> None:
        """Release the sequence. A second release raises, or does nothing."""
        ...

    def block_table(self, sequence: Any) -> Sequence[int]:
        """Physical block ids in logical order."""
        ...

    def num_free_blocks(self) -> int:
        """Blocks that an allocation could take now: never used, freed, or cached and unreferenced."""
        ...


@runtime_checkable
class KVStore(Protocol):
    """Real tensors: what was appended to a sequence must be read back, bit for bit, whatever happened
    to other sequences.

    Optional capabilities (name: members)
        ``fork``, ``rollback``: as for `BlockManager`.
        ``reorder``: ``reorder(sequences, parents)``: sequence i continues what ``sequences[parents[i]]`` held
        (beam search); all of them have one length.
        ``reserve``: ``reserve(sequence, length)`` makes room; ``append`` beyond the room raises and changes
        nothing. The room may be rounded up to whole blocks. The harness reserves before it appends.
        ``attend``: ``attend(sequences, queries, layer, scale) -> outputs``: attention of one query each
        (the last position) over the stored keys and values; queries and outputs
        ``float [batch, query_heads, head_size]``, query heads a multiple of ``num_kv_heads``.
        ``any-batch``: ``attend`` also takes some of the live sequences, in any order.
        ``layers``: ``append_layer(sequence, layer, keys, values)`` extends one layer, as a forward pass does;
        keys and values ``float [kv_heads, tokens, head_size]``. Each layer owns its length: the layers of a
        sequence are extended in any order and may stay of different lengths, the other layers keep content
        and length, and ``read`` gives what the layer itself holds. Then ``append`` extends every layer at its
        own end, ``rollback`` shortens every layer (more than the shortest one holds raises), ``attend`` sees
        the layer that it is asked about, and room is made for the longest one.

    Attribute ``scores_in_input_dtype`` of a store with ``attend``: as for `PagedAttention`.

    Method ``block_table(sequence, layer) -> [block]``, physical block ids in logical order, is for pictures
    alone: nothing is judged by it. Without it traces are drawn with what each sequence reads back.
    """

    def allocate(self) -> Handle:
        """Start an empty sequence; raise `OutOfBlocks` if the store holds no further sequence."""
        ...

    def append(
        self,
        sequence: Any,
        keys: Float[Tensor, "layers kv_heads tokens head_size"],
        values: Float[Tensor, "layers kv_heads tokens head_size"],
    ) -> None:
        """Store the KV of further tokens; raise `OutOfBlocks` if they don't fit."""
        ...

    def read(
        self, sequence: Any, layer: int
    ) -> tuple[Float[Tensor, "kv_heads length head_size"], Float[Tensor, "kv_heads length head_size"]]:
        """Keys and values of every position of the sequence in a layer, in order."""
        ...

    def free(self, sequence: Any) -> None:
        """Release the sequence."""
        ...


@runtime_checkable
class PagedAttention(Protocol):
    """Causal attention over paged keys and values.

    Query i of a row stands at position ``length - num_queries + i``. Table entries beyond the length, and
    slots beyond the length, may hold anything.

    Optional capabilities, each a keyword argument of ``attend`` or a property of it
        ``gqa``: more query heads than KV heads. ``chunked-prefill``: more than one query per row.
        ``window``, ``softcap``, ``sinks``, ``alibi``: keywords ``window: int``, ``softcap: float``,
        ``sinks: float [query_heads]``, ``alibi_slopes: float [query_heads]``.
        ``lse``: ``return_lse=True`` gives ``(output, lse [batch, num_queries, query_heads])``, the natural
        logarithm of the softmax's denominator, in which a sink takes part as `tokenlaw.spec.attention` says.
        ``poison``: NaN and infinity in slots that no row may read leave outputs alone (rule K18).
        ``empty``: rows of length 0 give zero outputs and a log-sum-exp of minus infinity (with a sink: its
        logit).
        ``strided``: caches may be views with any stride. ``bitwise``: outputs do not depend, in any bit,
        on where blocks lie.
        ``merge``: ``merge(outputs, lses) -> (output, lse)`` merges partial states stacked in dimension 0.

    Attribute ``scores_in_input_dtype`` (bool, default False): scores are taken to be kept in float32; an
    engine that stores scores in the dtype of the query declares it, and gets the wider bound that follows.
    """

    def attend(
        self,
        query: Float[Tensor, "batch num_queries query_heads head_size"],
        key_cache: Float[Tensor, "num_blocks block_size kv_heads head_size"],
        value_cache: Float[Tensor, "num_blocks block_size kv_heads head_size"],
        block_tables: Int[Tensor, "batch max_blocks"],
        lengths: Int[Tensor, " batch"],
        scale: float,
    ) -> Any:
        """Outputs ``float [batch, num_queries, query_heads, head_size]`` in the dtype of the query."""
        ...


@dataclass(frozen=True)
class Implementation:
    """Something that can be audited.

    ``factories`` maps a contract to a callable: ``CacheConfig -> BlockManager``, ``CacheConfig -> KVStore``,
    ``() -> PagedAttention``, ``() -> Verifier`` (or a plain ``verify`` function in its place),
    ``DecoderConfig -> Decoder``.
    ``capabilities`` maps a contract to what is claimed for it; for a contract that isn't named there,
    capabilities are probed (`tokenlaw.spec.capabilities`).
    """

    name: str
    version: str
    factories: Mapping[str, Callable[..., Any]]
    capabilities: Mapping[str, frozenset[str]] = field(default_factory=dict)
    summary: str = ""
    known_deviations: tuple[KnownDeviation, ...] = ()


class ContractError(Exception):
    """A factory or an implementation isn't what its contract asks for; the message says what to do."""
