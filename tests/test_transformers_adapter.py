"""The adapter to transformers' DynamicCache: importable without transformers, right with it."""

import importlib
from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest
import torch

from tokenlaw.impl.adapters import transformers_dynamic_cache as adapter
from tokenlaw.properties.kv_store_checks import KV_STORE_CHECKS
from tokenlaw.properties.kv_store_run import run_trace
from tokenlaw.properties.kv_store_suite import KVStoreSuite
from tokenlaw.properties.trace import Append, Fork, Free, FreeAgain, New, Reorder, Rollback, Trace
from tokenlaw.spec.contracts import KV_STORE, CacheConfig, ContractError
from tokenlaw.spec.suites import Profile
from tokenlaw.spec.verdicts import Verdict

CONFIG = CacheConfig(max_sequences=3)
INSTALLED = adapter.IMPLEMENTATION.version != adapter.NOT_INSTALLED
needs_transformers = pytest.mark.skipif(
    not INSTALLED, reason="transformers isn't installed: pip install 'tokenlaw[transformers]'"
)


def test_without_transformers_the_module_imports_and_the_factory_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> Any:
        raise (
            PackageNotFoundError(name)
            if name == "transformers"
            else ModuleNotFoundError(f"No module named {name}")
        )

    with monkeypatch.context() as patch:
        patch.setattr("importlib.metadata.version", missing)
        assert importlib.reload(adapter).IMPLEMENTATION.version == "not installed"
        patch.setattr(adapter, "import_module", missing)
        with pytest.raises(adapter.ContractError, match=r"pip install 'tokenlaw\[transformers\]'"):
            adapter.IMPLEMENTATION.factories[KV_STORE](CONFIG)
    importlib.reload(adapter)
    assert ContractError is adapter.ContractError


@pytest.mark.engines
@needs_transformers
def test_a_life_with_forks_beams_and_rollbacks() -> None:
    operations = (
        New((0, 0)),
        Fork(0),
        Append(0, (0,)),
        Append(1, (0,)),
        Fork(1),
        Reorder((1, 0, 0)),
        New((0,)),
        Rollback(1, 3),
        Fork(1),
        Free(1),
        FreeAgain(),
        Append(1, (0, 0)),
        Rollback(0, 4),
    )
    store = adapter.IMPLEMENTATION.factories[KV_STORE]
    capabilities = adapter.IMPLEMENTATION.capabilities[KV_STORE]
    outcome = run_trace(store, Trace(operations, CONFIG, KV_STORE), capabilities)
    assert (outcome.crash, outcome.violations) == (None, [])
    happened = {"reorder", "divergence", "rollback", "bad rollback", "free again", "out of blocks"}
    assert happened <= (+outcome.exercised).keys()


@pytest.mark.engines
@needs_transformers
def test_the_suite_holds() -> None:
    evidence = KVStoreSuite().run(
        adapter.IMPLEMENTATION,
        profile=Profile("test", examples=150, max_operations=12, seconds=60.0),
        seed=5,
        selected=frozenset(check.id for check in KV_STORE_CHECKS),
        progress=lambda what, done, total: None,
    )
    verdicts = {one.check.id: one.verdict for one in evidence}
    supported = {id_: verdict for id_, verdict in verdicts.items() if verdict is not Verdict.NOT_SUPPORTED}
    names = ("content", "bystanders", "atomic", "release", "rollback", "reorder", "layers")
    assert supported == {f"store/{name}": Verdict.HOLDS for name in names}


@pytest.mark.engines
@needs_transformers
def test_what_the_adapter_shields_from() -> None:
    """``crop`` beyond the length is silent; batch operations skip a layer that was cropped to nothing."""
    dynamic_cache = importlib.import_module("transformers").DynamicCache
    cache, numbers = dynamic_cache(), torch.zeros(2, 1, 3, 4)
    cache.update(numbers, numbers, 0)
    cache.crop(-5)
    assert cache.get_seq_length() == 0
    cache.batch_select_indices(torch.tensor([0]))
    with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        cache.update(numbers[:1], numbers[:1], 0)
