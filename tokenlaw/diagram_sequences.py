"""Sequences, drawn: their tokens in logical blocks, and which physical block each of them is."""

from collections.abc import Iterator

from tokenlaw.diagram_blocks import word
from tokenlaw.diagram_shapes import FAINT, INK, PAPER, WRONG, Box, Label, Shape, colour_of
from tokenlaw.spec.frames import SequenceState

CELL, NAME, GAP, HEIGHT = 21.0, 46.0, 8.0, 44.0

MOST_CELLS = 4
"""Tokens of a logical block that are written out; of larger blocks only the positions are."""

MOST_GROUPS = 8


def group_width(block_size: int) -> float:
    """Width of a logical block, in pixels."""
    return CELL * min(block_size, MOST_CELLS) if block_size <= MOST_CELLS else CELL * MOST_CELLS


def width(sequence: SequenceState, block_size: int) -> float:
    """Width of a sequence, in pixels."""
    shown = min(_groups(sequence, block_size), MOST_GROUPS)
    return NAME + shown * (group_width(block_size) + GAP) + (30 if shown == MOST_GROUPS else 0)


def _groups(sequence: SequenceState, block_size: int) -> int:
    return max(len(sequence.table), -(-len(sequence.tokens) // block_size))


def anchors(sequence: SequenceState, block_size: int, x: float) -> list[tuple[int, float]]:
    """Physical block and middle of each logical block that is drawn."""
    step = group_width(block_size) + GAP
    middle = x + NAME + group_width(block_size) / 2
    return [
        (block, middle + place * step)
        for place, block in enumerate(sequence.table[:MOST_GROUPS])
        if block is not None
    ]


def draw_sequence(sequence: SequenceState, block_size: int, x: float, y: float) -> Iterator[Shape]:
    """A row: the name, and for each logical block its tokens with the physical block below."""
    colour = colour_of(sequence.number)
    yield Box(x, y, NAME - 8, CELL, colour, line=0, round=10)
    yield Label(x + (NAME - 8) / 2, y + 15, f"seq {sequence.number}", PAPER, 11, "middle", bold=True)
    if sequence.swapped:
        yield Label(x + NAME, y + 15, "swapped out to the host", FAINT, 12)
        return
    for place in range(min(_groups(sequence, block_size), MOST_GROUPS)):
        left = x + NAME + place * (group_width(block_size) + GAP)
        yield from _group(sequence, block_size, place, left, y)
    hidden = _groups(sequence, block_size) - MOST_GROUPS
    if hidden > 0:
        yield Label(x + width(sequence, block_size) - 28, y + 15, f"+{hidden}", FAINT, 12)


def _group(sequence: SequenceState, block_size: int, place: int, x: float, y: float) -> Iterator[Shape]:
    first = place * block_size
    positions = range(first, min(first + block_size, len(sequence.tokens)))
    wrong = [position for position in positions if position in sequence.wrong]
    if block_size <= MOST_CELLS:
        for offset, position in enumerate(positions):
            left, bad = x + offset * CELL, position in wrong
            yield Box(left, y, CELL - 1, CELL, "wrong-fill" if bad else PAPER, WRONG if bad else "edge", 0.8)
            token = word(sequence.tokens[position])
            yield Label(left + CELL / 2 - 0.5, y + 15, token, INK, 11, "middle", bold=bad)
    elif positions:
        yield Box(x, y, CELL * MOST_CELLS - 1, CELL, PAPER, WRONG if wrong else "edge", 0.8)
        told = f"{positions[0]} to {positions[-1]}" + (f": {len(wrong)} wrong" if wrong else "")
        yield Label(x + CELL * MOST_CELLS / 2, y + 15, told, INK, 11, "middle", bold=bool(wrong))
    block = sequence.table[place] if place < len(sequence.table) else None
    told = "no block" if block is None else f"block {block}"
    middle = x + group_width(block_size) / 2
    yield Label(middle, y + CELL + 14, told, colour_of(sequence.number), 11, "middle", bold=True)
