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
    found : the rows that it read, None for what is none; as many.
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
        """Read a live sequence back; a damaged one may hold anything."""
        expected = list(_contents(shadow.content[layer]))
        found = _read(store, shadow, layer)
        rows = tuple(self._names[content][0] for content in expected)
        if shadow.damaged:
            return Reading(shadow, rows, rows, ())
        live = {one.number for one in store.live}
        misread = {one.position: one for one in self._differences(expected, found, layer, live)}
        seen = tuple(misread[place].found if place in misread else row for place, row in enumerate(rows))
        return Reading(shadow, rows, seen, tuple(misread.values()))

    def _differences(
        self, expected: list[Content], found: list[Content], layer: int, live: set[int]
    ) -> Iterator[Misread]:
        for position, content in enumerate(expected):
            if position >= len(found):
                yield Misread(position, Wrong.MISSING)
            elif found[position] != content:
                yield self._misread(position, content, found[position], layer, live)

    def _misread(
        self, position: int, expected: Content, found: Content, layer: int, live: Iterable[int]
    ) -> Misread:
        row, half = self._names[expected][0], len(expected) // 2
        if found in self._names:
            held, other_layer = self._names[found]
            return Misread(position, _kind(row, held, layer == other_layer, live), held)
        if found[half:] == expected[half:]:
            return Misread(position, Wrong.KEYS, row)
        if found[:half] == expected[:half]:
            return Misread(position, Wrong.VALUES, row)
        return Misread(position, Wrong.LOST)


def _kind(expected: Row, found: Row, same_layer: bool, live: Iterable[int]) -> Wrong:
    """What is wrong with a whole row that belongs elsewhere."""
    if not same_layer:
        return Wrong.LAYER
    if found.sequence != expected.sequence:
        return Wrong.OTHER if found.sequence in live else Wrong.STALE
    return Wrong.STALE if found.position == expected.position else Wrong.MOVED


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
