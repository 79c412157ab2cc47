"""What the colours and lines of a diagram mean, in words."""

from tokenlaw.diagram_shapes import CACHED, COPIED, FREE, HELD, SHARED, WRITTEN, Box
from tokenlaw.diagram_words import ROWS

EXPLAINED: tuple[tuple[Box, str], ...] = (
    (Box(0, 0, 16, 16, SHARED, "ink", 2.0), "held by several tables"),
    (Box(0, 0, 16, 16, HELD), "held by one"),
    (Box(0, 0, 16, 16, CACHED), "cached, held by none"),
    (Box(0, 0, 16, 16, FREE, dashed=True), "free"),
    (Box(0, 0, 16, 16, FREE, "ink", 2.0, dashed=True), "bold: released by this operation"),
    (Box(0, 0, 16, 16, WRITTEN, "ink", 1.6), "bold: written by this operation"),
    (Box(0, 0, 16, 16, "", COPIED, 2.5, dashed=True), "the copy of a divergence"),
    (Box(0, 0, 16, 16, "wrong-fill", "wrong", 2.5), "bold: reads back wrong"),
)
"""A sample of each, and what it means."""

FAINT_TOKENS = "faint: drafts that weren't kept, or left behind by an earlier holder"


def legend(*, rows: bool = False) -> str:
    """The legend as an HTML list, with what stands in pictures of stores if there are ``rows``.

    Colours are those of `tokenlaw.diagram_svg.STYLE`.
    """
    items = [f"<li><span style='{_style(box)}'></span>{told}</li>" for box, told in EXPLAINED]
    items += [f"<li>{told}</li>" for told in ([FAINT_TOKENS, ROWS] if rows else [FAINT_TOKENS])]
    return f"<ul class='legend'>{''.join(items)}</ul>"


def _style(box: Box) -> str:
    fill = f"var(--d-{box.fill})" if box.fill else "none"
    dashes = "dashed" if box.dashed else "solid"
    return f"background:{fill};border:{box.line:g}px {dashes} var(--d-{box.edge})"
