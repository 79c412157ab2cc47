"""Which suite asks which contract; a suite is imported only when its contract is asked for."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from tokenlaw.properties.running import Suite
from tokenlaw.spec.contracts import BLOCK_MANAGER, KV_STORE, PAGED_ATTENTION

_CLASSES: Mapping[str, tuple[str, str]] = {
    BLOCK_MANAGER: ("tokenlaw.properties.block_manager_suite", "BlockManagerSuite"),
    KV_STORE: ("tokenlaw.properties.kv_store_suite", "KVStoreSuite"),
    PAGED_ATTENTION: ("tokenlaw.properties.attention_suite", "AttentionSuite"),
}


class _Suites(Mapping[str, Suite]):
    """Contract -> suite, built at first use."""

    def __init__(self) -> None:
        self._built: dict[str, Suite] = {}

    def __getitem__(self, contract: str) -> Suite:
        if contract not in self._built:
            module, name = _CLASSES[contract]
            suite: Suite = getattr(import_module(module), name)()
            self._built[contract] = suite
        return self._built[contract]

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


def suites() -> Mapping[str, Suite]:
    """All suites by contract; iterating imports nothing, looking a suite up imports its module."""
    return _Suites()
