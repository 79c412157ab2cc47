"""The matrix of planted faults as a heat map: which check sees which fault, and how soon."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tokenlaw.diagram_shapes import INK, LIGHT, PAPER
from tokenlaw.errors import BadUse
from tokenlaw.html_faults import Family, Matrix, Row, faults_page
from tokenlaw.plots import BAD, FOUND, headed, new_figure, plain, styled, write_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW, _COLUMN, _MARGINS = 0.17, 0.34, 2.0
"""Inches of a fault, of a check, and of what is around the cells of a family."""

_DARK = 70
"""From this depth of colour on text is light."""


def plot_faults(found: Matrix, path: Path) -> None:
    """Draw it, one panel for each family.

    Parameters
    ----------
    found : which checks see which fault (`tokenlaw.html_faults.matrix`).
    path : where it goes.

    Raises
    ------
    BadUse
        There is nothing in it, or the file can't be written.
    """
    page = faults_page(found)
    if not page.families:
        raise BadUse("nothing to plot: the matrix has neither faults nor innocents")
    heights = [max(len(family.rows), 1) * _ROW + _MARGINS for family in page.families]
    columns = max(len(family.checks) for family in page.families)
    figure = new_figure(3.5 + max(columns, 8) * _COLUMN, sum(heights))
    for axes, family in zip(
        figure.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0], page.families, strict=True
    ):
        _panel(axes, family)
    title = f"{page.killed} of {len(found.faults)} faults killed"
    if found.innocents:
        title += f", silent on {page.silent} of {len(found.innocents)} innocents"
    title += "; deep colours: few operations, or samples"
    headed(figure, title)
    write_plot(figure, path, title)


def _panel(axes: "Axes", family: Family) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    checks = family.checks or ("no check",)
    depths = np.zeros((len(family.rows), len(checks)))
    styled(axes, family.name, "", "")
    for place, (row, cells) in enumerate(family.rows):
        for column, cell in enumerate(cells):
            depths[place, column] = cell.depth
            colour = LIGHT[PAPER] if cell.depth >= _DARK else LIGHT[INK]
            axes.text(column, place, cell.short, ha="center", va="center", fontsize=5.5, color=colour)
        if row.wrong:
            axes.axhspan(place - 0.5, place + 0.5, facecolor="none", edgecolor=BAD, linewidth=1.5, zorder=3)
    colours = LinearSegmentedColormap.from_list("depth", [LIGHT[PAPER], FOUND])
    axes.imshow(depths, cmap=colours, vmin=0, vmax=100, aspect="auto")
    axes.set_xticks(range(len(checks)), checks, rotation=60, ha="right", rotation_mode="anchor", fontsize=7)
    axes.set_yticks(range(len(family.rows)), [_name(row) for row, _ in family.rows], fontsize=7)
    for label, (row, _) in zip(axes.get_yticklabels(), family.rows, strict=True):
        label.set_color(BAD if row.wrong else LIGHT[INK])


def _name(row: Row) -> str:
    """The fault, and what became of it where that isn't what it should be."""
    innocent = " (innocent)" if row.verdict in ("silent", "alarmed") else ""
    return plain(f"{row.name}{innocent}" + (f": {row.verdict.upper()}" if row.wrong else ""))
