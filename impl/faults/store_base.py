"""What faulty KV stores are made from: the reference on other layers, or layers on another block manager."""

from dataclasses import replace

from tokenlaw.impl.paged.layer import PagedLayer
from tokenlaw.impl.paged.manager import PagedBlockManager
from tokenlaw.impl.paged.store import PagedKVStore
from tokenlaw.spec.contracts import CacheConfig


class FaultyLayer(PagedLayer):
    """A layer of the reference, on a block manager that a fault replaces.

    Attributes
    ----------
    manager : class of its block manager.
    """

    manager: type[PagedBlockManager] = PagedBlockManager

    def __init__(self, config: CacheConfig) -> None:
        super().__init__(config)
        self._manager = self.manager(replace(config, window=None))


class FaultyStore(PagedKVStore):
    """The reference store, on layers that a fault replaces.

    Attributes
    ----------
    first, others : classes of the first layer and of all others.
    """

    first: type[PagedLayer] = FaultyLayer
    others: type[PagedLayer] = FaultyLayer

    def __init__(self, config: CacheConfig) -> None:
        super().__init__(config)
        self._layers = [(self.others if layer else self.first)(config) for layer in range(config.num_layers)]
