"""Appending beyond the room: what must happen, and whose content suffers when it doesn't."""

from collections import Counter
from contextlib import suppress

from tokenlaw.properties.kv_store_checks import CAPACITY
from tokenlaw.properties.kv_store_shadow import Shadow, ShadowedStore
from tokenlaw.spec.contracts import OutOfBlocks


def overflow(store: ShadowedStore, exercised: Counter[str], sequence: Shadow, count: int) -> None:
    """Append ``count`` positions beyond the room (whole blocks), if another sequence could suffer."""
    if len(store.live) < 2 or count < 1 or CAPACITY.id in store.muted:
        return
    exercised["overflow"] += 1
    _make_spare_room(store, sequence)
    room = store.blocks(max(sequence.room, sequence.length)) * store.config.block_size
    tokens = room - sequence.length + count
    try:
        store.write(sequence, store.payload.draw(sequence.number, sequence.ends, tokens))
    except Exception:
        store.verify({}, CAPACITY)
        return
    _report(store, sequence, f"{sequence.length + tokens} positions were accepted")


def _make_spare_room(store: ShadowedStore, sequence: Shadow) -> None:
    """One position more than it holds, if that fits: an append may then overflow halfway."""
    with suppress(OutOfBlocks):
        store.implementation.reserve(sequence.handle, sequence.length + 1)
        sequence.room = max(sequence.room, sequence.length + 1)


def _report(store: ShadowedStore, sequence: Shadow, accepted: str) -> None:
    """Report every sequence that suffered; the one that was too long if none did."""
    expected = f"an error: there is room for {sequence.room} positions"
    damage = {one: store.difference(one) for one in store.live if one is not sequence}
    victims = {one: difference for one, difference in damage.items() if difference is not None}
    for victim, (position, _, held) in victims.items():
        store.report(CAPACITY, expected, f"{accepted}, and now this one holds {held}", victim, position)
    if not victims:
        store.report(CAPACITY, expected, accepted, sequence)
