"""A KV store and what it must hold, set by hand, in which one part of the harness is asked at one moment."""

from torch import Tensor

from support.list_store import CONFIG, ListStore
from tokenlaw.properties.kv_store_rows import Rows
from tokenlaw.properties.kv_store_shadow import Shadow, ShadowedStore
from tokenlaw.spec.contracts import CacheConfig, KVStore
from tokenlaw.spec.frames import Misread


class Scene:
    """A store and its shadows; blocks of two positions."""

    def __init__(
        self, make: type[KVStore] = ListStore, config: CacheConfig = CONFIG, muted: tuple[str, ...] = ()
    ) -> None:
        self.store = ShadowedStore(make(config), config, frozenset(muted))
        self.told = self.store.implementation
        self.rows = Rows()

    def holds(self, length: int, parent: Shadow | None = None) -> Shadow:
        """A new live sequence; a fork if it has a parent."""
        number = self.store.next_number()
        handle = self.told.allocate() if parent is None else self.told.fork(parent.handle)
        shadow = self.store.admit(number, handle, parent)
        if parent is None:
            self.grows(shadow, length)
        return shadow

    def grows(self, shadow: Shadow, length: int) -> None:
        """The sequence gets so many positions more, which this operation names."""
        ends = shadow.ends
        numbers = self.store.payload.draw(shadow.number, ends, length)
        self.told.reserve(shadow.handle, shadow.length + length)
        self.store.write(shadow, numbers)
        shadow.extend(ends, numbers)
        self.store.remember_room()
        self.store.operation += 1
        self.rows.learn(self.store.payload, self.store.operation + 1)

    def reads(self, shadow: Shadow, position: int, other: Tensor) -> None:
        """From now on it reads these numbers in layer 0, in place of its own."""
        self.told.content[shadow.handle][0][:, :, position] = other

    def misread(self, shadow: Shadow) -> tuple[Misread, ...]:
        return self.rows.reading(self.store, shadow, 0).misread
