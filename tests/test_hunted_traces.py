"""Traces and cases from files that no target could run; stores with spare room."""

from typing import Any

import msgspec
import pytest
import torch

from tokenlaw.impl.paged import REFERENCE, PagedKVStore
from tokenlaw.impl.paged.layer import LayerSequence
from tokenlaw.properties.attention_cases import from_data
from tokenlaw.properties.block_manager_suite import BlockManagerSuite
from tokenlaw.properties.kv_store_run import run_trace
from tokenlaw.properties.kv_store_suite import KVStoreSuite
from tokenlaw.properties.trace import (
    MAX_OPERATIONS,
    Append,
    Fork,
    New,
    Overflow,
    Trace,
    TraceError,
    decode,
    to_data,
)
from tokenlaw.spec.contracts import KV_STORE, CacheConfig, OutOfBlocks

ALL = REFERENCE.capabilities[KV_STORE]
NEW = {"op": "new", "tokens": [1]}


def trace_data(**config: Any) -> dict[str, Any]:
    return {"schema": "tokenlaw.trace/1", "config": config, "operations": [NEW]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"config": {"window": 0}}, "config.window is 0"),
        ({"config": {"block_size": 0}}, "config.block_size is 0"),
        ({"config": {"num_blocks": -1}}, "config.num_blocks is -1"),
        ({"config": {"num_blocks": 10**9}}, "config.num_blocks is 1000000000"),
        ({"config": {"num_kv_heads": 0}, "contract": "kv-store"}, "config.num_kv_heads is 0"),
        ({"config": {"num_blocks": 10**6, "head_size": 10**4}, "contract": "kv-store"}, "a store of"),
        ({"operations": [NEW] * (MAX_OPERATIONS + 1)}, "100001 operations"),
        ({"operations": [{"op": "overflow", "sequence": 0, "count": 10**12}]}, "1000000000000 tokens"),
        ({"operations": [NEW | {"namspace": "a"}]}, "unknown field `namspace`"),
        ({"config": {"blocksize": 8}}, "config has no 'blocksize'; it has block_size"),
        ({"operation": []}, "unknown field `operation`"),
    ],
)
def test_what_no_target_could_run_is_refused(change: dict[str, Any], words: str) -> None:
    raw = msgspec.json.encode(trace_data() | change)
    with pytest.raises(TraceError, match=words) as caught:
        decode(raw, "file.json")
    assert str(caught.value).startswith("file.json: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suite", [BlockManagerSuite(), KVStoreSuite()], ids=lambda suite: suite.contract)
def test_a_trace_without_operations_is_refused(suite: BlockManagerSuite | KVStoreSuite) -> None:
    with pytest.raises(TraceError, match="no operations"):
        suite.replay(REFERENCE, trace_data() | {"operations": [], "contract": suite.contract})


@pytest.mark.parametrize(("field", "value"), [("dtype", "float8"), ("device", "moon"), ("device", "meta")])
def test_a_store_that_cannot_be_built_here_is_refused(field: str, value: str) -> None:
    data = trace_data(**{field: value}) | {"contract": "kv-store"}
    with pytest.raises(TraceError, match=value):
        KVStoreSuite().replay(REFERENCE, data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"window": 0}, "window is 0"),
        ({"softcap": 0.0}, "softcap is 0.0"),
        ({"softcap": -1.0}, "softcap is -1.0"),
        ({"shared_blocks": -1}, "shared_blocks is -1"),
        ({"lengths": [-3]}, "lengths 0 or at least"),
        ({"lengths": [10**12]}, "at most"),
        ({"head_size": 10**9}, "at most"),
        ({"num_queries": 10**5, "lengths": [10**5]}, "at most"),
        ({"operations": [NEW]}, "unknown field `operations`"),
    ],
)
def test_a_meaningless_or_huge_attention_case_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(TraceError, match=words):
        from_data({"schema": "tokenlaw.attention/1", "lengths": [3]} | change)


class WritesHalf(PagedKVStore):
    """An append that doesn't fit writes what fits, then raises."""

    def append(self, sequence: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        stored = self._record(sequence)
        room = min(layer.room(part) - part.length for layer, part in zip(self._layers, stored, strict=True))
        if keys.shape[2] > room:
            super().append(sequence, keys[:, :, :room], values[:, :, :room])
            raise OutOfBlocks("no room")
        super().append(sequence, keys, values)


class SharesSpareRoom(PagedKVStore):
    """A fork shares room that was reserved and not written, without a copy."""

    def _fork(self, stored: list[LayerSequence]) -> list[LayerSequence]:
        return [
            LayerSequence(layer._manager.fork(part.blocks), part.length)
            for layer, part in zip(self._layers, stored, strict=True)
        ]


@pytest.mark.parametrize(
    ("store", "operations", "check"),
    [
        (WritesHalf, (New((0,)), New((0,)), Overflow(0, 1)), "store/capacity"),
        (
            SharesSpareRoom,
            (New((0,)), New((0,)), Overflow(0, 1), Fork(0), Append(0, (0,)), Append(2, (0,))),
            "store/bystanders",
        ),
    ],
)
def test_an_overflow_leaves_spare_room(
    store: type[PagedKVStore], operations: tuple[Any, ...], check: str
) -> None:
    trace = Trace(operations, CacheConfig(num_blocks=4), KV_STORE)
    assert check in {violation.check for violation in run_trace(store, trace, ALL).violations}
    assert run_trace(PagedKVStore, trace, ALL).violations == []
    assert decode(msgspec.json.encode(to_data(trace)), "it") == trace
