"""A scene set by hand, in which one rule of block managers is asked at one moment."""

from collections.abc import Hashable

from tokenlaw.properties.manager_door import Door
from tokenlaw.properties.running import Violation
from tokenlaw.properties.step import Moment, Step, Tracked
from tokenlaw.properties.trace import Append, Operation
from tokenlaw.properties.world import Judge, World
from tokenlaw.spec.contracts import CacheConfig

TELLS = frozenset({"ref-counts", "cached-keys", "lengths", "prefix-cache", "copies", "epochs", "fork"})
MORE = frozenset({"rollback", "speculate", "commit", "in-flight"})


class Told:
    """A block manager that answers what it was told to, in ``tables``, ``lengths``, ``counts``, ``keys``."""

    def __init__(self, window: int | None, lookahead: int, copies_in_order: bool) -> None:
        self.window, self.lookahead, self.copies_in_order = window, lookahead, copies_in_order
        self.free = 0
        self.tables: dict[int, list[int]] = {}
        self.lengths: dict[int, int] = {}
        self.counts: dict[int, int] = {}
        self.keys: dict[int, Hashable] = {}

    def num_free_blocks(self) -> int:
        return self.free

    def block_table(self, handle: int) -> list[int]:
        return self.tables[handle]

    def num_tokens(self, handle: int) -> int:
        return self.lengths[handle]

    def ref_count(self, block: int) -> int:
        return self.counts[block]

    def cached_key(self, block: int) -> Hashable | None:
        return self.keys.get(block)


class Scene:
    """A world of eight blocks without rules, and a step in it; the manager tells the truth at first.

    Parameters
    ----------
    block_size : tokens of a block.
    lacks : capabilities that the manager hasn't.
    operation : of the step; an append by default.
    due : whether everything is read back after the step.
    """

    def __init__(
        self,
        *,
        block_size: int = 4,
        window: int | None = None,
        lookahead: int = 0,
        copies_in_order: bool = False,
        lacks: frozenset[str] = frozenset(),
        operation: Operation | None = None,
        due: bool = True,
    ) -> None:
        self.manager = Told(window, lookahead, copies_in_order)
        self.manager.free, self.manager.counts = 8, dict.fromkeys(range(8), 0)
        door = Door(lambda: self.manager, (TELLS | MORE | {"window"}) - lacks)
        rules: dict[Moment, tuple[Judge, ...]] = dict.fromkeys(Moment, ())
        self.world = World(door, CacheConfig(num_blocks=8, block_size=block_size), rules, frozenset())
        self.step: Step = self.world.begin(0, operation or Append(0, (1,)), due)

    def holds(self, tokens: tuple[int, ...], table: list[int], namespace: str = "") -> Tracked:
        """A live sequence with this table, all of it written; the manager is told so."""
        world, manager = self.world, self.manager
        prints = world.fingerprints
        nodes = prints.extend(prints.root(namespace), tokens, world.epoch)
        sequence = world.add(world.created, namespace, nodes)
        sequence.settled = len(tokens)
        manager.tables[sequence.handle], manager.lengths[sequence.handle] = list(table), len(tokens)
        world.observe_table(self.step, sequence)
        world.land(self.step, world.slots(sequence, 0), sequence, True)
        manager.counts = dict(enumerate(world.holders))
        manager.free = self.step.free_before = 8 - world.held
        self.step.touched.clear()
        return sequence

    def acts(self, sequence: Tracked, first_block: int = 0) -> None:
        """Make it the acting one."""
        self.step.act_on(sequence, first_block)

    def tear(self, block: int, *offsets: int) -> None:
        """Let token 77 of a sequence that is gone stand in these slots."""
        prints = self.world.fingerprints
        strange = prints.extend(prints.root("gone"), (77,), 0)[0]
        for offset in offsets:
            self.world.device.write(block, offset, strange, -1, True)

    def publishes(self, block: int, key: Hashable) -> None:
        """The manager tells this key from now on, and the world has seen it."""
        self.manager.keys[block] = key
        self.world.observe_keys(self.step, [block])

    def ask(self, rule: Judge) -> list[Violation]:
        """What this rule finds."""
        self.world.violations.clear()
        rule(self.world, self.step)
        return list(self.world.violations)
