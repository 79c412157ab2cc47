"""The operations of a trace on a KV store, each with the check that its outcome is judged by."""

from collections import Counter
from contextlib import suppress
from typing import Any

import torch

from tokenlaw.properties.full_pool import hint
from tokenlaw.properties.kv_store_checks import (
    ATOMIC,
    ATTENTION,
    BATCH,
    BYSTANDERS,
    CAPACITY,
    CONTENT,
    RELEASE,
    REORDER,
    ROLLBACK,
)
from tokenlaw.properties.kv_store_shadow import Shadow, ShadowedStore
from tokenlaw.properties.trace import (
    Append,
    Attend,
    Fork,
    Free,
    FreeAgain,
    New,
    Operation,
    Overflow,
    Reorder,
    Rollback,
)
from tokenlaw.spec.contracts import OutOfBlocks


class Operations:
    """What each operation does to a store and to its shadows; every live sequence is looked at after each."""

    def __init__(self, store: ShadowedStore, capabilities: frozenset[str], exercised: Counter[str]) -> None:
        self.store = store
        self.live = store.live
        self.can = capabilities
        self.exercised = exercised
        self.freed: list[Any] = []

    def step(self, operation: Operation) -> None:
        """Do one operation, if it means something here, then attend with everything."""
        self.store.operation += 1
        match operation:
            case New(tokens):
                self._new(len(tokens))
            case FreeAgain() if self.freed:
                self._free_again(self.freed[-1])
            case Reorder(parents) if self.live and "reorder" in self.can:
                self._reorder(parents)
            case Attend(indices) if self.live and {"attend", "any-batch"} <= self.can:
                self._attend_some(indices)
            case Append() | Fork() | Rollback() | Free() | Overflow() if self.live:
                self._act(operation, self.live[operation.sequence % len(self.live)])
            case _:
                return
        self._attend_all()

    def _act(self, operation: Operation, sequence: Shadow) -> None:
        match operation:
            case Append(_, tokens):
                self._append(sequence, len(tokens))
            case Fork() if "fork" in self.can:
                self._fork(sequence)
            case Rollback(_, count) if "rollback" in self.can:
                self._rollback(sequence, count)
            case Free():
                self.exercised["free"] += 1
                self._release(sequence)
            case Overflow(_, count) if "reserve" in self.can:
                self._overflow(sequence, count)

    def _new(self, tokens: int) -> None:
        number = self.store.next_number()
        try:
            handle = self.store.implementation.allocate()
        except OutOfBlocks:
            self._refused(0)
            return
        except Exception as error:
            hint(error)
            raise
        self.exercised["new"] += 1
        self.exercised["slot reuse"] += bool(self.freed)
        sequence = self.store.admit(number, handle)
        if self._extend(sequence, tokens):
            self.store.verify({number: CONTENT}, BYSTANDERS)
        elif not self.store.violations:
            self._release(sequence)

    def _append(self, sequence: Shadow, tokens: int) -> None:
        relatives = [one for one in self.live if one.family == sequence.family and one is not sequence]
        if self._extend(sequence, tokens):
            self.exercised["append"] += 1
            self.exercised["divergence"] += bool(relatives and tokens)
            self.store.verify({sequence.number: CONTENT}, BYSTANDERS)

    def _extend(self, sequence: Shadow, tokens: int) -> bool:
        """Reserve where that exists, append, and remember it; False if it doesn't fit."""
        numbers = self.store.payload.draw(sequence.number, sequence.length, tokens)
        try:
            if "reserve" in self.can:
                self.store.implementation.reserve(sequence.handle, sequence.length + tokens)
                sequence.room = max(sequence.room, sequence.length + tokens)
            self._write(sequence, numbers)
        except OutOfBlocks:
            self._refused(sequence.length + tokens, sequence)
            return False
        except Exception as error:
            hint(error)
            raise
        sequence.hold(torch.cat([sequence.content, numbers], dim=3))
        self.store.remember_room()
        return True

    def _write(self, sequence: Shadow, numbers: torch.Tensor) -> None:
        keys, values = numbers.to(self.store.config.device)
        self.store.implementation.append(sequence.handle, keys, values)

    def _refused(self, length: int, sequence: Shadow | None = None) -> None:
        """``length`` positions for this or a further sequence don't fit: true, and nothing changed?"""
        self.exercised["out of blocks"] += 1
        self.store.verify({}, ATOMIC)
        if self.store.has_held(length, sequence):
            self.store.report(
                RELEASE,
                expected="room, since the store has held as many blocks and sequences at one time before",
                found="OutOfBlocks",
            )

    def _fork(self, parent: Shadow) -> None:
        number = self.store.next_number()
        try:
            handle = self.store.implementation.fork(parent.handle)
        except OutOfBlocks:
            self._refused(parent.length)
            return
        except Exception as error:
            hint(error)
            raise
        self.exercised["fork"] += 1
        self.store.admit(number, handle, parent)
        self.store.verify({number: CONTENT}, BYSTANDERS)

    def _rollback(self, sequence: Shadow, count: int) -> None:
        legal = 0 <= count <= sequence.length
        self.exercised["rollback" if legal else "bad rollback"] += 1
        try:
            self.store.implementation.rollback(sequence.handle, count)
        except Exception:
            if legal:
                raise
        else:
            if not legal:
                expected = f"an error: there are {sequence.length} positions"
                self.store.report(ROLLBACK, expected, f"rollback of {count} was accepted", sequence)
                return
            sequence.hold(sequence.content[:, :, :, : sequence.length - count])
        self.store.verify({sequence.number: ROLLBACK}, BYSTANDERS)

    def _release(self, sequence: Shadow) -> None:
        self.live.remove(sequence)
        self.store.implementation.free(sequence.handle)
        self.freed.append(sequence.handle)
        self.store.verify({}, BYSTANDERS)

    def _free_again(self, handle: Any) -> None:
        if any(handle == sequence.handle for sequence in self.live):
            return  # the store names a new sequence like the released one
        self.exercised["free again"] += 1
        with suppress(Exception):  # to raise is one of the two right answers
            self.store.implementation.free(handle)
        self.store.verify({}, RELEASE)

    def _reorder(self, parents: tuple[int, ...]) -> None:
        """Beams beyond ``parents`` that are a parent take part and continue themselves."""
        count = len(self.live)
        wanted = {index: parent % count for index, parent in enumerate(parents[:count])}
        touched = sorted({*wanted, *wanted.values()})
        beams = [self.live[index] for index in touched]
        if len({beam.length for beam in beams}) != 1:
            return
        places = [touched.index(wanted.get(index, index)) for index in touched]
        try:
            self.store.implementation.reorder([beam.handle for beam in beams], places)
        except OutOfBlocks:
            self.exercised["out of blocks"] += 1
            self.store.verify({}, ATOMIC)
            return
        self.exercised["reorder"] += 1
        self.store.continue_as(beams, places)
        self.store.verify({beam.number: REORDER for beam in beams}, BYSTANDERS)

    def _overflow(self, sequence: Shadow, count: int) -> None:
        if len(self.live) < 2 or count < 1 or CAPACITY.id in self.store.muted:
            return
        self.exercised["overflow"] += 1
        self._make_spare_room(sequence)
        size = self.store.config.block_size
        tokens = self.store.blocks(max(sequence.room, sequence.length)) * size - sequence.length + count
        try:
            self._write(sequence, self.store.payload.draw(sequence.number, sequence.length, tokens))
        except Exception:
            self.store.verify({}, CAPACITY)
            return
        expected = f"an error: there is room for {sequence.room} positions"
        accepted = f"{sequence.length + tokens} positions were accepted"
        damage = {one: self.store.difference(one) for one in self.live if one is not sequence}
        victims = {one: difference for one, difference in damage.items() if difference is not None}
        for victim, (position, _, held) in victims.items():
            found = f"{accepted}, and now this one holds {held}"
            self.store.report(CAPACITY, expected, found, victim, position)
        if not victims:
            self.store.report(CAPACITY, expected, accepted, sequence)

    def _make_spare_room(self, sequence: Shadow) -> None:
        """One position more than it holds, if that fits: an append may then overflow halfway."""
        with suppress(OutOfBlocks):
            self.store.implementation.reserve(sequence.handle, sequence.length + 1)
            sequence.room = max(sequence.room, sequence.length + 1)

    def _attend_all(self) -> None:
        """Every live sequence once, in order of creation; a sequence without a position has no query."""
        if "attend" not in self.can or ATTENTION.id in self.store.muted or self.store.violations:
            return
        if self.live and all(sequence.length for sequence in self.live):
            self.exercised["attend"] += 1
            self.store.report_rows(ATTENTION, self.live)

    def _attend_some(self, indices: tuple[int, ...]) -> None:
        batch = [self.live[index] for index in dict.fromkeys(index % len(self.live) for index in indices)]
        if not batch or batch == self.live or BATCH.id in self.store.muted:
            return
        if all(sequence.length for sequence in self.live):
            self.exercised["attend a part"] += 1
            self.store.report_rows(BATCH, batch)
