"""Sequences, drawn: their tokens in logical blocks, and which physical block each of them is."""

from collections.abc import Iterator

from tokenlaw.diagram_shapes import FAINT, INK, PAPER, WRONG, Box, Label, Shape, colour_of
from tokenlaw.diagram_words import is_accused, shows_blocks, size_of, word
from tokenlaw.spec.frames import Frame, SequenceState

CELL, NAME, GAP, HEIGHT = 21.0, 56.0, 8.0, 44.0

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


def draw_sequence(sequence: SequenceState, frame: Frame, x: float, y: float) -> Iterator[Shape]:
    """A row: the name, and for each logical block its tokens with the physical block below."""
    block_size, accused = frame.block_size, is_accused(sequence, frame)
    edge, line = (WRONG, 3.0) if accused else ("edge", 0)
    yield Box(x, y, NAME - 8, CELL, colour_of(sequence.number), edge, line, round=10)
    name = f"\u2717 seq {sequence.number}" if accused else f"seq {sequence.number}"
    yield Label(x + (NAME - 8) / 2, y + 15, name, PAPER, 11, "middle", bold=True)
    if sequence.swapped:
        yield Label(x + NAME, y + 15, "swapped out to the host", FAINT, 12)
        return
    for place in range(min(_groups(sequence, block_size), MOST_GROUPS)):
        left = x + NAME + place * (group_width(block_size) + GAP)
        yield from _tokens(sequence, block_size, place, left, y)
        yield _block(sequence, frame, place, left, y)
    hidden = _groups(sequence, block_size) - MOST_GROUPS
    if hidden > 0:
        yield Label(x + width(sequence, block_size) - 28, y + 15, f"+{hidden}", FAINT, 12)


def _tokens(sequence: SequenceState, block_size: int, place: int, x: float, y: float) -> Iterator[Shape]:
    """The tokens of a logical block."""
    first = place * block_size
    positions = range(first, min(first + block_size, len(sequence.tokens)))
    wrong = [position for position in positions if position in sequence.wrong]
    if block_size <= MOST_CELLS:
        for offset, position in enumerate(positions):
            left, bad = x + offset * CELL, position in wrong
            yield Box(left, y, CELL - 1, CELL, "wrong-fill" if bad else PAPER, WRONG if bad else "edge", 0.8)
            text = word(sequence.tokens[position])
            yield Label(left + CELL / 2 - 0.5, y + 15, text, INK, size_of(text, 11), "middle", bold=bad)
    elif positions:
        yield Box(x, y, CELL * MOST_CELLS - 1, CELL, PAPER, WRONG if wrong else "edge", 0.8)
        told = f"{positions[0]}\u2013{positions[-1]}" + (f": {len(wrong)} wrong" if wrong else "")
        size = 9.5 if wrong else 11
        yield Label(x + CELL * MOST_CELLS / 2, y + 15, told, INK, size, "middle", bold=bool(wrong))


def _block(sequence: SequenceState, frame: Frame, place: int, x: float, y: float) -> Label:
    """The physical block below a logical one."""
    block = sequence.table[place] if place < len(sequence.table) else None
    told = "no block" if block is None else f"block {block}" if shows_blocks(frame) else "reads"
    middle = x + group_width(frame.block_size) / 2
    return Label(middle, y + CELL + 14, told, colour_of(sequence.number), 11, "middle", bold=True)
