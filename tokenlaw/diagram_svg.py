"""Drawings as SVG: text stays text, colours follow the reader's light or dark preference."""

from xml.sax.saxutils import escape, quoteattr

from tokenlaw.diagram_shapes import DARK, INK, LIGHT, PAPER, Arrow, Box, Drawing, Label, Shape
from tokenlaw.text import one_line

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"


def _rules(colours: dict[str, str]) -> str:
    return "".join(f"--d-{role}:{colour};" for role, colour in colours.items())


STYLE = (
    f".diagram{{{_rules(LIGHT)}}}"
    f"@media screen and (prefers-color-scheme:dark){{.diagram{{{_rules(DARK)}}}}}"
    f".diagram text{{font-family:{FONT};fill:var(--d-{INK})}}"
)
"""CSS that colours need, once for a page; on paper they are light."""


def to_svg(drawing: Drawing, *, alone: bool = True) -> str:
    """The drawing as an ``svg`` element; ``alone`` if it is a file of its own, with its style and paper."""
    width, height = _number(drawing.width), _number(drawing.height)
    title = escape(one_line(drawing.title))
    namespace = ' xmlns="http://www.w3.org/2000/svg"' if alone else ""
    parts = [
        f'<svg{namespace} class="diagram" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><title>{title}</title>'
    ]
    if alone:
        parts.append(f"<style>{STYLE}</style>")
        parts.append(f'<rect width="{width}" height="{height}" style="fill:var(--d-{PAPER})"/>')
    return "\n".join([*parts, *map(_painted, drawing.shapes), "</svg>"]) + "\n"


def _painted(shape: Shape) -> str:
    match shape:
        case Box():
            return _box(shape)
        case Label():
            return _label(shape)
        case Arrow():
            return _arrow(shape)


def _box(box: Box) -> str:
    place = f'x="{_number(box.x)}" y="{_number(box.y)}" rx="{_number(box.round)}"'
    size = f'width="{_number(box.width)}" height="{_number(box.height)}"'
    edge = f";stroke:var(--d-{box.edge});stroke-width:{_number(box.line)}" if box.line else ""
    dashes = ";stroke-dasharray:4 3" if box.dashed else ""
    fill = f"var(--d-{box.fill})" if box.fill else "none"
    return f'<rect {place} {size} style="fill:{fill}{edge}{dashes}"/>'


def _label(label: Label) -> str:
    weight = ' font-weight="600"' if label.bold else ""
    anchor = f' text-anchor="{label.anchor}"' if label.anchor != "start" else ""
    style = quoteattr(f"fill:var(--d-{label.colour})")
    place = f'x="{_number(label.x)}" y="{_number(label.y)}" font-size="{_number(label.size)}"'
    return f"<text {place}{anchor}{weight} style={style}>{escape(one_line(label.text))}</text>"


def _arrow(arrow: Arrow) -> str:
    x1, y1, x2, y2 = map(_number, arrow.controls)
    curve = f"M{_number(arrow.x1)} {_number(arrow.y1)}C{x1} {y1} {x2} {y2} {_number(arrow.x2)} "
    style = f"fill:none;stroke:var(--d-{arrow.colour});stroke-width:{_number(arrow.line)}"
    corners = " ".join(f"{_number(x)},{_number(y)}" for x, y in arrow.head)
    return (
        f'<path d="{curve}{_number(arrow.y2)}" style="{style}"/>'
        f'<polygon points="{corners}" style="fill:var(--d-{arrow.colour})"/>'
    )


def _number(value: float) -> str:
    """Without digits that nobody sees.

    >>> _number(3.0), _number(2.666)
    ('3', '2.7')
    """
    return f"{value:.1f}".removesuffix(".0")
