"""The report's pictures for papers and slides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pfnts.experiments.figures import COLOURS, draw_regret, dress, new_figure
from pfnts.experiments.report.contents import colours, row_name
from pfnts.experiments.report.sections import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = 4


def scenario_figure(section: Section, scenario: str) -> Figure:
    """Draw the regret curves of one scenario, each named at its end."""
    # Margins are given in inches: working them out takes longer than the drawing.
    width, height = 6.8, 4.0
    longest = max(len(row_name(section, policy)) for policy in section.policies)
    figure = new_figure(width=width, height=height, arranged=False)
    right = 0.3 + 0.075 * (longest + 8)
    panel = figure.add_axes((0.75 / width, 0.55 / height, 1 - (0.75 + right) / width, 1 - 0.95 / height))
    _draw(panel, section, scenario)
    panel.set(title=scenario, xlabel="round", ylabel="cumulative regret, mean ± SD")
    _name_ends(panel)
    return figure


def page_figure(section: Section) -> Figure:
    """Draw every scenario of a section small, with one legend."""
    columns = min(_COLUMNS, len(section.scenarios))
    rows = math.ceil(len(section.scenarios) / columns)
    labels = [row_name(section, policy) for policy in section.policies]
    width = max(3.1 * columns, 6.2)
    across = max(1, int(width / (0.7 + 0.095 * max(map(len, labels)))))
    legend = 0.24 * math.ceil(len(labels) / across)
    height = 2.5 * rows + 0.5 + legend
    figure = new_figure(width=width, height=height, arranged=False)
    panels = figure.subplots(
        rows,
        columns,
        squeeze=False,
        gridspec_kw={
            "left": 0.75 / width,
            "right": 1 - 0.15 / width,
            "top": 1 - 0.3 / height,
            "bottom": (0.62 + legend) / height,
            "wspace": 0.24,
            "hspace": 0.32,
        },
    )
    for panel in panels.flat[len(section.scenarios) :]:
        panel.remove()
    named: dict[str, Any] = {}
    for panel, scenario in zip(panels.flat, section.scenarios, strict=False):
        _draw(panel, section, scenario)
        panel.set_title(scenario, fontsize="medium")
        named |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    lines = [named[label] for label in labels]
    figure.legend(lines, labels, loc="lower center", ncols=across, frameon=False, fontsize="small")
    figure.text(0.5, (0.16 + legend) / height, "round", ha="center")
    figure.text(0.12 / width, 0.5, "cumulative regret, mean ± SD", rotation=90, va="center")
    return figure


def _draw(panel: Any, section: Section, scenario: str) -> None:
    for policy in section.policies:
        members = section.outcomes.get((scenario, policy))
        if members:
            draw_regret(panel, members, style=colours(section)[policy], label=row_name(section, policy))
    dress(panel)


def _name_ends(panel: Any) -> None:
    transform, axes = panel.transData, panel.transAxes.inverted()
    ends, lines = [], [line for line in panel.lines if np.isfinite(line.get_ydata()[-1])]
    for line in lines:
        ends.append(axes.transform(transform.transform((line.get_xdata()[-1], line.get_ydata()[-1])))[1])
    for line, end, place in zip(lines, ends, spaced(ends, gap=0.062), strict=True):
        colour = COLOURS[COLOURS.index(line.get_color())]
        panel.plot(
            [1.005, 1.03], [end, place], color=colour, linewidth=0.8, transform=panel.transAxes, clip_on=False
        )
        panel.text(
            1.04,
            place,
            f"{line.get_label()}  {line.get_ydata()[-1]:,.0f}",
            color=colour,
            va="center",
            fontsize="small",
            transform=panel.transAxes,
        )


def spaced(heights: Sequence[float], *, gap: float) -> list[float]:
    """Move heights (in 0 to 1) apart until neighbours are at least ``gap`` from each other, keeping order.

    Examples
    --------
    >>> [round(height, 2) for height in spaced([0.5, 0.52, 0.9], gap=0.1)]
    [0.46, 0.56, 0.9]
    """
    order = np.argsort(heights, kind="stable")
    placed = np.asarray(heights, dtype=float)[order]
    # Clusters that touch are centred on the mean of what they name, and merged until none touch.
    clusters: list[list[float]] = []
    for height in placed:
        clusters.append([height])
        while len(clusters) > 1 and _bottom(clusters[-1], gap) - _top(clusters[-2], gap) < gap:
            last = clusters.pop()
            clusters[-1] += last
    moved = [_bottom(cluster, gap) + gap * i for cluster in clusters for i in range(len(cluster))]
    result = np.empty(len(moved))
    result[order] = moved
    return result.tolist()


def _bottom(cluster: Sequence[float], gap: float) -> float:
    return float(np.mean(cluster)) - gap * (len(cluster) - 1) / 2


def _top(cluster: Sequence[float], gap: float) -> float:
    return float(np.mean(cluster)) + gap * (len(cluster) - 1) / 2
