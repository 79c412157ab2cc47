"""Where the rows of a KV store lie: in the blocks that it shows, or in one of its own for each group."""

from collections.abc import Iterable

from tokenlaw.properties.kv_store_shadow import Shadow, ShadowedStore


class Tables:
    """Block tables of the live sequences in one layer.

    ``block_table`` of a store is for pictures alone: one that fails is taken as empty. A store without it
    has no blocks that could be seen, so each group of ``block_size`` positions of a sequence gets a number.

    Attributes
    ----------
    shown : whether the store has ``block_table``, once it was asked.
    """

    def __init__(self, layer: int) -> None:
        self.shown = False
        self._layer = layer
        self._groups: dict[tuple[int, int], int] = {}
        self._live: list[int] = []

    def of(self, store: ShadowedStore) -> dict[int, list[int]]:
        """The table of each live sequence, by its number."""
        self.shown = callable(getattr(store.implementation, "block_table", None))
        table = self._shown if self.shown else self._own
        tables = {one.number: table(store, one) for one in store.live}
        self._live = [block for table in tables.values() for block in table]
        return tables

    def pool(self, store: ShadowedStore) -> Iterable[int]:
        """The blocks to be drawn."""
        return range(store.config.num_blocks) if self.shown else self._live

    def name(self, block: int, size: int) -> str:
        """What a group is called; nothing if the block is one."""
        if self.shown:
            return ""
        sequence, group = list(self._groups)[block]
        return f"seq {sequence}: {group * size} to {group * size + size - 1}"

    def _shown(self, store: ShadowedStore, shadow: Shadow) -> list[int]:
        try:
            table = [int(block) for block in store.implementation.block_table(shadow.handle, self._layer)]
        except Exception:  # nothing is judged by it
            return []
        return table[: store.config.num_blocks]

    def _own(self, store: ShadowedStore, shadow: Shadow) -> list[int]:
        groups = range(store.blocks(shadow.ends[self._layer]))
        return [self._groups.setdefault((shadow.number, group), len(self._groups)) for group in groups]
