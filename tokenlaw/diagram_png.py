"""Drawings as PNG, by matplotlib: always in the light colours."""

import io
from typing import TYPE_CHECKING

from tokenlaw.diagram_shapes import LIGHT, PAPER, Arrow, Box, Drawing, Label
from tokenlaw.errors import BadUse
from tokenlaw.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_DOTS = 144
"""Dots an inch; a drawing has 72 pixels an inch."""


def to_png(drawing: Drawing) -> bytes:
    """The drawing, two dots for each of its pixels.

    Raises
    ------
    BadUse
        matplotlib isn't installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise BadUse("a PNG needs matplotlib: pip install 'tokenlaw[plots]'; or name an .svg file") from None
    figure = Figure((drawing.width / 72, drawing.height / 72), dpi=_DOTS, facecolor=LIGHT[PAPER])
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, drawing.width)
    axes.set_ylim(drawing.height, 0)
    for order, shape in enumerate(drawing.shapes):
        match shape:
            case Box():
                _box(axes, shape, order)
            case Label():
                _label(axes, shape, order)
            case Arrow():
                _arrow(axes, shape, order)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None, "Title": one_line(drawing.title)})
    return stream.getvalue()


def _box(axes: "Axes", box: Box, order: int) -> None:
    from matplotlib.patches import FancyBboxPatch

    inner = max(min(box.width, box.height) / 2 - 0.01, 0)
    patch = FancyBboxPatch(
        (box.x, box.y),
        box.width,
        box.height,
        boxstyle=f"round,pad=0,rounding_size={min(box.round, inner)}",
        facecolor=LIGHT[box.fill] if box.fill else "none",
        edgecolor=LIGHT[box.edge] if box.line else "none",
        linewidth=box.line,
        linestyle=(0, (4 / box.line, 3 / box.line)) if box.dashed else "solid",
        zorder=order,
    )
    axes.add_patch(patch)


def _label(axes: "Axes", label: Label, order: int) -> None:
    axes.text(
        label.x,
        label.y,
        one_line(label.text).replace("$", r"\$"),
        color=LIGHT[label.colour],
        fontsize=label.size * 0.92,
        fontweight="bold" if label.bold else "normal",
        ha={"start": "left", "middle": "center", "end": "right"}[label.anchor],
        va="baseline",
        zorder=order,
    )


def _arrow(axes: "Axes", arrow: Arrow, order: int) -> None:
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path

    x1, y1, x2, y2 = arrow.controls
    curve = Path(
        [(arrow.x1, arrow.y1), (x1, y1), (x2, y2), (arrow.x2, arrow.y2)],
        [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
    )
    colour = LIGHT[arrow.colour]
    axes.add_patch(PathPatch(curve, facecolor="none", edgecolor=colour, linewidth=arrow.line, zorder=order))
    axes.add_patch(Polygon(arrow.head, closed=True, facecolor=colour, edgecolor="none", zorder=order))
