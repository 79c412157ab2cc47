"""Rows of a KV store by name: what a sequence reads back, position by position, beside what it should."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tokenlaw.properties.kv_store_payload import Payload
from tokenlaw.properties.kv_store_shadow import Shadow, ShadowedStore
from tokenlaw.spec.frames import Misread, Row, Wrong

Content = bytes
"""The numbers of a row, keys before values."""


@dataclass(frozen=True)
class Reading:
    """One sequence in one layer.

    Attributes
    ----------
    expected : the rows that it should read back.
    found : the rows that it read, None for what is none; as many, or more.
    misread : the positions that read back wrong.
    """

    shadow: Shadow
    expected: tuple[Row, ...]
    found: tuple[Row | None, ...]
    misread: tuple[Misread, ...]


class Rows:
    """Knows every row that the harness wrote by its numbers; the same numbers twice name the later row."""

    def __init__(self) -> None:
        self._names: dict[Content, tuple[Row, int]] = {}
        self._draws = 0

    def learn(self, payload: Payload, operation: int) -> None:
        """Name the rows that this operation, from 1 on, has drawn."""
        for sequence, position, layer, numbers in payload.rows(self._draws):
            (content,) = _contents(numbers[:, :, None])
            self._names[content] = Row(sequence, position, operation), layer
        self._draws = payload.draws

    def reading(self, store: ShadowedStore, shadow: Shadow, layer: int) -> Reading:
        """Read a live sequence back, a damaged one as well."""
        expected = list(_contents(shadow.content[layer]))
        rows = self._named(expected)
        found = _read(store, shadow, layer)
        if found == expected:
            return Reading(shadow, rows, rows, ())
        others = [one for one in store.live if one is not shadow]
        of_others = frozenset(row for one in others for row in self._named(_contents(one.content[layer])))
        owner = _Owner(layer, rows, of_others, frozenset(one.number for one in others))
        misread = {one.position: one for one in self._differences(expected, found, owner)}
        seen = [misread[place].found if place in misread else row for place, row in enumerate(rows)]
        seen += [misread[place].found for place in range(len(rows), len(found))]
        return Reading(shadow, rows, tuple(seen), tuple(misread.values()))

    def _named(self, contents: Iterable[Content]) -> tuple[Row, ...]:
        """The rows with these numbers, which the harness wrote."""
        return tuple(self._names[content][0] for content in contents)

    def _differences(
        self, expected: list[Content], found: list[Content], owner: "_Owner"
    ) -> Iterator[Misread]:
        for position, content in enumerate(expected):
            if position >= len(found):
                yield Misread(position, Wrong.MISSING)
            elif found[position] != content:
                yield self._misread(position, content, found[position], owner)
        for position in range(len(expected), len(found)):
            held, _ = self._names.get(found[position], (None, owner.layer))
            yield Misread(position, Wrong.BEYOND, held)

    def _misread(self, position: int, expected: Content, found: Content, owner: "_Owner") -> Misread:
        half = len(expected) // 2
        if found in self._names:
            held, layer = self._names[found]
            return Misread(position, owner.wrong(position, held, layer), held)
        if found[half:] == expected[half:]:
            return Misread(position, Wrong.KEYS, owner.rows[position])
        if found[:half] == expected[:half]:
            return Misread(position, Wrong.VALUES, owner.rows[position])
        return Misread(position, Wrong.LOST)


@dataclass(frozen=True)
class _Owner:
    """A sequence in one layer: its rows, those of all other live ones, and the numbers of these."""

    layer: int
    rows: tuple[Row, ...]
    of_others: frozenset[Row]
    others: frozenset[int]

    def wrong(self, position: int, held: Row, layer: int) -> Wrong:
        """What is wrong with a whole row that doesn't belong at this position."""
        if layer != self.layer:
            return Wrong.LAYER
        if held in self.rows:
            return Wrong.MOVED
        expected = self.rows[position]
        earlier = (held.sequence, held.position) == (expected.sequence, expected.position)
        foreign = held.sequence in self.others and not earlier
        return Wrong.OTHER if held in self.of_others or foreign else Wrong.STALE


def _read(store: ShadowedStore, shadow: Shadow, layer: int) -> list[Content]:
    """The rows that come back; none if that fails, or if they aren't what this store holds."""
    expected = shadow.content[layer]
    try:
        found = torch.stack([one.cpu() for one in store.implementation.read(shadow.handle, layer)])
    except Exception:  # whatever it is, the run itself judges it
        return []
    if found.dtype != expected.dtype or found.dim() != expected.dim():
        return []
    alike = found.shape[1] == expected.shape[1] and found.shape[3] == expected.shape[3]
    return list(_contents(found)) if alike else []


def _contents(numbers: Float[Tensor, "2 kv_heads length head_size"]) -> Iterator[Content]:
    """The numbers of each position."""
    for row in numbers.permute(2, 0, 1, 3).flatten(1).contiguous():
        yield row.view(torch.uint8).numpy().tobytes()
