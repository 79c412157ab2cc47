"""Which suite asks which contract; a suite is imported only when its contract is asked for."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from tokenlaw.spec.contracts import BLOCK_MANAGER, KV_STORE, PAGED_ATTENTION
from tokenlaw.spec.suites import Suite

ADDRESSES: Mapping[str, tuple[str, str]] = {
    BLOCK_MANAGER: ("tokenlaw.properties.block_manager_suite", "BlockManagerSuite"),
    KV_STORE: ("tokenlaw.properties.kv_store_suite", "KVStoreSuite"),
    PAGED_ATTENTION: ("tokenlaw.properties.attention_suite", "AttentionSuite"),
}
"""Contract -> module and class of its suite."""


class LazySuites(Mapping[str, Suite]):
    """Contract -> suite, each built at first use.

    Parameters
    ----------
    addresses : contract -> module and class of its suite.
    """

    def __init__(self, addresses: Mapping[str, tuple[str, str]]) -> None:
        self._addresses = addresses
        self._built: dict[str, Suite] = {}

    def __getitem__(self, contract: str) -> Suite:
        if contract not in self._built:
            module, name = self._addresses[contract]
            suite: Suite = getattr(import_module(module), name)()
            self._built[contract] = suite
        return self._built[contract]

    def __iter__(self) -> Iterator[str]:
        return iter(self._addresses)

    def __len__(self) -> int:
        return len(self._addresses)


def suites() -> Mapping[str, Suite]:
    """The suites of this folder by contract; iterating imports nothing, looking one up imports its module."""
    return LazySuites(ADDRESSES)
