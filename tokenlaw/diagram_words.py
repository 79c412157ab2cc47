"""What frames hold, in words: tokens and rows, blocks, and what reads back wrong."""

from collections.abc import Iterator, Mapping

from tokenlaw.spec.frames import BlockState, Frame, Misread, Row, SequenceState, Wrong

SHORT: Mapping[Wrong, str] = {
    Wrong.OTHER: "other",
    Wrong.STALE: "stale",
    Wrong.MOVED: "moved",
    Wrong.LAYER: "layer",
    Wrong.KEYS: "keys",
    Wrong.VALUES: "vals",
    Wrong.LOST: "lost",
    Wrong.MISSING: "gone",
    Wrong.BEYOND: "more",
}
"""What stands in a slot in which something is wrong."""

ROWS = (
    "In pictures of KV stores, 0:3 is the row (keys and values) that was written for position 3 of "
    "sequence 0. Sequences show the rows that they should read, slots what was read there. A wrong slot says "
    "why: other: another sequence's row; stale: a row that was given up; moved: the row of another position; "
    "layer: that of another layer; keys, vals: only these are wrong; lost: numbers of no row; gone: nothing "
    "was read; more: it is beyond the end of the sequence."
)
"""What stands in pictures of stores."""

_LONGEST = 5
_MOST_TOLD = 6


def name_of(token: int | Row) -> str:
    """A token, or a row by its sequence and position.

    >>> name_of(7), name_of(Row(0, 3, 1))
    ('7', '0:3')
    """
    return f"{token.sequence}:{token.position}" if isinstance(token, Row) else str(token)


def word(token: int | Row | None) -> str:
    """What stands in a slot, shortened to what fits; a dot if there is nothing.

    >>> word(7), word(None), word(123456), word(Row(0, 12, 1))
    ('7', '·', '12…', '0:12')
    """
    if token is None:
        return "\u00b7"
    text, longest = name_of(token), _LONGEST if isinstance(token, Row) else 3
    return text if len(text) <= longest else f"{text[: longest - 1]}\u2026"


def size_of(text: str, size: float) -> float:
    """The size in which a word of a slot is written: a long one is smaller.

    >>> size_of("7", 12.0), size_of("0:12", 12.0)
    (12.0, 9.0)
    """
    return min(size, 3 * size / max(len(text), 3))


def block_name(block: BlockState) -> str:
    """What a block is called."""
    return block.name or f"block {block.block}"


def has_rows(frame: Frame) -> bool:
    """Whether the frame is one of a store."""
    return frame.layer is not None


def shows_blocks(frame: Frame) -> bool:
    """Whether the blocks are physical ones: a pool has some, rows that nobody reads have no box."""
    return bool(frame.blocks) and not any(block.name for block in frame.blocks)


def wrong_slots(frame: Frame) -> dict[tuple[int | None, int], str]:
    """Block and offset of what some sequence should read back otherwise, and the short word for it if any."""
    size = frame.block_size
    return {
        (sequence.table[position // size], position % size): short
        for sequence in frame.sequences
        for position, short in _wrong(sequence).items()
        if 0 <= position // size < len(sequence.table)
    }


def _wrong(sequence: SequenceState) -> dict[int, str]:
    return dict.fromkeys(sequence.wrong, "") | {one.position: SHORT[one.wrong] for one in sequence.misread}


def erased(frame: Frame) -> list[str]:
    """Names of the blocks of a store that lost rows to numbers of no row."""
    blocks = frame.blocks if has_rows(frame) else ()
    lost = [block for block in blocks if any(slot.written and slot.token is None for slot in block.slots)]
    return list(map(block_name, lost))


def is_accused(sequence: SequenceState, frame: Frame) -> bool:
    """Whether a check that is refuted here names the sequence."""
    return any(one.sequence == sequence.number for one in frame.broken)


def headline(frame: Frame) -> str:
    """What ends the run here; empty if nothing does."""
    checks = ", ".join(dict.fromkeys(one.check for one in frame.broken))
    if checks:
        return f"\u2717 refuted here: {checks}"
    return "\u2717 crashed here" if frame.crash else ""


def misreadings(frame: Frame) -> Iterator[str]:
    """A sentence for each position of a store that reads back wrong, or one if a refuted check saw others."""
    told = [_misreading(sequence, one) for sequence in frame.sequences for one in sequence.misread]
    if has_rows(frame) and frame.broken and not told:
        yield "every row reads back as it should"
    yield from told[:_MOST_TOLD]
    if len(told) > _MOST_TOLD:
        yield f"and {len(told) - _MOST_TOLD} more positions that read back wrong"


def _misreading(sequence: SequenceState, misread: Misread) -> str:
    told = f"seq {sequence.number}, position {misread.position}: reads {misread.wrong}"
    if misread.found is not None and misread.wrong not in (Wrong.KEYS, Wrong.VALUES):
        told += f", {_written(misread.found)}"
    if not 0 <= misread.position < len(sequence.tokens):
        return told
    expected = sequence.tokens[misread.position]
    return f"{told}; not {_written(expected)}" if isinstance(expected, Row) else told


def _written(row: Row) -> str:
    return f"{name_of(row)} of operation {row.operation}"
