"""The operations of a trace on a KV store, each with the check that its outcome is judged by."""

from collections import Counter
from contextlib import suppress
from typing import Any

from tokenlaw.properties.full_pool import hint
from tokenlaw.properties.kv_store_checks import (
    ATOMIC,
    ATTENTION,
    BATCH,
    BYSTANDERS,
    CONTENT,
    LAYERS,
    RELEASE,
    REORDER,
    ROLLBACK,
)
from tokenlaw.properties.kv_store_overflow import overflow
from tokenlaw.properties.kv_store_shadow import Shadow, ShadowedStore
from tokenlaw.properties.trace import (
    Append,
    AppendLayer,
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
            case Append() | AppendLayer() | Fork() | Rollback() | Free() | Overflow() if self.live:
                self._act(operation, self.live[operation.sequence % len(self.live)])
            case _:
                return
        self._attend_all()

    def _act(self, operation: Operation, sequence: Shadow) -> None:
        match operation:
            case Append(_, tokens):
                self._append(sequence, len(tokens))
            case AppendLayer(_, layer, tokens) if "layers" in self.can and LAYERS.id not in self.store.muted:
                self._append_layer(sequence, layer % self.store.config.num_layers, len(tokens))
            case Fork() if "fork" in self.can:
                self._fork(sequence)
            case Rollback(_, count) if "rollback" in self.can:
                self._rollback(sequence, count)
            case Free():
                self.exercised["free"] += 1
                self._release(sequence)
            case Overflow(_, count) if "reserve" in self.can:
                overflow(self.store, self.exercised, sequence, count)

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

    def _append_layer(self, sequence: Shadow, layer: int, tokens: int) -> None:
        behind = sequence.ends[layer] < sequence.length
        if self._extend(sequence, tokens, layer):
            self.exercised["append to a layer"] += 1
            self.exercised["append to a layer behind"] += behind
            self.exercised["layers of different lengths"] += sequence.shortest < sequence.length
            self.store.verify({sequence.number: LAYERS}, BYSTANDERS)

    def _extend(self, sequence: Shadow, tokens: int, layer: int | None = None) -> bool:
        """Reserve where that exists, append to a layer or to all, remember it; False if it doesn't fit."""
        ends = sequence.ends if layer is None else {layer: sequence.ends[layer]}
        numbers = self.store.payload.draw(sequence.number, ends, tokens)
        needed = max(sequence.length, max(ends.values()) + tokens)
        try:
            if "reserve" in self.can:
                self.store.implementation.reserve(sequence.handle, needed)
                sequence.room = max(sequence.room, needed)
            self.store.write(sequence, numbers, layer)
        except OutOfBlocks:
            self._refused(needed, sequence)
            return False
        except Exception as error:
            hint(error)
            raise
        sequence.extend(ends, numbers)
        self.store.remember_room()
        return True

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
        legal = 0 <= count <= sequence.shortest
        self.exercised["rollback" if legal else "bad rollback"] += 1
        try:
            self.store.implementation.rollback(sequence.handle, count)
        except Exception:
            if legal:
                raise
        else:
            if not legal:
                expected = f"an error: there are {sequence.shortest} positions"
                self.store.report(ROLLBACK, expected, f"rollback of {count} was accepted", sequence)
                return
            sequence.hold([held[:, :, : held.shape[2] - count] for held in sequence.content])
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
        if len({end for beam in beams for end in beam.ends.values()}) != 1:
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

    def _attend_all(self) -> None:
        """Every live sequence once, in order of creation; a sequence without a position has no query."""
        if "attend" not in self.can or ATTENTION.id in self.store.muted or self.store.violations:
            return
        if self.live and all(sequence.shortest for sequence in self.live):
            self.exercised["attend"] += 1
            self.store.report_rows(ATTENTION, self.live)

    def _attend_some(self, indices: tuple[int, ...]) -> None:
        batch = [self.live[index] for index in dict.fromkeys(index % len(self.live) for index in indices)]
        if not batch or batch == self.live or BATCH.id in self.store.muted:
            return
        if all(sequence.shortest for sequence in self.live):
            self.exercised["attend a part"] += 1
            self.store.report_rows(BATCH, batch)
