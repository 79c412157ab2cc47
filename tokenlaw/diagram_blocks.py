"""Physical blocks, drawn: who holds them, what they hold, and what an operation did to them."""

from collections.abc import Iterator

from tokenlaw.diagram_shapes import (
    CACHED,
    FAINT,
    FREE,
    HELD,
    INK,
    PAPER,
    SHARED,
    WRITTEN,
    WRONG,
    Box,
    Label,
    Shape,
    colour_of,
)
from tokenlaw.diagram_words import block_name, size_of, word, wrong_slots
from tokenlaw.spec.frames import BlockState, Frame, SlotState

SLOT, IN_A_ROW, EDGE = 27.0, 4, 8.0
HEAD, FOOT = 24.0, 26.0
WIDTH = SLOT * IN_A_ROW + 2 * EDGE

MOST_SLOTS = 32
"""Slots of a block that are drawn."""

_CHIP = 24.0
_MOST_CHIPS = 4


def height(block_size: int) -> float:
    """Height of a block, in pixels."""
    rows = -(-min(block_size, MOST_SLOTS) // IN_A_ROW)
    return HEAD + rows * SLOT + FOOT


def state(block: BlockState) -> str:
    """What a block is: shared, held, cached or free; the role of its colour."""
    if block.holders:
        return SHARED if len(set(block.holders)) > 1 else HELD
    return CACHED if block.cached else FREE


def draw_block(block: BlockState, frame: Frame, x: float, y: float) -> Iterator[Shape]:
    """A block with its slots, its reference count and its holders."""
    what = state(block)
    accused = any(one.block == block.block for one in frame.broken)
    bold = what == SHARED or (what == FREE and block.released)
    edge, line = (WRONG, 3.0) if accused else (INK, 2.0) if bold else ("edge", 1.2)
    yield Box(x, y, WIDTH, height(frame.block_size), what, edge, line, dashed=what == FREE, round=6)
    yield Label(x + EDGE, y + 16, block_name(block), size=12, bold=True)
    if not block.name:
        yield _counted(block, x + WIDTH - EDGE, y + 16)
    wrong = wrong_slots(frame)
    for offset, slot in enumerate(block.slots[:MOST_SLOTS]):
        left = x + EDGE + SLOT * (offset % IN_A_ROW)
        top = y + HEAD + SLOT * (offset // IN_A_ROW)
        yield from _slot(slot, left, top, bool(block.holders), wrong.get((block.block, offset)))
    yield from _foot(block, x + EDGE, y + height(frame.block_size) - 8)


def _counted(block: BlockState, x: float, y: float) -> Label:
    """The reference count; where it isn't the number of tables that hold the block, both."""
    holders = len(block.holders)
    if block.references is None:
        return Label(x, y, f"held by {holders}", FAINT, 11, "end")
    if block.references != holders:
        return Label(x, y, f"refs {block.references} \u2260 {holders}", WRONG, 12, "end", bold=True)
    return Label(x, y, f"refs {block.references}", INK if holders else FAINT, 12, "end")


def _slot(slot: SlotState, x: float, y: float, held: bool, short: str | None) -> Iterator[Shape]:
    """A slot; ``short`` says what is wrong with it, and is None if nothing is."""
    wrong = short is not None
    fill = "wrong-fill" if wrong else WRITTEN if slot.written else PAPER
    edge, line = (WRONG, 2.5) if wrong else (INK, 1.6) if slot.written else ("edge", 0.8)
    yield Box(x + 1.5, y + 1.5, SLOT - 3, SLOT - 3, fill, edge, line, round=3)
    colour = INK if held and slot.final else FAINT
    bold = wrong or slot.written
    text = word(slot.token)
    low = y + SLOT / 2 + (0.5 if short else 4.5)
    yield Label(x + SLOT / 2, low, text, colour, size_of(text, 12), "middle", bold=bold)
    if short:
        yield Label(x + SLOT / 2, y + SLOT - 4.5, short, INK, 8, "middle")


def _foot(block: BlockState, x: float, y: float) -> Iterator[Shape]:
    """Who holds the block, in their colours and by their numbers; else what became of it."""
    if not block.holders:
        told = "cached, not held" if block.cached else "free: released now" if block.released else "free"
        yield Label(x, y, told, FAINT, 11)
        return
    holders = list(dict.fromkeys(block.holders))
    for place, number in enumerate(holders[:_MOST_CHIPS]):
        left = x + place * (_CHIP + 3)
        yield Box(left, y - 12, _CHIP, 16, colour_of(number), line=0, round=8)
        yield Label(left + _CHIP / 2, y, f"s{number}", PAPER, 11, "middle", bold=True)
    if len(holders) > _MOST_CHIPS:
        yield Label(x + _MOST_CHIPS * (_CHIP + 3), y, "\u2026", FAINT, 11)
    elif block.cached and len(holders) < _MOST_CHIPS - 1:
        yield Label(x + WIDTH - 2 * EDGE, y, "cached", FAINT, 11, "end")
