"""What all plots share: one look, in the colours of the diagrams, and SVG or PNG by the name of the file.

matplotlib is optional: `require_plottable` says so before any work is done.
"""

import io
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tokenlaw.diagram_shapes import COPIED, FAINT, INK, LIGHT, PAPER, WRONG
from tokenlaw.errors import BadUse
from tokenlaw.writing import require_writable, write_to

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OPTION = "--plot"
FORMS = (".svg", ".png")

EXACT, FOUND, OTHER, BAD, ASKED = (LIGHT[name] for name in ("edge", "sequence0", "sequence1", WRONG, COPIED))
"""Colours of what theory says, of what was measured, of a second series, of what is wrong, of what was asked.
Colour-blind people can tell them apart; they differ in shape or place as well."""

_DOTS = 144
"""Dots an inch of a PNG."""


def require_plottable(path: Path | None) -> None:
    """Raise `BadUse` if there is to be a plot and there can't be one.

    The name must end in one of `FORMS`, matplotlib must be installed, and the place must be writable.
    """
    if path is None:
        return
    if path.suffix.lower() not in FORMS:
        raise BadUse(f"{OPTION} {path}: name a file that ends in {' or '.join(FORMS)}")
    if find_spec("matplotlib") is None:
        raise BadUse(f"{OPTION} needs matplotlib: pip install 'tokenlaw[plots]'")
    require_writable(path, OPTION)


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, of so many inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((width, height), facecolor=LIGHT[PAPER], layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def headed(figure: "Figure", title: str) -> None:
    """Title of a figure of several panels."""
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold", color=LIGHT[INK])


def styled(axes: "Axes", title: str, across: str, up: str) -> None:
    """Title and labels of a panel, and quiet axes."""
    axes.set_title(plain(title), loc="left", color=LIGHT[INK], fontsize=10, fontweight="bold")
    axes.set_xlabel(across, color=LIGHT[INK], fontsize=9)
    axes.set_ylabel(up, color=LIGHT[INK], fontsize=9)
    axes.tick_params(colors=LIGHT[FAINT], labelsize=8)
    for side, spine in axes.spines.items():
        spine.set_color(LIGHT["edge"])
        spine.set_visible(side in ("left", "bottom"))


def plain(text: str) -> str:
    """Text without what matplotlib takes for a formula."""
    return text.replace("$", r"\$")


def write_plot(figure: "Figure", path: Path, title: str) -> None:
    """Write the figure; the same figure gives the same file, and text stays text in an SVG.

    Raises
    ------
    BadUse
        It can't be written.
    """
    from matplotlib import rc_context

    form, stream = path.suffix.lower()[1:], io.BytesIO()
    made = {"Date": None, "Creator": "tokenlaw"} if form == "svg" else {"Software": None}
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "tokenlaw"}):
        figure.savefig(stream, format=form, dpi=_DOTS, metadata={"Title": title} | made)
    write_to(path, OPTION, stream.getvalue())
