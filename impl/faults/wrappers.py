"""Faults that fit on anybody's implementation: wrappers that spoil one answer of what a factory built.

An audit must be able to fail. So the target itself, wrapped by one of these, is given to the suite that has
just found nothing: it must be refuted. A wrapper hands everything else on, optional members included.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from tokenlaw.impl.faults.law_wrappers import LastTokenRepeated, TargetForResidual
from tokenlaw.impl.faults.wrapper_base import Wrapper
from tokenlaw.spec.contracts import (
    BLOCK_MANAGER,
    DECODER,
    KV_STORE,
    NO_BLOCK,
    PAGED_ATTENTION,
    VERIFIER,
    CacheConfig,
    Implementation,
)
from tokenlaw.spec.decoder_contract import DecoderConfig
from tokenlaw.spec.decoders import built_decoder
from tokenlaw.spec.verifiers import as_verifier

Factory = Callable[..., Any]


class NextBlock(Wrapper):
    """A block manager whose tables end with the block after the one that they should end with."""

    def __init__(self, wrapped: Any, config: CacheConfig) -> None:
        super().__init__(wrapped)
        self._blocks = config.num_blocks
        self._spoil("block_table", self._shifted)

    def _shifted(self, block_table: Callable[..., Sequence[int]], sequence: Any) -> list[int]:
        table = list(block_table(sequence))
        if table and table[-1] != NO_BLOCK:
            table[-1] = (table[-1] + 1) % self._blocks
        return table


class StaleRow(Wrapper):
    """A KV store in which the first row after a fork, or after any append where it can't fork, is stale.

    Read back, it is the row before it.
    """

    def __init__(self, wrapped: Any, config: CacheConfig) -> None:
        super().__init__(wrapped)
        self._stale: dict[Any, int] = {}
        self._spoil("read", self._read)
        if callable(getattr(wrapped, "fork", None)):
            self._spoil("fork", self._fork)
        else:
            self._spoil("append", self._append)

    def _length(self, sequence: Any) -> int:
        return int(self._wrapped.read(sequence, 0)[0].shape[1])

    def _fork(self, fork: Callable[..., Any], sequence: Any) -> Any:
        child = fork(sequence)
        self._stale[child] = self._length(child)
        return child

    def _append(self, append: Callable[..., Any], sequence: Any, keys: Tensor, values: Tensor) -> Any:
        length = self._length(sequence)
        found = append(sequence, keys, values)
        self._stale[sequence] = length
        return found

    def _read(self, read: Callable[..., Any], sequence: Any, layer: int) -> Any:
        keys, values = read(sequence, layer)
        row = self._stale.get(sequence, 0)
        if 0 < row < keys.shape[1]:
            keys, values = keys.clone(), values.clone()
            keys[:, row], values[:, row] = keys[:, row - 1], values[:, row - 1]
        return keys, values


class FirstBlockTwice(Wrapper):
    """Attention that reads the first block of each row again, where it should read the last one."""

    def __init__(self, wrapped: Any) -> None:
        super().__init__(wrapped)
        self._spoil("attend", self._attend)

    def _attend(
        self,
        attend: Callable[..., Any],
        query: Float[Tensor, "batch num_queries query_heads head_size"],
        key_cache: Float[Tensor, "num_blocks block_size kv_heads head_size"],
        value_cache: Float[Tensor, "num_blocks block_size kv_heads head_size"],
        block_tables: Int[Tensor, "batch max_blocks"],
        lengths: Int[Tensor, " batch"],
        scale: float,
        **options: Any,
    ) -> Any:
        if block_tables.shape[1]:
            last = (lengths.long() - 1).clamp(min=0) // key_cache.shape[1]
            block_tables = block_tables.scatter(1, last[:, None], block_tables[:, :1])
        return attend(query, key_cache, value_cache, block_tables, lengths, scale, **options)


@dataclass(frozen=True)
class BrokenWrapper:
    """A fault that can be wrapped around whatever fulfils a contract.

    Attributes
    ----------
    fault : what it does, in words.
    wrap : makes a broken factory of a factory; the name is that of the implementation.
    seen_by : ids of the checks that see it within little, those that see it first in front.
    requests : of a verifier, with how many some of these checks see it nearly always.
    """

    fault: str
    wrap: Callable[[Factory, str], Factory]
    seen_by: tuple[str, ...]
    requests: Mapping[str, int] = field(default_factory=dict)

    def broken(
        self, implementation: Implementation, contract: str, capabilities: frozenset[str]
    ) -> Implementation:
        """The implementation with the fault, offering the contract alone, with these capabilities."""
        return replace(
            implementation,
            factories={contract: self.wrap(implementation.factories[contract], implementation.name)},
            capabilities={contract: capabilities},
            known_deviations=(),
        )


def _next_block(factory: Factory, name: str) -> Factory:
    return lambda config: NextBlock(factory(config), config)


def _stale_row(factory: Factory, name: str) -> Factory:
    return lambda config: StaleRow(factory(config), config)


def _first_block_twice(factory: Factory, name: str) -> Factory:
    return lambda: FirstBlockTwice(factory())


def _target_for_residual(factory: Factory, name: str) -> Factory:
    return lambda: TargetForResidual(as_verifier(factory(), name))


def _last_token_repeated(factory: Factory, name: str) -> Factory:
    def build(config: DecoderConfig) -> LastTokenRepeated:
        return LastTokenRepeated(built_decoder(factory, name, config))

    return build


WRAPPERS: Mapping[str, BrokenWrapper] = {
    BLOCK_MANAGER: BrokenWrapper(
        "tables end with the block after the right one",
        _next_block,
        (
            "kv/content",
            "kv/partition",
            "kv/refcount",
            "kv/write-shared",
            "kv/rollback",
            "kv/atomic",
            "kv/waste",
        ),
    ),
    KV_STORE: BrokenWrapper(
        "the first row after a fork reads as the row before it",
        _stale_row,
        ("store/content",),
    ),
    PAGED_ATTENTION: BrokenWrapper(
        "the first block of a row is read in place of its last one",
        _first_block_twice,
        (
            "attention/numerics",
            "attention/lse",
            "attention/gqa",
            "attention/chunked-prefill",
            "attention/window",
        ),
    ),
    VERIFIER: BrokenWrapper(
        "a rejected draft is replaced by a token of the target's law, nothing subtracted",
        _target_for_residual,
        ("law/searched", "law/completed", "law/joint", "law/rejected", "law/probed", "law/row-seeds"),
        {"law/joint": 4_000, "law/completed": 7_500},
    ),
    DECODER: BrokenWrapper(
        "finished samples end with the token before the last one, twice",
        _last_token_repeated,
        ("decoder/speculation", "decoder/greedy", "decoder/law"),
    ),
}
"""One for each contract."""
