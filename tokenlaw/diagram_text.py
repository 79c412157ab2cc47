"""Frames as text: for a terminal, and for files that anybody can read."""

from collections.abc import Iterator, Sequence

from tokenlaw.diagram_blocks import MOST_SLOTS, state
from tokenlaw.diagram_panel import said
from tokenlaw.diagram_sheet import notes
from tokenlaw.diagram_words import block_name, headline, is_accused, name_of, shows_blocks, wrong_slots
from tokenlaw.spec.frames import BlockState, Frame, SequenceState, SlotState
from tokenlaw.text import one_line

Line = list[tuple[str, str]]
"""A line of a terminal: pieces of text, each with its style."""

LEGEND = "* written by this operation; ~ a draft that wasn't kept, or left behind; ! reads back wrong"

_STYLES = {
    "shared": "bold",
    "held": "",
    "cached": "yellow",
    "free": "dim",
    "wrong": "bold red",
    "copied": "magenta",
    "faint": "dim",
    "ink": "",
}
_SEQUENCES = ("blue", "yellow", "green", "magenta", "cyan")
_MOST_BLOCKS = 64


def lines(frame: Frame, number: int) -> list[Line]:
    """The state after operation ``number``."""
    shown = [block for block in frame.blocks if block.block < _MOST_BLOCKS or state(block) != "free"]
    told: list[Line] = [[(one_line(f"{number}. {frame.told}"), "bold")]]
    if headline(frame):
        told.append([(f"  {one_line(headline(frame))}", _STYLES["wrong"])])
    told += [_sequence(one, frame) for one in frame.sequences]
    told += [_block(block, frame) for block in shown]
    told += [[(f"  {one_line(text)}", _STYLES[colour])] for text, colour in said(frame)]
    return told


def plain(frames: Sequence[tuple[int, Frame]], title: str, caption: Sequence[str]) -> str:
    """All steps as plain text."""
    parts = [title]
    for number, frame in frames:
        parts.append("\n".join("".join(text for text, _ in line).rstrip() for line in lines(frame, number)))
    return "\n\n".join([*parts, LEGEND, *notes(frames, caption)]) + "\n"


def _sequence(sequence: SequenceState, frame: Frame) -> Line:
    colour, size = _SEQUENCES[sequence.number % len(_SEQUENCES)], frame.block_size
    mark = "\u2717" if is_accused(sequence, frame) else " "
    name = (f"{mark} seq {sequence.number:<3}", f"bold {colour}")
    if sequence.swapped:
        return [name, ("swapped out to the host", "dim")]
    groups = [
        "[" + " ".join(map(name_of, sequence.tokens[first : first + size])) + "]"
        for first in range(0, len(sequence.tokens), size)
    ]
    if not shows_blocks(frame):
        return [name, ("".join(groups), "")]
    table = " ".join("-" if block is None else str(block) for block in sequence.table)
    return [name, ("".join(groups), ""), (f"  in blocks {table or 'none'}", colour)]


def _block(block: BlockState, frame: Frame) -> Line:
    wrong = wrong_slots(frame)
    what = state(block)
    line: Line = [(f"  {one_line(block_name(block)):<9}", _STYLES[what])]
    if block.references is not None:
        differs = block.references != len(block.holders)
        line.append((f"refs {block.references:<3}", _STYLES["wrong"] if differs else _STYLES[what]))
    for offset, slot in enumerate(block.slots[:MOST_SLOTS]):
        line.append(_slot(slot, wrong.get((block.block, offset))))
    line.append(("  " + ", ".join(_about(block, frame)), _STYLES[what]))
    return line


def _slot(slot: SlotState, short: str | None) -> tuple[str, str]:
    """A slot; ``short`` says what is wrong with it, and is None if nothing is."""
    text = "." if slot.token is None else name_of(slot.token)
    if short is not None:
        return f"{text:>4}!{short}{' ' if short else ''}", _STYLES["wrong"]
    if slot.token is None:
        return "   . ", "dim"
    mark = "*" if slot.written and slot.final else " " if slot.final else "~"
    style = "green" if slot.written else "" if slot.final else "dim"
    return f"{text:>4}{mark}", style


def _about(block: BlockState, frame: Frame) -> Iterator[str]:
    """What else is to say about a block."""
    if block.name:
        return
    if block.holders:
        yield f"held by {' '.join(map(str, dict.fromkeys(block.holders)))}"
    else:
        yield "cached, held by none" if block.cached else "free"
    if block.released:
        yield "released by this operation"
    if block.holders and block.cached:
        yield "cached"
    for copy in frame.copies:
        if copy.destination == block.block and not copy.to_host:
            yield f"copied from block {copy.source}" + (" of the host" if copy.from_host else "")
