"""The device of the settings is where stores are built and where attention gets its tensors."""

from typing import Any

import pytest

from support.attention_kernels import Kernel, implementation
from tokenlaw.impl.paged import PagedKVStore
from tokenlaw.properties import attention_subject, attention_tensors
from tokenlaw.properties.attention_cases import AttentionCase
from tokenlaw.properties.attention_suite import AttentionSuite
from tokenlaw.properties.kv_store_suite import KVStoreSuite
from tokenlaw.spec.contracts import KV_STORE, CacheConfig, Implementation
from tokenlaw.spec.suites import Profile, Settings, ignore

# The CPU by a name that only settings give it.
DEVICE = "cpu:0"
FEW = Profile("few", examples=20, max_operations=10, seconds=20.0)


def test_attention_gets_its_tensors_there(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = []

    def make_call(case: AttentionCase, device: str, *rest: Any) -> Any:
        devices.append(device)
        return attention_tensors.make_call(case, device, *rest)

    monkeypatch.setattr(attention_subject, "make_call", make_call)
    suite, target = AttentionSuite(), implementation(Kernel, frozenset())
    settings = Settings(device=DEVICE)
    chosen = frozenset({"attention/inputs"})
    suite.run(target, profile=FEW, seed=0, selected=chosen, progress=ignore, settings=settings)
    searched = len(devices)
    suite.replay(target, {"schema": "tokenlaw.attention/1", "lengths": [3]}, settings=settings)
    assert len(devices) > searched > 0
    assert set(devices) == {DEVICE}


def test_stores_are_built_there() -> None:
    devices = set()

    def build(config: CacheConfig) -> PagedKVStore:
        devices.add(config.device)
        return PagedKVStore(config)

    target = Implementation("seen", "1", {KV_STORE: build})
    suite = KVStoreSuite()
    suite.run(
        target,
        profile=FEW,
        seed=0,
        selected=frozenset({"store/content"}),
        progress=ignore,
        settings=Settings(device=DEVICE),
    )
    assert devices == {DEVICE}
