"""What the harness knows while a trace runs: the shadow of every sequence, physical memory, and a mirror of
the manager's observables as they were seen last.

Rules (`tokenlaw.properties.rules`) are functions of (`World`, `Step`), called at a `Moment`; they compare the
manager with this shadow and report through `World.report`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any

from tokenlaw.properties.manager_door import Door
from tokenlaw.properties.running import Violation
from tokenlaw.properties.step import Moment, Published, Slot, Step, Tracked
from tokenlaw.properties.symbolic import Fingerprints, Memory, apply_copies
from tokenlaw.properties.trace import Operation
from tokenlaw.spec.contracts import DEVICE, HOST, NO_BLOCK, CacheConfig
from tokenlaw.spec.verdicts import Check

Judge = Callable[["World", Step], None]


def _common_prefix(first: list[int], second: list[int]) -> int:
    shorter = min(len(first), len(second))
    if first[:shorter] == second[:shorter]:
        return shorter
    return next(i for i in range(shorter) if first[i] != second[i])


class World:
    """State of a run; ``rules`` maps a moment to the rules to ask then."""

    def __init__(
        self,
        door: Door,
        config: CacheConfig,
        rules: Mapping[Moment, tuple[Judge, ...]],
        muted: frozenset[str],
    ) -> None:
        self.door = door
        self.config = config
        self.block_size = config.block_size
        self.fingerprints = Fingerprints()
        self.device = Memory(config.block_size)
        self.memories = {DEVICE: self.device, HOST: Memory(config.block_size)}
        self.epoch = 0
        self.created = 0
        self.live: list[Tracked] = []
        self.swapped: list[Tracked] = []
        self.host_blocks = 0  # the most that one sequence has taken there
        self.last_freed: list[Any] = []
        self.holders = [0] * config.num_blocks
        self.held = 0
        self.published: dict[int, Published] = {}
        self.unreachable: dict[int, Hashable | None] = {}
        self.exercised: Counter[str] = Counter()
        self.violations: list[Violation] = []
        self._operation = 0
        self._keys_seen_after = -1  # calls
        self._rules = rules
        self._muted = muted

    def begin(self, number: int, operation: Operation, due: bool) -> Step:
        """Start an operation."""
        self._operation = number
        return Step(number, operation, due)

    def judge(self, moment: Moment, step: Step) -> None:
        """Ask every rule of this moment."""
        for rule in self._rules[moment]:
            rule(self, step)

    def report(
        self,
        check: Check,
        expected: str,
        found: str,
        sequence: int | None = None,
        position: int | None = None,
        block: int | None = None,
    ) -> None:
        """Record a violation once, unless its check is muted or isn't supported by the manager."""
        violation = Violation(check.id, self._operation, expected, found, sequence, position, block)
        judged = check.id not in self._muted and check.needs <= self.door.capabilities
        if judged and violation not in self.violations:
            self.violations.append(violation)

    def in_pool(self, block: int) -> bool:
        """Whether the id is that of a block of the pool."""
        return 0 <= block < self.config.num_blocks

    def blocks_for(self, length: int) -> int:
        """Blocks that a sequence of this length needs."""
        return -(-length // self.block_size)

    def first_needed(self, settled: int) -> int:
        """First position that a query at position ``settled`` or later may still see."""
        return 0 if self.door.window is None else max(0, settled - self.door.window + 1)

    def window_may_drop(self, sequence: Tracked, i: int) -> bool:
        """Whether logical block i of the sequence is wholly below the window."""
        return (i + 1) * self.block_size <= self.first_needed(sequence.settled)

    def slots(self, sequence: Tracked, first: int) -> list[Slot]:
        """Slots of positions ``first`` and later, as far as the table has blocks for them."""
        size, table = self.block_size, sequence.table
        last = min(len(sequence), len(table) * size)
        found = [Slot(table[p // size], p % size, p) for p in range(first, last)]
        return [slot for slot in found if self.in_pool(slot.block)]

    def names_of_holders(self, block: int) -> str:
        """Numbers of the live sequences whose tables hold the block, for messages."""
        held = {sequence.number: sequence.table.count(block) for sequence in self.live}
        names = (f"{one} ({n} times)" if n > 1 else str(one) for one, n in held.items() if n)
        return ", ".join(names) or "none"

    def content(self, block: int, offset: int) -> str:
        """What a slot holds, in words."""
        words = self.fingerprints.words(self.device.nodes[block][offset])
        writer = self.device.writers[block][offset]
        return words if writer < 0 else f"{words} (written for sequence {writer})"

    def expected(self, sequence: Tracked, position: int) -> str:
        """What a position of a sequence must read back as, in words."""
        return f"{self.fingerprints.words(sequence.nodes[position])} (sequence {sequence.number})"

    def add(self, handle: Any, namespace: str, nodes: list[int]) -> Tracked:
        """Track a new live sequence."""
        sequence = Tracked(self.created, handle, namespace, nodes)
        self.created += 1
        self.live.append(sequence)
        return sequence

    def observe_table(self, step: Step, sequence: Tracked, fresh_from: int | None = None) -> None:
        """Look at a table; update the mirror of who holds what.

        Blocks that are new from logical index ``fresh_from`` on come from the pool, to be written.
        """
        old, new = sequence.table, self.door.block_table(sequence.handle)
        if new == old:
            return
        if NO_BLOCK in new and new.count(NO_BLOCK) > old.count(NO_BLOCK):
            self.exercised["window drop"] += 1
        changed = _common_prefix(old, new)
        lost = self._let_go(step, set(old[changed:]).difference(old[:changed]))
        if fresh_from is not None:
            start = max(changed, fresh_from)
            for block in new[start:]:
                if self.in_pool(block) and not self.holders[block] and block not in lost:
                    self._hand_out(step, block)
        self._take(step, set(new[changed:]).difference(new[:changed]))
        step.first_block = min(step.first_block, changed)
        sequence.table = new

    def release(self, step: Step, sequence: Tracked) -> None:
        """Stop tracking a sequence as a holder of device blocks."""
        self._let_go(step, set(sequence.table))
        sequence.table = []
        self.live.remove(sequence)

    def observe_keys(self, step: Step, blocks: Collection[int]) -> None:
        """Look at the keys of these blocks; new ones are judged."""
        if not self.door.shows_keys:
            return
        for block, key in zip(blocks, self.door.cached_keys(blocks), strict=True):
            old = self.published.get(block)
            if (old.key if old else None) == key:
                continue
            self.unreachable.pop(block, None)
            if old:
                del self.published[block]
                self.exercised["eviction"] += block in step.fresh
            if key is not None:
                self.published[block] = Published(key, list(self.device.nodes[block]))
                self.exercised["publish"] += 1
                step.published.append(block)
        if step.published:
            self.judge(Moment.PUBLISHED, step)
            step.published.clear()

    def observe_all_keys(self, step: Step) -> None:
        """Look at the keys of all blocks, unless nothing was called since that was done last."""
        if self._keys_seen_after != self.door.calls:
            self.observe_keys(step, range(self.config.num_blocks))
            self._keys_seen_after = self.door.calls

    def look(self, step: Step) -> None:
        """Look at what the next call has to leave if it fails: earlier calls of the operation may have
        evicted any cached block.
        """
        step.free_before = self.door.num_free_blocks()
        if step.due:
            self.observe_all_keys(step)
        else:
            self.observe_keys(step, step.touched)

    def apply_copies(self, step: Step) -> None:
        """Drain the pending copies and apply them."""
        step.copies = self.door.pending_copies()
        if not step.copies:
            self.device.drained()
            return
        self.exercised["several copies"] += len(step.copies) > 1
        self.judge(Moment.COPYING, step)
        apply_copies(self.memories, step.copies)
        step.applied += step.copies
        for copy in step.copies:
            if copy.destination_tier == DEVICE and self.in_pool(copy.destination):
                step.touched.add(copy.destination)
                self.unreachable.pop(copy.destination, None)
            self.exercised["copy"] += copy.source_tier == copy.destination_tier == DEVICE

    def write(self, step: Step, slots: list[Slot], sequence: Tracked, final: bool) -> None:
        """Write the payload of these positions; ``final`` unless they are drafts."""
        step.slots = slots
        self.judge(Moment.WRITING, step)
        self.land(step, slots, sequence, final)

    def land(self, step: Step, slots: list[Slot], sequence: Tracked, final: bool) -> None:
        """Let a write reach memory."""
        for block, offset, position in slots:
            self.device.write(block, offset, sequence.nodes[position], sequence.number, final)
            step.touched.add(block)

    def _hand_out(self, step: Step, block: int) -> None:
        step.fresh.add(block)
        self.device.hand_out(block)
        self.unreachable.pop(block, None)
        # Without ``commit`` the block may already be published again, maybe under the key that it had.
        if not self.door.commits and self.published.pop(block, None) is not None:
            self.exercised["eviction"] += 1

    def _let_go(self, step: Step, blocks: set[int]) -> set[int]:
        lost = {block for block in blocks if self.in_pool(block)}
        for block in lost:
            self.holders[block] -= 1
            self.held -= not self.holders[block]
        step.touched |= lost
        return lost

    def _take(self, step: Step, blocks: set[int]) -> None:
        taken = {block for block in blocks if self.in_pool(block)}
        for block in taken:
            self.held += not self.holders[block]
            self.holders[block] += 1
        step.touched |= taken
