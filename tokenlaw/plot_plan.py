"""The plot of a plan: samples against total variation, for Pearson's test and the gate."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tokenlaw.plots import ASKED, FOUND, OTHER, new_figure, styled, write_plot
from tokenlaw.stats.planner import plan

_POINTS = 13
"""Total variations beside the one that was asked for, over two decades."""


def curves(data: Mapping[str, Any]) -> list[tuple[float, int, int]]:
    """Total variation, samples of Pearson's test and of the gate, around those of a plan.

    Parameters
    ----------
    data : as `tokenlaw.planning.planned` returns it.
    """
    asked = data["tv"]
    around = np.geomspace(max(asked / 10, 1e-12), min(10 * asked, 0.9), _POINTS).tolist()
    plans = [
        plan(tv, data["cells"], alpha=data["alpha"], beta=data["beta"]) for tv in sorted({*around, asked})
    ]
    return [(one.tv, one.chi_square, one.gate) for one in plans]


def plot_plan(data: Mapping[str, Any], path: Path) -> None:
    """Draw it; the point is what was asked for, with the test that needs the fewest samples."""
    figure = new_figure(7, 4.4)
    axes = figure.add_subplot()
    distances, chi_square, gate = zip(*curves(data), strict=True)
    axes.loglog(distances, chi_square, color=FOUND, linewidth=2, marker="s", markersize=4, label="chi-square")
    axes.loglog(distances, gate, color=OTHER, linewidth=2, marker="o", markersize=4, label="gate")
    told = f"asked: TV {data['tv']:g}, {data['samples']:,} samples ({data['test']})"
    axes.loglog([data["tv"]], [data["samples"]], "D", color=ASKED, markersize=9, zorder=5, label=told)
    title = f"Samples that see a deviation, {data['cells']:,} outcomes"
    chance = f"with probability {1 - data['beta']:.12g}, alpha {data['alpha']:g}"
    styled(axes, f"{title}\n{chance}", "total variation (TV)", "samples")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(frameon=False, fontsize=9)
    write_plot(figure, path, title)
