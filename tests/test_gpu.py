"""The reference and torch's paged attention on a GPU, in every dtype: placement of tensors, and numbers.

Run with ``pytest -m gpu tests/test_gpu.py``; every test skips where torch sees no GPU.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from tokenlaw.impl.adapters.torch_paged_attention import IMPLEMENTATION as TORCH
from tokenlaw.impl.paged import REFERENCE, GatherAttention, PagedKVStore
from tokenlaw.properties.attention_cases import DType
from tokenlaw.properties.attention_strategies import Dimensions
from tokenlaw.properties.attention_suite import AttentionSuite
from tokenlaw.properties.kv_store_suite import KVStoreSuite
from tokenlaw.spec.contracts import KV_STORE, PAGED_ATTENTION, Implementation
from tokenlaw.spec.suites import Profile, Settings
from tokenlaw.spec.verdicts import Evidence, Verdict

DEVICE = "cuda"
DTYPES: list[DType] = ["float32", "float16", "bfloat16"]
STORE_CHECKS = frozenset(check.id for check in KVStoreSuite.checks)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(DEVICE == "cuda" and not torch.cuda.is_available(), reason="torch sees no GPU"),
]


def audit(
    suite: Any, implementation: Implementation, selected: frozenset[str], examples: int = 120
) -> dict[str, Evidence]:
    evidence = suite.run(
        implementation,
        profile=Profile("gpu", examples=examples, max_operations=12, seconds=100.0),
        seed=1,
        selected=selected,
        progress=lambda what, done, total: None,
        settings=Settings(device=DEVICE),
    )
    return {one.check.id: one for one in evidence}


def broken(evidence: dict[str, Evidence]) -> dict[str, str]:
    """Messages of the checks that are refuted or unknown."""
    failed = (Verdict.REFUTED, Verdict.UNKNOWN)
    return {name: one.message for name, one in evidence.items() if one.verdict in failed}


def test_attention_of_the_reference_in_every_dtype() -> None:
    suite = AttentionSuite()
    evidence = audit(suite, REFERENCE, frozenset(check.id for check in suite.checks), examples=400)
    assert broken(evidence) == {}
    assert {one.verdict for one in evidence.values()} == {Verdict.HOLDS}
    counts = evidence["attention/numerics"].exercised
    assert [dtype for dtype in DTYPES if not counts[f"{dtype} calls"]] == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_store_of_the_reference(dtype: DType) -> None:
    evidence = audit(KVStoreSuite(dtype=dtype), REFERENCE, STORE_CHECKS)
    assert broken(evidence) == {}
    for name in ("content", "bystanders", "layers", "attention"):
        assert evidence[f"store/{name}"].verdict is Verdict.HOLDS, evidence[f"store/{name}"].message


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_attends_with_stale_pages_in_every_dtype(dtype: DType) -> None:
    """A write past the capacity isn't asked: on a GPU it ends the process with a device-side assertion."""
    evidence = audit(KVStoreSuite(dtype=dtype), TORCH, STORE_CHECKS - {"store/capacity"}, examples=60)
    assert set(broken(evidence)) == {"store/attention", "store/batch"}
    assert evidence["store/content"].verdict is Verdict.HOLDS
    for finding in ("store/attention", "store/batch"):
        counterexample = evidence[finding].counterexample
        assert counterexample is not None
        assert counterexample["config"]["device"] == DEVICE
        assert len(counterexample["operations"]) <= 5


class HotAttention(GatherAttention):
    """A tenth of the scale too much."""

    def attend(self, *arguments: Any, **options: Any) -> Any:
        *tensors, scale = arguments
        return super().attend(*tensors, 1.1 * scale, **options)


class SwapsChannels(PagedKVStore):
    """Values are stored one channel further."""

    def append(self, sequence: int, keys: Tensor, values: Tensor) -> None:
        super().append(sequence, keys, values.roll(1, dims=-1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_faults_are_seen_on_the_gpu(dtype: DType) -> None:
    store = Implementation("swaps", "0", {KV_STORE: SwapsChannels})
    evidence = audit(KVStoreSuite(dtype=dtype), store, frozenset({"store/content"}), examples=20)
    assert set(broken(evidence)) == {"store/content"}
    attention = Implementation("hot", "0", {PAGED_ATTENTION: HotAttention})
    suite = AttentionSuite(Dimensions(dtypes=(dtype,)))
    evidence = audit(suite, attention, frozenset({"attention/numerics"}), examples=20)
    assert set(broken(evidence)) == {"attention/numerics"}
