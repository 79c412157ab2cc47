"""A whole diagram: a title, a panel for each step, the legend, and what exactness means."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tokenlaw.diagram_legend import EXPLAINED, FAINT_TOKENS
from tokenlaw.diagram_panel import MARGIN, draw_panel
from tokenlaw.diagram_shapes import FAINT, Arrow, Box, Drawing, Label, Shape
from tokenlaw.diagram_words import ROWS, has_rows
from tokenlaw.spec.frames import Frame

EXACT = (
    "Exact means that every live position reads back, through its sequence's block table, what was written "
    "for it, whatever happened to other sequences: a block is written only while one table holds it, so a "
    "sequence that diverges inside a shared block writes into a copy."
)
ACCEPTANCE = (
    "A draft x is accepted with probability min(1, p(x) / q(x)), where p is the target's law and q the "
    "draft's; after a rejection the next token has the law max(0, p - q), normalised. So what is emitted has "
    "the law p."
)

_LETTER, _LINE = 6.1, 17.0
_NARROW = 480.0
"""Panels of this width at most stand two in a row."""


def caption_of(trace: Mapping[str, Any]) -> list[str]:
    """What a picture of the trace is about: exactness, and how drafts are accepted if it has any."""
    speculates = any(operation.get("op") == "speculate" for operation in trace.get("operations", ()))
    return [EXACT, ACCEPTANCE] if speculates else [EXACT]


def notes(frames: Sequence[tuple[int, Frame]], caption: Iterable[str]) -> list[str]:
    """The caption, below what the pictures of a store need."""
    return [*([ROWS] if any(has_rows(frame) for _, frame in frames) else []), *caption]


def draw_sheet(frames: Sequence[tuple[int, Frame]], title: str, caption: Iterable[str]) -> Drawing:
    """All panels on one sheet; each frame comes with the number of its step."""
    panels = [draw_panel(frame, number) for number, frame in frames]
    widest = max(panel.width for panel in panels)
    columns = 2 if widest <= _NARROW and len(panels) > 1 else 1
    sheet = Drawing(max(widest * columns, _NARROW), 0, title)
    y = _paragraph(sheet, title, 28, size=16, bold=True)
    for first in range(0, len(panels), columns):
        row = panels[first : first + columns]
        for place, panel in enumerate(row):
            sheet.shapes += [_moved(shape, place * widest, y) for shape in panel.shapes]
        y += max(panel.height for panel in row) + 10
    y = _legend(sheet, y + 8) + 14
    for text in notes(frames, caption):
        y = _paragraph(sheet, text, y) + 4
    sheet.height = y
    return sheet


def _moved(shape: Shape, x: float, y: float) -> Shape:
    if isinstance(shape, Arrow):
        return replace(shape, x1=shape.x1 + x, y1=shape.y1 + y, x2=shape.x2 + x, y2=shape.y2 + y)
    return replace(shape, x=shape.x + x, y=shape.y + y)


def _paragraph(sheet: Drawing, text: str, y: float, *, size: float = 12.0, bold: bool = False) -> float:
    """Write wrapped lines from a baseline on; where the next would stand."""
    letters = int((sheet.width - 2 * MARGIN) / (_LETTER * size / 12))
    for line in textwrap.wrap(text, letters):
        sheet.shapes.append(Label(MARGIN, y, line, size=size, bold=bold))
        y += _LINE * size / 12
    return y


def _legend(sheet: Drawing, y: float) -> float:
    """A sample of each kind of block and slot; where what follows may stand."""
    samples: list[tuple[Box | None, str]] = [*EXPLAINED, (None, FAINT_TOKENS)]
    x = MARGIN
    for box, told in samples:
        width = (22 if box else 0) + _LETTER * len(told) + 20
        if x + width > sheet.width and x > MARGIN:
            x, y = MARGIN, y + 22
        if box is not None:
            sheet.shapes.append(replace(box, x=x, y=y - 12))
        sheet.shapes.append(Label(x + (22 if box else 0), y, told, FAINT, 11.5))
        x += width
    return y + 12
