"""One frame, drawn: sequences above and below, the pool between them, arrows from tables to blocks."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tokenlaw import diagram_blocks as blocks
from tokenlaw import diagram_sequences as sequences
from tokenlaw.diagram_shapes import (
    COPIED,
    FAINT,
    FREE,
    INK,
    WRONG,
    Arrow,
    Box,
    Drawing,
    Label,
    Shape,
    colour_of,
)
from tokenlaw.diagram_words import erased, headline, misreadings, shows_blocks
from tokenlaw.spec.frames import BlockState, Frame, SequenceState
from tokenlaw.text import one_line, without_middle

MARGIN, GAP, ROOM = 14.0, 14.0, 46.0
"""Around everything, between blocks, and between sequences and blocks."""

LEAST_WIDTH = 312.0

MOST_BLOCKS = 24
"""Blocks that are drawn; beyond that free ones are only counted."""

MOST_ARROWS = 16
_LETTER = 6.9
_LONGEST = 600

Place = tuple[float, float]


def draw_panel(frame: Frame, number: int, *, columns: int = 6) -> Drawing:
    """The state after operation ``number``, with so many blocks side by side at most."""
    shown = _shown(frame)
    columns = max(1, min(columns, len(shown)))
    above, below = _sides(frame)
    inner = max(
        LEAST_WIDTH - 2 * MARGIN,
        columns * (blocks.WIDTH + GAP) - GAP,
        *(sequences.width(one, frame.block_size) for one in frame.sequences),
    )
    drawing = Drawing(inner + 2 * MARGIN, 0, f"After operation {number}: {frame.told}")
    y = _write(drawing, f"{number}. {frame.told}", 24, size=14, bold=True)
    if headline(frame):
        y = _write(drawing, headline(frame), y, size=13, colour=WRONG, bold=True) + 4
    above_at = {one.number: y + place * sequences.HEIGHT for place, one in enumerate(above)}
    y += len(above) * sequences.HEIGHT + (ROOM - 12 if above else 0)
    places = _grid(shown, columns, y, blocks.height(frame.block_size))
    y = max((top + blocks.height(frame.block_size) for _, top in places.values()), default=y)
    y += ROOM if below or frame.copies else 16
    below_at = {one.number: y + place * sequences.HEIGHT for place, one in enumerate(below)}
    drawing.shapes += _arrows(frame, places, above_at, below_at)
    for one in frame.sequences:
        top = above_at.get(one.number, below_at.get(one.number, 0.0))
        drawing.shapes += sequences.draw_sequence(one, frame, MARGIN, top)
    for block in shown:
        drawing.shapes += blocks.draw_block(block, frame, *places[block.block])
    drawing.shapes += _copies(frame, places)
    y += len(below) * sequences.HEIGHT + 12
    for text, colour in said(frame, len(frame.blocks) - len(shown)):
        y = _write(drawing, text, y, colour=colour)
    drawing.height = y
    return drawing


def _shown(frame: Frame) -> list[BlockState]:
    """All blocks of a small pool; of a large one those that aren't free, and some."""
    if len(frame.blocks) <= MOST_BLOCKS:
        return list(frame.blocks)
    busy = [block for block in frame.blocks if blocks.state(block) != FREE]
    return (busy or list(frame.blocks))[:MOST_BLOCKS]


def _sides(frame: Frame) -> tuple[list[SequenceState], list[SequenceState]]:
    """The sequences above the pool and those below: every other one, so that few arrows cross."""
    live = list(frame.sequences)
    return live[::2], live[1::2]


def _grid(shown: Sequence[BlockState], columns: int, y: float, height: float) -> dict[int, Place]:
    """Upper left corner of each block."""
    return {
        block.block: (
            MARGIN + (place % columns) * (blocks.WIDTH + GAP),
            y + (place // columns) * (height + ROOM),
        )
        for place, block in enumerate(shown)
    }


def _arrows(
    frame: Frame, places: Mapping[int, Place], above: Mapping[int, float], below: Mapping[int, float]
) -> Iterator[Arrow]:
    """From each logical block to its physical one; none where there would be too many to follow."""
    if sum(len(one.table) for one in frame.sequences) > MOST_ARROWS:
        return
    for one in frame.sequences:
        # Arrows of different sequences arrive beside each other.
        aside = 16.0 * (one.number % 3 - 1)
        for block, middle in sequences.anchors(one, frame.block_size, MARGIN):
            if block not in places:
                continue
            x, y = places[block]
            target = x + blocks.WIDTH / 2 + aside
            colour = colour_of(one.number)
            if one.number in above:
                yield Arrow(middle, above[one.number] + sequences.CELL + 17, target, y - 2, colour)
            else:
                bottom = y + blocks.height(frame.block_size) + 2
                yield Arrow(middle, below[one.number] - 3, target, bottom, colour)


def _copies(frame: Frame, places: Mapping[int, Place]) -> Iterator[Shape]:
    """Copies within the pool, each as an arrow that says so."""
    height = blocks.height(frame.block_size)
    for copy in frame.copies:
        if copy.from_host or copy.to_host or copy.source not in places or copy.destination not in places:
            continue
        (x1, y1), (x2, y2) = places[copy.source], places[copy.destination]
        yield Box(x2 - 3, y2 - 3, blocks.WIDTH + 6, height + 6, "", COPIED, 2.5, dashed=True, round=8)
        start, end = x1 + blocks.WIDTH * 0.8, x2 + blocks.WIDTH * 0.2
        yield Arrow(start, y1 + height + 3, end, y2 + height + 3, COPIED, 2.6)
        low = max(y1, y2) + height + 38
        yield Label((start + end) / 2, low, "copy", COPIED, 12, "middle", bold=True)


def said(frame: Frame, hidden: int = 0) -> Iterator[tuple[str, str]]:
    """What stands below a picture, with its colours."""
    pool = _pool(frame)
    yield (f"{pool}; {hidden} more blocks aren't drawn" if hidden else pool), FAINT
    for copy in frame.copies:
        source = f"block {copy.source}" + (" of the host" if copy.from_host else "")
        destination = f"block {copy.destination}" + (" of the host" if copy.to_host else "")
        yield f"copied: {source} \u2192 {destination}", COPIED
    if erased(frame):
        yield f"erased: {', '.join(erased(frame))}", WRONG
    if frame.refused:
        yield "refused: out of blocks", INK
    for told in misreadings(frame):
        yield told, WRONG
    for one in frame.broken:
        yield f"{one.check}: expected {one.expected}", WRONG
        yield f"found {one.found}", WRONG
    if frame.crash:
        lines = frame.crash.strip().splitlines()
        yield f"crashed (the picture is that before): {lines[-1] if lines else ''}", WRONG


def _pool(frame: Frame) -> str:
    """What is to say about all blocks together."""
    if frame.free is not None:
        return f"{frame.free} of {len(frame.blocks)} blocks can be taken"
    if not shows_blocks(frame):
        return f"layer {frame.layer}; no block table is shown: boxes are what the sequences read back"
    free = sum(not block.holders for block in frame.blocks)
    return f"layer {frame.layer}; {free} of {len(frame.blocks)} blocks are in no table"


def _write(
    drawing: Drawing, text: str, y: float, *, size: float = 12.5, colour: str = INK, bold: bool = False
) -> float:
    """Write wrapped lines from a baseline on; where the next would stand."""
    letters = int((drawing.width - 2 * MARGIN) / (_LETTER * size / 13))
    label = Label(MARGIN, y, "", colour, size, bold=bold)
    for line in textwrap.wrap(without_middle(one_line(text), _LONGEST), max(letters, 20)):
        drawing.shapes.append(replace(label, y=y, text=line))
        y += size + 5
    return y + 3
