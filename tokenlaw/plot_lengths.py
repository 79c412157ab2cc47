"""The law of accepted drafts against theory: measured shares with their intervals, above exact bars."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from tokenlaw.diagram_shapes import FAINT, LIGHT
from tokenlaw.errors import BadUse
from tokenlaw.html_data import ShownLaw, Stored
from tokenlaw.html_laws import verdict_of
from tokenlaw.plots import BAD, EXACT, FOUND, headed, new_figure, plain, styled, write_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LENGTH = "law/length"
_ACROSS, _LETTERS = 3, 60
"""Panels beside each other, and letters of a line above one."""


def laws_of(report: Stored, source: str) -> Sequence[ShownLaw]:
    """Laws of accepted drafts that a report has, those first that speak most against the exact ones.

    Laws of one outcome are left out, if there are others.

    Raises
    ------
    BadUse
        It has none: it isn't about a verifier that was held to the textbook, or asked too little.
    """
    found = [row.statistics for row in report.checks if row.id == LENGTH]
    laws = [law for statistics in found if statistics is not None for law in statistics.lengths]
    if not laws:
        raise BadUse(
            f"{source}: nothing to plot: it has no law of accepted drafts ({LENGTH}), which only audits of "
            "verifiers have"
        )
    return [law for law in laws if len(law.outcomes) > 1] or laws


def plot_lengths(laws: Sequence[ShownLaw], path: Path) -> None:
    """Draw a panel for each law."""
    across = min(len(laws), _ACROSS)
    down = -(-len(laws) // across)
    figure = new_figure(max(3.4 * across, 5), 2.9 * down + 0.6)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for axes, law in zip(panels, laws, strict=False):
        _panel(axes, law)
    for axes in panels[len(laws) :]:
        axes.set_axis_off()
    title = "Accepted drafts: exact law (bars) and what was measured (points)"
    headed(figure, title)
    write_plot(figure, path, title)


def _panel(axes: "Axes", law: ShownLaw) -> None:
    outcomes = sorted(law.outcomes, key=lambda one: _number(one.outcome))
    numbers = [_number(one.outcome) for one in outcomes]
    axes.bar(numbers, [one.exact for one in outcomes], color=EXACT, alpha=0.45, width=0.7)
    for number, one in zip(numbers, outcomes, strict=True):
        low, high = one.found if one.low is None else one.low, one.found if one.high is None else one.high
        wrong = verdict_of(one)
        colour = BAD if wrong else FOUND
        # Rounding may leave a share outside of its interval by the last digit.
        reach = [[max(one.found - low, 0.0)], [max(high - one.found, 0.0)]]
        axes.errorbar(
            [number], [one.found], reach, fmt="X" if wrong else "o", color=colour, capsize=4, markersize=5
        )
        if wrong:
            axes.annotate(wrong, (number, high), (0, 4), textcoords="offset points", ha="center", fontsize=7)
    styled(axes, "", "drafts accepted", "probability")
    told = f"{law.counted or 0:,} samples" + (f", {law.confidence:.1%} intervals" if law.confidence else "")
    where = fill(law.where, _LETTERS)
    axes.set_title(f"{plain(where)}\n{told}", fontsize=7, color=LIGHT[FAINT], loc="left")
    axes.set_xticks(numbers)
    axes.set_xlim(-0.6, max(numbers, default=0) + 0.6)
    axes.margins(y=0.12)


def _number(outcome: str) -> int:
    """How many drafts an outcome is about.

    >>> _number("3 drafts accepted")
    3
    """
    first = outcome.split(maxsplit=1)[0]
    return int(first) if first.isdecimal() else 0
