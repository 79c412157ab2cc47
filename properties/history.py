"""What a trace does if every operation succeeds: the tokens of each sequence, live or released.

A pure and light model, used to derive prompts while a trace is drawn, to keep an operation pointed at the
same sequence while a trace is shrunk, and to name sequences when a trace is told in words.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import TypeVar

from tokenlaw.properties.trace import (
    Abort,
    Append,
    AppendLayer,
    Batch,
    Chunked,
    Fork,
    Free,
    FreeSwapped,
    LateWrite,
    New,
    Operation,
    Reorder,
    Rollback,
    Speculate,
    SpeculateBatch,
    SwapIn,
    SwapOut,
    Tokens,
)

_REMEMBERED = 8

Live = TypeVar("Live")


def batch_of(operation: Batch, live: Sequence[Live]) -> tuple[list[tuple[Live, int]], Live | None]:
    """The sequences of a batch, each with its token, and the one that is released or None.

    >>> batch_of(Batch((0, 4, 2), (7, 8), released=1), ["a", "b", "c", "d"])
    ([('a', 7), ('c', 8)], 'b')
    """
    if not live or not operation.tokens:
        return [], None
    places = dict.fromkeys(index % len(live) for index in operation.sequences)
    appended = [(live[place], token) for place, token in zip(places, cycle(operation.tokens), strict=False)]
    leaves = None if operation.released is None or not places else live[operation.released % len(live)]
    return appended, leaves


def verified(operation: SpeculateBatch, live: Sequence[Live]) -> list[tuple[Live, Tokens, int]]:
    """The sequences of a batch with drafts, each with its own and how many are kept; -1: it is released.

    >>> verified(SpeculateBatch((0, 3), (7, 8, 9), (2, 3), (1, -4)), ["a", "b"])
    [('a', (7, 8), 1), ('b', (7, 8, 9), -1)]
    """
    if not live or not (operation.drafts and operation.lengths and operation.kept):
        return []
    places = dict.fromkeys(index % len(live) for index in operation.sequences)
    found = []
    for place, length, kept in zip(places, cycle(operation.lengths), cycle(operation.kept), strict=False):
        drafts = operation.drafts[: max(1, length)]
        found.append((live[place], drafts, max(-1, min(kept, len(drafts)))))
    return found


@dataclass
class LiveSequence:
    """A sequence; ``number`` counts the sequences of the trace in order of creation."""

    number: int
    tokens: Tokens
    namespace: str = ""


@dataclass
class History:
    """State after the operations applied so far; of layers that differ in length, that of layer 0.

    ``live`` and ``swapped`` (out to the host tier, not usable) are in order of creation; ``freed`` holds
    the last few released ones, newest last; ``created`` counts all sequences, aborted ones included.
    """

    live: list[LiveSequence] = field(default_factory=list)
    swapped: list[LiveSequence] = field(default_factory=list)
    freed: deque[LiveSequence] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    created: int = 0

    def target(self, operation: Operation) -> LiveSequence | None:
        """The live sequence that the operation names, if it names one and there is one."""
        index = getattr(operation, "sequence", None)
        candidates = self.candidates(operation)
        return candidates[index % len(candidates)] if index is not None and candidates else None

    def candidates(self, operation: Operation) -> list[LiveSequence]:
        """The sequences that the index of the operation counts."""
        return self.swapped if isinstance(operation, SwapIn | FreeSwapped) else self.live

    def known(self) -> list[LiveSequence]:
        """Live and released sequences whose tokens a prompt may be derived from."""
        return [sequence for sequence in (*self.live, *self.swapped, *self.freed) if sequence.tokens]

    def apply(self, operation: Operation) -> None:
        """Go one operation further."""
        match operation:
            case New(tokens, namespace) if tokens:
                self._create(tokens, namespace)
            case Abort(tokens, None, namespace) if tokens:
                self._create(tokens, namespace)
                self._release(self.live[-1])
            case Chunked(tokens=tokens, sequence=None, namespace=namespace) if tokens:
                self._create(tokens, namespace)
                if operation.aborted:
                    self._release(self.live[-1])
            case Reorder(parents):
                self._reorder(parents)
            case Batch():
                self._batch(operation)
            case SpeculateBatch():
                for one, drafts, kept in verified(operation, self.live):
                    one.tokens += drafts[: max(kept, 0)]
                    if kept < 0:
                        self._release(one)
            case _:
                sequence = self.target(operation)
                if sequence is not None:
                    self._act(operation, sequence)

    def _act(self, operation: Operation, sequence: LiveSequence) -> None:
        """Apply an operation that names a sequence."""
        match operation:
            case SwapIn():
                self.swapped.remove(sequence)
                self.live.append(sequence)
                self.live.sort(key=lambda one: one.number)
            case FreeSwapped():
                self.swapped.remove(sequence)
                self.freed.append(sequence)
            case Free() | Abort() | Chunked(aborted=True):
                self._release(sequence)
            case Append(_, tokens) | AppendLayer(_, 0, tokens) | Chunked(tokens):
                sequence.tokens += tokens
            case Fork():
                self._create(sequence.tokens, sequence.namespace)
            case Speculate(_, drafts, accepted):
                sequence.tokens += drafts[: max(accepted, 0)]
            case Rollback(_, count) if 0 < count <= len(sequence.tokens):
                sequence.tokens = sequence.tokens[: len(sequence.tokens) - count]
            case SwapOut():
                self.live.remove(sequence)
                self.swapped.append(sequence)
                self.swapped.sort(key=lambda one: one.number)
            case LateWrite(_, _, prompt):
                self._release(sequence)
                self._create(prompt, "")

    def _batch(self, operation: Batch) -> None:
        appended, released = batch_of(operation, self.live)
        for sequence, token in appended:
            sequence.tokens += (token,)
        if released:
            self._release(released)

    def _create(self, tokens: Tokens, namespace: str) -> None:
        self.live.append(LiveSequence(self.created, tokens, namespace))
        self.created += 1

    def _release(self, sequence: LiveSequence) -> None:
        self.live.remove(sequence)
        self.freed.append(sequence)

    def _reorder(self, parents: Tokens) -> None:
        """Sequence i continues what parent i held; sequences beyond the parents stay as they are."""
        before = [replace(sequence) for sequence in self.live]
        for sequence, parent in zip(self.live, parents, strict=False):
            sequence.tokens = before[parent % len(before)].tokens
