"""What a diagram is made of, and its colours; painters (SVG, PNG) know nothing else.

Coordinates are in pixels of a screen, x to the right and y down.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

WRONG, COPIED, WRITTEN = "wrong", "copied", "written"
INK, FAINT, PAPER = "ink", "faint", "paper"
HELD, SHARED, CACHED, FREE = "held", "shared", "cached", "free"

# Sequences have colours that colour-blind people can tell apart from each other, from vermilion, which is
# kept for what is wrong, and from what is copied. Colours never stand alone: each is beside a number, a word
# or another kind of line.
SEQUENCES = ("sequence0", "sequence1", "sequence2", "sequence3", "sequence4")

LIGHT = {
    INK: "#1b1f24",
    FAINT: "#535c67",
    PAPER: "#ffffff",
    HELD: "#f3f5f7",
    SHARED: "#dcecf8",
    CACHED: "#fbf6d5",
    FREE: "#ffffff",
    WRONG: "#b54700",
    COPIED: "#a02c6d",
    WRITTEN: "#c9e6d9",
    "wrong-fill": "#fbdccb",
    "edge": "#8a939d",
    "sequence0": "#0072b2",
    "sequence1": "#7a2bd9",
    "sequence2": "#00795a",
    "sequence3": "#5a2a00",
    "sequence4": "#3f4b57",
}
DARK = {
    INK: "#e8ebee",
    FAINT: "#a3adb8",
    PAPER: "#14181d",
    HELD: "#222930",
    SHARED: "#17364d",
    CACHED: "#3b3613",
    FREE: "#14181d",
    WRONG: "#ff8a4c",
    COPIED: "#f092c8",
    WRITTEN: "#0f3f30",
    "wrong-fill": "#5a2408",
    "edge": "#6d7883",
    "sequence0": "#6db9ea",
    "sequence1": "#f4d125",
    "sequence2": "#4fc9a2",
    "sequence3": "#8686f9",
    "sequence4": "#c3ccd5",
}


def colour_of(sequence: int) -> str:
    """Role of the colour of a sequence; they come round again after five."""
    return SEQUENCES[sequence % len(SEQUENCES)]


@dataclass(frozen=True)
class Box:
    """A rectangle; ``fill`` and ``edge`` are roles, no filling if empty, no edge if ``line`` is 0."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    edge: str = "edge"
    line: float = 1.0
    dashed: bool = False
    round: float = 4.0


@dataclass(frozen=True)
class Label:
    """A line of text on a baseline; ``anchor`` is start, middle or end. Texts of strangers may stand here."""

    x: float
    y: float
    text: str
    colour: str = INK
    size: float = 13.0
    anchor: str = "start"
    bold: bool = False


@dataclass(frozen=True)
class Arrow:
    """A curve that leaves and arrives upright, with a head at its end."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str
    line: float = 1.6

    @property
    def controls(self) -> tuple[float, float, float, float]:
        """Control points of its cubic Bezier curve."""
        reach = (self.y2 - self.y1) / 2
        if abs(reach) < 1:  # side by side: an arc below
            reach = 26.0
            return self.x1, self.y1 + reach, self.x2, self.y2 + reach
        return self.x1, self.y1 + reach, self.x2, self.y2 - reach

    @property
    def head(self) -> tuple[tuple[float, float], ...]:
        """Corners of its head: it arrives upright."""
        down = 1 if self.controls[3] < self.y2 else -1
        return (self.x2, self.y2), (self.x2 - 4, self.y2 - 8 * down), (self.x2 + 4, self.y2 - 8 * down)


Shape: TypeAlias = Box | Label | Arrow


@dataclass
class Drawing:
    """Shapes, the later ones above, on a sheet of this size; ``title`` says it to who can't see it."""

    width: float
    height: float
    title: str
    shapes: list[Shape] = field(default_factory=list)
