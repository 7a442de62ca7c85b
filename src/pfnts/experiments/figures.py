"""Charts by matplotlib, for papers and slides."""

from __future__ import annotations

import io
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfnts.experiments.charts import COLOURS, DASHES, Chart, Panel
from pfnts.files import write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = 4
_WIDTH = 1.6


def figure_of(chart: Chart, *, size: float = 2.6) -> Figure:
    """Draw a chart on white, its panels so many inches high, with one legend below."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('drawing needs matplotlib; install it with: pip install "pfnts[bench]"') from error
    columns = min(_COLUMNS, len(chart.panels))
    rows = math.ceil(len(chart.panels) / columns)
    labels = [plain(label) for label, _ in chart.series]
    width = max(1.45 * size * columns, 6.2)
    across = max(1, int(width / (0.7 + 0.095 * max(map(len, labels)))))
    legend = 0.24 * math.ceil(len(labels) / across)
    height = size * rows + 0.6 + legend
    # A Figure of its own, not pyplot's: nothing is shown, and no state is left in the process.
    figure = Figure(figsize=(width, height))
    # Margins are given in inches: working them out takes longer than the drawing.
    sides = {"left": 0.8 / width, "right": 1 - 0.25 / width, "wspace": 0.26}
    ends = {"top": 1 - 0.3 / height, "bottom": (0.72 + legend) / height, "hspace": 0.34}
    panels = figure.subplots(rows, columns, squeeze=False, gridspec_kw=sides | ends)
    for axes in panels.flat[len(chart.panels) :]:
        axes.remove()
    named: dict[int, Any] = {}
    for axes, panel in zip(panels.flat, chart.panels, strict=False):
        named |= _draw(axes, chart, panel)
        axes.set_title(plain(panel.title), fontsize="medium")
    shown = [[of[series] for series in sorted(named)] for of in (named, labels)]
    figure.legend(*shown, loc="lower center", ncols=across, frameon=False, fontsize="small")
    figure.text(0.5, (0.2 + legend) / height, chart.xlabel, ha="center")
    figure.text(0.14 / width, 0.5, chart.ylabel, rotation=90, va="center")
    return figure


def _draw(axes: Any, chart: Chart, panel: Panel) -> dict[int, Any]:
    x = np.asarray(panel.x, dtype=float)
    late = x >= min(chart.first, x[-1]) if chart.grows else np.ones(len(x), dtype=bool)
    drawn = {}
    for line in panel.lines:
        style = chart.series[line.series][1] % len(COLOURS)
        y = np.asarray(line.y, dtype=float)[late]
        # A logarithmic axis has no place for 0; what lies there is left out.
        y = np.where(y > 0, y, np.nan) if chart.grows else y
        # Given in points; matplotlib counts them in widths of the line.
        dashes = tuple(float(length) / _WIDTH for length in DASHES[style].split())
        (drawn[line.series],) = axes.plot(
            x[late], y, color=COLOURS[style], linewidth=_WIDTH, linestyle=(0, dashes) if dashes else "-"
        )
        spread = np.full(len(x), np.nan) if line.spread is None else np.asarray(line.spread, dtype=float)
        if not np.isnan(spread).all():
            low = np.maximum(y - spread[late], 1e-3 * y) if chart.grows else y - spread[late]
            axes.fill_between(x[late], low, y + spread[late], color=COLOURS[style], alpha=0.15, linewidth=0)
    _scale(axes, chart)
    if panel.fixed is not None and not chart.grows:
        axes.axhline(panel.fixed, color="#999999", linewidth=0.8, linestyle=":")
    axes.spines[["top", "right"]].set_visible(False)
    return drawn


def _scale(axes: Any, chart: Chart) -> None:
    """Axes that end where the mean curves end, whatever the bands do."""
    places, heights = np.concatenate([line.get_data() for line in axes.lines], axis=1)
    heights = heights[np.isfinite(heights)]
    if not len(heights):
        return
    if chart.grows:
        axes.set(yscale="log", ylim=(heights.min() / 1.5, heights.max() * 1.5))
        _plain_ticks(axes.yaxis, *axes.get_ylim())
    if chart.grows or chart.log_x:
        axes.set(xscale="log", xlim=(places.min(), max(places.max(), places.min() + 1)))
        _plain_ticks(axes.xaxis, *axes.get_xlim())


def _plain_ticks(axis: Any, low: float, high: float) -> None:
    """Powers of ten, or 1, 2 and 5 of each where there are few, in plain words."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda place, _: short_number(place)))
    axis.set_minor_locator(NullLocator())


def short_number(value: float) -> str:
    """At most three digits.

    Examples
    --------
    >>> short_number(10_000.0), short_number(0.5)
    ('10k', '0.5')
    """
    return f"{value / 1000:.3g}k" if value >= 1000 else f"{value:.3g}"


def plain(text: str) -> str:
    r"""Keep matplotlib from reading a name as mathematics.

    Examples
    --------
    >>> plain(r"$\frac{$")
    '\\$\\frac{\\$'
    """
    return text.replace("$", r"\$")


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure in the format of the path's suffix, the same bytes for the same figure."""
    import matplotlib

    path = Path(path)
    buffer = io.BytesIO()
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
    with matplotlib.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}):
        figure.savefig(buffer, format=path.suffix.lstrip(".") or "png", dpi=150, metadata=undated)
    return write_file(path, buffer.getvalue())
