"""What a KV store must hold: contiguous copies of its live sequences, and the comparison with them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tokenlaw.properties.kv_store_attention import AttentionJudge
from tokenlaw.properties.kv_store_checks import BATCH
from tokenlaw.properties.kv_store_payload import KEY_OR_VALUE, Payload, dtype_of
from tokenlaw.properties.running import Violation
from tokenlaw.spec.contracts import CacheConfig
from tokenlaw.spec.verdicts import Check


@dataclass(eq=False)
class Shadow:
    """A live sequence as it must be.

    ``content`` is, for each layer, ``[2, kv_heads, length, head_size]``, keys first. ``room`` is the longest
    length that was reserved, ``peak`` the longest that was held. Sequences of a ``family`` may share storage.
    A ``damaged`` one broke a muted check.
    """

    number: int
    handle: Any
    content: tuple[Float[Tensor, "2 kv_heads length head_size"], ...]
    family: int
    room: int = 0
    peak: int = 0
    damaged: bool = False

    @property
    def ends(self) -> dict[int, int]:
        """Layer -> positions that it holds."""
        return {layer: held.shape[2] for layer, held in enumerate(self.content)}

    @property
    def length(self) -> int:
        """Positions that the longest layer holds."""
        return max(self.ends.values())

    @property
    def shortest(self) -> int:
        """Positions that every layer holds."""
        return min(self.ends.values())

    def hold(self, content: Sequence[Tensor]) -> None:
        """The sequence holds this from now on."""
        self.content = tuple(content)
        self.peak = max(self.peak, self.length)

    def extend(
        self, layers: Iterable[int], numbers: Float[Tensor, "2 layers kv_heads tokens head_size"]
    ) -> None:
        """These layers hold further numbers from now on."""
        content = list(self.content)
        for layer, further in zip(layers, numbers.unbind(1), strict=True):
            content[layer] = torch.cat([content[layer], further], dim=2)
        self.hold(content)


class ShadowedStore:
    """An implementation, the shadows of its live sequences in order of creation, and what broke so far."""

    def __init__(self, implementation: Any, config: CacheConfig, muted: frozenset[str]) -> None:
        self.implementation = implementation
        self.config = config
        self.muted = muted
        self.payload = Payload(config)
        self.live: list[Shadow] = []
        self.violations: list[Violation] = []
        self.operation = -1
        self._attention = AttentionJudge(implementation, config)
        self._created = 0
        self._most_blocks = self._most_tokens = 0
        self._most_sequences = 0

    def next_number(self) -> int:
        """Number of a sequence that is about to be made, whether that succeeds or not."""
        self._created += 1
        return self._created - 1

    def admit(self, number: int, handle: Any, parent: Shadow | None = None) -> Shadow:
        """A new sequence is live, empty or equal to its parent."""
        if parent is None:
            config = self.config
            empty = torch.empty(2, config.num_kv_heads, 0, config.head_size, dtype=dtype_of(config))
            sequence = Shadow(number, handle, (empty,) * config.num_layers, family=number)
        else:
            sequence = Shadow(
                number, handle, parent.content, parent.family, room=parent.length, peak=parent.length
            )
        self.live.append(sequence)
        self.remember_room()
        return sequence

    def continue_as(self, beams: Sequence[Shadow], places: Sequence[int]) -> None:
        """Beam i holds what beam ``places[i]`` held; from now on any of them may share storage."""
        contents = [beam.content for beam in beams]
        room, families = max(beam.room for beam in beams), {beam.family for beam in beams}
        for beam, place in zip(beams, places, strict=True):
            beam.hold(contents[place])
            beam.room = room
        for sequence in self.live:
            if sequence.family in families:
                sequence.family = beams[0].family

    def write(self, sequence: Shadow, numbers: Tensor, layer: int | None = None) -> None:
        """Append what `Payload.draw` gave, to one layer or to all."""
        keys, values = numbers.to(self.config.device)
        if layer is None:
            self.implementation.append(sequence.handle, keys, values)
        else:
            self.implementation.append_layer(sequence.handle, layer, keys[0], values[0])

    def blocks(self, length: int) -> int:
        """Blocks that hold ``length`` positions."""
        return -(-length // self.config.block_size)

    def remember_room(self) -> None:
        """Take down how many blocks and tokens, at least, and how many sequences are held at this time.

        A store may keep its layers apart: where they differ in length, the shortest counts.
        """
        longest: dict[int, int] = {}
        for sequence in self.live:
            longest[sequence.family] = max(longest.get(sequence.family, 0), sequence.shortest)
        self._most_blocks = max(self._most_blocks, sum(map(self.blocks, longest.values())))
        self._most_tokens = max(self._most_tokens, sum(longest.values()))
        self._most_sequences = max(self._most_sequences, len(self.live))

    def has_held(self, length: int, grown: Shadow | None = None) -> bool:
        """Whether the store once held what it would hold with ``grown``, or another one, at ``length``.

        True is certain: what it held is counted with everything shared that may be, what it would hold with
        nothing shared, blocks of rolled back positions and reserved room kept, and a block for an empty
        sequence. Tokens are counted as well as blocks: a pool may be one of single slots.
        """
        lengths = [max(one.peak, one.room, length if one is grown else 0) for one in self.live]
        lengths += [length] if grown is None else []
        fits = sum(max(1, self.blocks(one)) for one in lengths) <= self._most_blocks
        fits &= sum(lengths) <= self._most_tokens and len(lengths) <= self._most_sequences
        return fits and not any(one.damaged for one in self.live)

    def report(
        self,
        check: Check,
        expected: str,
        found: str,
        sequence: Shadow | None = None,
        position: int | None = None,
    ) -> None:
        """A check broke; a muted one only marks the sequence."""
        if check.id not in self.muted:
            number = None if sequence is None else sequence.number
            self.violations.append(Violation(check.id, self.operation, expected, found, number, position))
        elif sequence is not None:
            sequence.damaged = True

    def verify(self, acting: Mapping[int, Check], others: Check) -> None:
        """Read every live sequence; a difference is reported under the check of its number, or ``others``."""
        for sequence in self.live:
            difference = None if sequence.damaged else self.difference(sequence)
            if difference is not None:
                check, (position, expected, found) = acting.get(sequence.number, others), difference
                self.report(check, expected, found, sequence, position)

    def difference(self, sequence: Shadow) -> tuple[int | None, str, str] | None:
        """The first difference from the shadow as (position, expected, found), or None."""
        for layer in range(self.config.num_layers):
            read = self.implementation.read(sequence.handle, layer)
            for what, tensor, expected in zip(KEY_OR_VALUE, read, sequence.content[layer], strict=True):
                found = tensor.cpu()
                if found.shape != expected.shape or found.dtype != expected.dtype:
                    place = f"{what}s of layer {layer} of shape"
                    return (
                        None,
                        f"{place} {tuple(expected.shape)} in {expected.dtype}",
                        f"{place} {tuple(found.shape)} in {found.dtype}",
                    )
                if not torch.equal(found, expected):
                    return self._first_difference(f"layer {layer}, {what}", found, expected)
        return None

    def report_rows(self, check: Check, batch: Sequence[Shadow]) -> None:
        """Attend with the batch and report the rows that are wrong.

        A row of a part is the fault of the batch only if the same row is right among all live sequences.
        """
        wrong = self._wrong_rows(batch)
        if wrong and check is BATCH:
            wrong_anyway = self._wrong_rows(self.live)
            wrong = {number: words for number, words in wrong.items() if number not in wrong_anyway}
        for sequence in batch:
            if sequence.number in wrong and not sequence.damaged:
                self.report(check, *wrong[sequence.number], sequence)

    def _wrong_rows(self, batch: Sequence[Shadow]) -> dict[int, tuple[str, str]]:
        return self._attention.wrong_rows([(one.number, one.handle, one.content) for one in batch])

    def _first_difference(self, place: str, found: Tensor, expected: Tensor) -> tuple[int, str, str]:
        position, head, dim = (found != expected).transpose(0, 1).nonzero()[0].tolist()
        where = f"{place}, head {head}, dim {dim}:"
        number = found[head, position, dim].item()
        return (
            position,
            f"{where} {expected[head, position, dim].item():.9g}",
            f"{where} {number:.9g}, {self.payload.origin(number)}",
        )
